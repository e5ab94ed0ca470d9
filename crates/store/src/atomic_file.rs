//! Files that appear whole or not at all, and stay after a power cut: temporary name, sync, rename, sync of the folder.

use crate::HeapStoreError;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// No heap key begins with a dot, so what a crash leaves behind is never taken for a heap.
const TEMPORARY_PREFIX: &str = ".writing-";
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Writes the parts, one after the other, as `folder/name`.
pub fn write(folder: &Path, name: &str, parts: &[&[u8]]) -> Result<(), HeapStoreError> {
    let mut temporary = Temporary::create(folder)?;
    for part in parts {
        temporary.append(part)?;
    }
    temporary.become_durably(&folder.join(name))?;
    sync_folder(folder)
}

/// Whether a file could be written here: writes one, and takes it away again.
pub fn probe(folder: &Path) -> Result<(), HeapStoreError> {
    let mut temporary = Temporary::create(folder)?;
    temporary.append(b"probe")?;
    temporary.sync()
}

/// Makes a folder that only we can enter, and those above it that are missing.
pub fn make_folder(path: &Path) -> Result<(), HeapStoreError> {
    if path.is_dir() {
        return Ok(());
    }
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    if let Some(above) = above {
        make_folder(above)?;
    }
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Ok(()) => sync_folder(above.unwrap_or(Path::new("."))),
        // Another process was faster; anything but a folder shows when it is used.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(HeapStoreError::unavailable("make the folder", path)(error)),
    }
}

/// Makes the names in a folder survive a power cut.
pub fn sync_folder(folder: &Path) -> Result<(), HeapStoreError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(HeapStoreError::unavailable("sync the folder", folder))
}

/// A file that is removed again unless it gets its real name.
struct Temporary {
    path: PathBuf,
    file: File,
    renamed: bool,
}

impl Temporary {
    fn create(folder: &Path) -> Result<Self, HeapStoreError> {
        let failed = || HeapStoreError::unavailable("write in the folder", folder);
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).map_err(|error| failed()(error.into()))?;
        let path = folder.join(format!("{TEMPORARY_PREFIX}{:016x}", u64::from_ne_bytes(random)));
        let file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&path).map_err(failed())?;
        Ok(Self { path, file, renamed: false })
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), HeapStoreError> {
        self.file.write_all(bytes).map_err(HeapStoreError::unavailable("write", &self.path))
    }

    fn sync(&self) -> Result<(), HeapStoreError> {
        self.file.sync_all().map_err(HeapStoreError::unavailable("sync", &self.path))
    }

    fn become_durably(mut self, path: &Path) -> Result<(), HeapStoreError> {
        self.sync()?;
        fs::rename(&self.path, path).map_err(HeapStoreError::unavailable("name the file", path))?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // If even this fails, the file stays under a name that nobody reads.
            let _ = fs::remove_file(&self.path);
        }
    }
}
