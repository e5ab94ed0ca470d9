//! Reads a catalog's folder within limits.

use crate::error::CatalogError;
use crate::limits::{CATALOG_BYTES_MAX, DEPTH_MAX, FILE_BYTES_MAX, FILES_MAX};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Files by their path relative to the folder, with `/` as separator. Names that begin with a dot are skipped.
pub struct Folder {
    pub root: PathBuf,
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Folder {
    pub fn read(root: &Path) -> Result<Self, CatalogError> {
        let real_root = fs::canonicalize(root).map_err(|source| CatalogError::Unreadable { path: root.to_owned(), source })?;
        let mut folder = Self { root: root.to_owned(), files: BTreeMap::new() };
        let mut bytes_left = CATALOG_BYTES_MAX;
        folder.read_under(&real_root, "", 0, &mut bytes_left)?;
        Ok(folder)
    }

    /// Path of a catalog file for error messages.
    pub fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    fn read_under(&mut self, real_root: &Path, under: &str, depth: usize, bytes_left: &mut u64) -> Result<(), CatalogError> {
        let here = self.path(under);
        if depth > DEPTH_MAX {
            return Err(CatalogError::TooDeep { path: here });
        }
        let unreadable = |source| CatalogError::Unreadable { path: here.clone(), source };
        for entry in fs::read_dir(&here).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            let name = entry.file_name().into_string().map_err(|_| CatalogError::NameNotUtf8 { path: path.clone() })?;
            if name.starts_with('.') {
                continue;
            }
            let file = if under.is_empty() { name } else { format!("{under}/{name}") };
            if entry.file_type().map_err(unreadable)?.is_dir() {
                self.read_under(real_root, &file, depth + 1, bytes_left)?;
            } else {
                let bytes = read_file(real_root, &path, bytes_left)?;
                if self.files.len() == FILES_MAX {
                    return Err(CatalogError::TooManyFiles { path: self.root.clone() });
                }
                self.files.insert(file, bytes);
            }
        }
        Ok(())
    }
}

fn read_file(real_root: &Path, path: &Path, bytes_left: &mut u64) -> Result<Vec<u8>, CatalogError> {
    let unreadable = |source| CatalogError::Unreadable { path: path.to_owned(), source };
    let real = fs::canonicalize(path).map_err(unreadable)?;
    let metadata = fs::metadata(&real).map_err(unreadable)?;
    if !real.starts_with(real_root) || !metadata.is_file() {
        return Err(CatalogError::LinkAway { path: path.to_owned() });
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(CatalogError::FileTooLarge { path: path.to_owned(), bytes: metadata.len() });
    }
    let too_large = || CatalogError::CatalogTooLarge { path: real_root.to_owned() };
    *bytes_left = bytes_left.checked_sub(metadata.len()).ok_or_else(too_large)?;
    fs::read(&real).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(prepare: impl FnOnce(&Path)) -> String {
        let root = tempfile::tempdir().expect("a folder");
        prepare(root.path());
        Folder::read(root.path()).err().expect("refused").to_string()
    }

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }

    #[test]
    fn nested_files_are_read_and_hidden_ones_are_not() {
        let root = tempfile::tempdir().expect("a folder");
        write(root.path().join("index.js"), "1");
        write(root.path().join("inner/deep/x.ts"), "2");
        write(root.path().join(".git/config"), "3");
        std::os::unix::fs::symlink("index.js", root.path().join("same.js")).expect("linked");
        let folder = Folder::read(root.path()).expect("read");
        assert_eq!(folder.files.keys().collect::<Vec<_>>(), ["index.js", "inner/deep/x.ts", "same.js"]);
        assert_eq!(folder.files["same.js"], b"1");
    }

    #[test]
    fn links_that_lead_away_are_refused() {
        let outside = tempfile::tempdir().expect("a folder");
        write(outside.path().join("secret.js"), "1");
        let target = outside.path().join("secret.js");
        assert!(refused(|root| std::os::unix::fs::symlink(&target, root.join("x.js")).expect("linked")).contains("x.js: a link"));
        assert!(refused(|root| std::os::unix::fs::symlink(outside.path(), root.join("inner")).expect("linked")).contains("inner: a link"));
        assert!(refused(|root| std::os::unix::fs::symlink(".", root.join("circle")).expect("linked")).contains("circle: a link"));
        assert!(refused(|root| std::os::unix::fs::symlink("nowhere", root.join("x.js")).expect("linked")).contains("x.js: can't be read"));
    }

    #[test]
    fn number_depth_and_size_are_bounded() {
        let many = refused(|root| (0..=FILES_MAX).for_each(|number| write(root.join(format!("{number}.js")), "")));
        assert!(many.contains("more than 256 files"), "{many}");
        let deep = refused(|root| write(root.join("a/".repeat(DEPTH_MAX + 1)).join("x.js"), ""));
        assert!(deep.contains("more than 8 folders deep"), "{deep}");
        let large = refused(|root| write(root.join("x.js"), &" ".repeat(FILE_BYTES_MAX as usize + 1)));
        assert!(large.contains("x.js: 1048577 bytes"), "{large}");
        let all = refused(|root| (0..3).for_each(|number| write(root.join(format!("{number}.js")), &" ".repeat(1 << 20))));
        assert!(all.contains("more than 2097152 bytes in all"), "{all}");
        assert!(Folder::read(Path::new("/nonexistent/catalog")).is_err());
    }
}
