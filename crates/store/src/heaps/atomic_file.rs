//! Files that appear whole or not at all, and stay after a power cut: temporary name, sync, rename, sync of the folder.

use super::heap_store::HeapStoreError;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// No heap key begins with a dot, so what a crash leaves behind is never taken for a heap.
const TEMPORARY_PREFIX: &str = ".writing-";
/// No write takes this long.
const STALE_AFTER: Duration = Duration::from_secs(60 * 60);
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Whether files have to be there after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncing {
    Always,
    /// For what can be had again. A power cut may leave a file of the right length and the wrong bytes, so readers must verify it.
    Never,
}

/// Writes the parts, one after the other, as `folder/name`.
pub fn write(folder: &Path, name: &str, parts: &[&[u8]], syncing: Syncing) -> Result<(), HeapStoreError> {
    let mut temporary = Temporary::create(folder)?;
    for part in parts {
        temporary.append(part)?;
    }
    match syncing {
        Syncing::Always => {
            temporary.sync()?;
            temporary.rename(&folder.join(name))?;
            sync_folder(folder)
        }
        Syncing::Never => temporary.rename(&folder.join(name)),
    }
}

/// Whether a file can be written and read here: tries it, and takes the file away again.
pub fn probe(folder: &Path) -> Result<(), HeapStoreError> {
    let mut temporary = Temporary::create(folder)?;
    temporary.append(b"probe")?;
    temporary.sync()?;
    fs::read(&temporary.path).map(drop).map_err(HeapStoreError::unavailable("read", &temporary.path))
}

/// Removes the files in a folder that nobody changed for a while: what crashes left of writes, and those that are `refused` by name.
pub fn sweep(folder: &Path, refused: impl Fn(&str) -> bool) -> Result<(), HeapStoreError> {
    let failed = || HeapStoreError::unavailable("tidy", folder);
    for entry in fs::read_dir(folder).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let name = entry.file_name();
        if !name.to_str().is_some_and(|name| name.starts_with(TEMPORARY_PREFIX) || refused(name)) {
            continue;
        }
        // What can't be asked or removed was removed by another process, or stays until the next time.
        let Ok(changed) = entry.metadata().and_then(|metadata| metadata.modified()) else { continue };
        if SystemTime::now().duration_since(changed).is_ok_and(|age| age > STALE_AFTER) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Makes a folder that only we can enter, and those above it that are missing.
pub fn make_folders(path: &Path) -> Result<(), HeapStoreError> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = above(path) {
        make_folders(above)?;
    }
    make_folder(path)
}

/// Makes a folder that only we can enter, in one that has to be there.
pub fn make_folder(path: &Path) -> Result<(), HeapStoreError> {
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Ok(()) => sync_folder(above(path).unwrap_or(Path::new("."))),
        // Another process was faster; anything but a folder shows when it is used.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(HeapStoreError::unavailable("make the folder", path)(error)),
    }
}

fn above(path: &Path) -> Option<&Path> {
    path.parent().filter(|above| !above.as_os_str().is_empty())
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

    fn rename(mut self, path: &Path) -> Result<(), HeapStoreError> {
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
