//! Atomic, durable files: written under a temporary name, synced, renamed, folder synced. A file is complete under its name, or not there.
//!
//! The temporary file is `tempfile`'s: created with `O_EXCL`, removed unless it is renamed. The syncs are ours, because `persist` does none.

use super::error::BlobError;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};
use tempfile::NamedTempFile;

/// No blob's name begins with a dot, so a file that a crash left behind is never taken for a blob.
const TEMPORARY_PREFIX: &str = ".writing-";
const RANDOM_CHARS: usize = 16;
/// No write takes this long.
const STALE_AFTER: Duration = Duration::from_secs(60 * 60);
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Whether files have to survive a power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncing {
    Always,
    /// For copies. A power failure may leave a file of the right length and the wrong bytes, so readers must verify it.
    Never,
}

/// Writes the parts, one after the other, as the file `path` in this folder.
pub fn write(folder: &Path, path: &Path, parts: &[&[u8]], syncing: Syncing) -> Result<(), BlobError> {
    name(temporary_with(folder, parts)?, folder, path, syncing)
}

/// Makes a temporary file in this folder the file `path`.
pub fn name(temporary: NamedTempFile, folder: &Path, path: &Path, syncing: Syncing) -> Result<(), BlobError> {
    match syncing {
        Syncing::Always => {
            sync(&temporary)?;
            rename(temporary, path)?;
            sync_folder(folder)
        }
        Syncing::Never => rename(temporary, path),
    }
}

/// Checks that a file can be written and read here, with one that is removed again.
pub fn probe(folder: &Path) -> Result<(), BlobError> {
    let temporary = temporary_with(folder, &[b"probe"])?;
    sync(&temporary)?;
    fs::read(temporary.path()).map(drop).map_err(BlobError::unavailable("read", temporary.path()))
}

/// Removes files in a folder that were not changed for a while: unfinished writes, and those that are `refused` by name.
pub fn sweep(folder: &Path, refused: impl Fn(&str) -> bool) -> Result<(), BlobError> {
    let failed = || BlobError::unavailable("tidy", folder);
    for entry in fs::read_dir(folder).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let name = entry.file_name();
        if !name.to_str().is_some_and(|name| name.starts_with(TEMPORARY_PREFIX) || refused(name)) {
            continue;
        }
        // If it fails, another process removed the file, or it stays until the next time.
        let Ok(changed) = entry.metadata().and_then(|metadata| metadata.modified()) else { continue };
        if SystemTime::now().duration_since(changed).is_ok_and(|age| age > STALE_AFTER) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Creates a folder that only this user can enter, and its missing parents.
pub fn make_folders(path: &Path) -> Result<(), BlobError> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = parent(path) {
        make_folders(parent)?;
    }
    make_folder(path)
}

/// Creates a folder that only this user can enter. Its parent has to exist.
pub fn make_folder(path: &Path) -> Result<(), BlobError> {
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Ok(()) => sync_folder(parent(path).unwrap_or(Path::new("."))),
        // Another process was faster. If it is not a folder, using it fails.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(BlobError::unavailable("make the folder", path)(error)),
    }
}

fn parent(path: &Path) -> Option<&Path> {
    path.parent().filter(|parent| !parent.as_os_str().is_empty())
}

/// Makes the names in a folder survive a power failure.
pub fn sync_folder(folder: &Path) -> Result<(), BlobError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(BlobError::unavailable("sync the folder", folder))
}

/// An empty file, which is removed when it is dropped.
pub fn temporary_in(folder: &Path) -> Result<NamedTempFile, BlobError> {
    // With our own open: errors keep their system code.
    let open = |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(path);
    let created = tempfile::Builder::new().prefix(TEMPORARY_PREFIX).rand_bytes(RANDOM_CHARS).make_in(folder, open);
    created.map_err(BlobError::unavailable("write in the folder", folder))
}

fn temporary_with(folder: &Path, parts: &[&[u8]]) -> Result<NamedTempFile, BlobError> {
    let temporary = temporary_in(folder)?;
    for part in parts {
        temporary.as_file().write_all(part).map_err(BlobError::unavailable("write", temporary.path()))?;
    }
    Ok(temporary)
}

fn sync(temporary: &NamedTempFile) -> Result<(), BlobError> {
    temporary.as_file().sync_all().map_err(BlobError::unavailable("sync", temporary.path()))
}

fn rename(temporary: NamedTempFile, path: &Path) -> Result<(), BlobError> {
    temporary.persist(path).map(drop).map_err(|failed| BlobError::unavailable("name the file", path)(failed.error))
}
