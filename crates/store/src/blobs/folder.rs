//! Blobs as files: `<folder>/<name>`, with metadata in `<folder>/.meta/<name>.json`. Several processes may share the folder.

use super::bounded_file::{self, Unread};
use super::durable_file::{self, Syncing};
use super::error::{BlobDefect, BlobError};
use super::metadata::BlobMetadata;
use super::name::{BlobFolder, BlobName};
use super::{BlobInfo, Blobs, GetRequest, ListedBlob, LocalFile, OpenBlob, START_BYTES, StagedFile, sidecar};
use std::fs;
use std::io::{self, ErrorKind};
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

const META: &str = ".meta";
const SIDECAR_SUFFIX: &str = ".json";

/// Which user a folder may belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// For a well-known path where anybody could have created a folder before us.
    Us,
    /// For a path that the operator chose.
    Anyone,
}

#[derive(Debug, Clone)]
pub struct FolderBlobs {
    folder: PathBuf,
    syncing: Syncing,
}

impl FolderBlobs {
    /// Opens the folder, and creates it if it is missing.
    pub fn open(folder: &Path, owner: Owner) -> Result<Self, BlobError> {
        durable_file::make_folders(folder)?;
        // Not through a link where the owner matters: a link may lead anywhere.
        let metadata = match owner {
            Owner::Us => folder.symlink_metadata(),
            Owner::Anyone => folder.metadata(),
        };
        let metadata = metadata.map_err(BlobError::unavailable("read", folder))?;
        if !metadata.is_dir() {
            return Err(BlobError::NotAFolder { path: folder.into() });
        }
        let us = rustix::process::geteuid().as_raw();
        if owner == Owner::Us && metadata.uid() != us {
            return Err(BlobError::ForeignFolder { path: folder.into(), owner: metadata.uid(), us });
        }
        Ok(Self::unopened(folder))
    }

    /// For a folder that is created and checked elsewhere.
    pub(crate) fn unopened(folder: &Path) -> Self {
        Self { folder: folder.into(), syncing: Syncing::Always }
    }

    /// Opens a folder for copies of blobs that are stored elsewhere: nothing is synced.
    pub(super) fn open_for_copies(folder: &Path) -> Result<Self, BlobError> {
        Ok(Self { syncing: Syncing::Never, ..Self::open(folder, Owner::Anyone)? })
    }

    /// Creates the folder again if it was removed.
    pub(super) fn make_again(&self) -> Result<(), BlobError> {
        durable_file::make_folders(&self.folder)
    }

    /// Sets the time of a blob to now.
    pub(super) fn touch(&self, name: &BlobName) -> io::Result<()> {
        bounded_file::open(&self.path(name))?.set_modified(SystemTime::now())
    }

    /// Where the file of a blob is.
    pub fn path(&self, name: &BlobName) -> PathBuf {
        self.folder.join(name.as_str())
    }

    fn sidecar_path(&self, name: &BlobName) -> PathBuf {
        self.folder.join(META).join(format!("{name}{SIDECAR_SUFFIX}"))
    }

    fn unread(&self, name: &BlobName) -> impl FnOnce(Unread) -> BlobError {
        let path = self.path(name);
        let damaged = BlobError::damaged(name);
        let missing = self.missing(name);
        move |unread| match unread {
            Unread::NotAFile => damaged(BlobDefect::NotAFile),
            Unread::TooLong { bytes } => damaged(BlobDefect::TooLong { bytes }),
            Unread::Failed(error) if error.kind() == ErrorKind::NotFound => missing(error),
            Unread::Failed(error) => BlobError::unavailable("read", path)(error),
        }
    }

    /// A missing folder, as when a disk is not mounted, is an error, because it does not show which blobs exist.
    fn missing(&self, name: &BlobName) -> impl FnOnce(io::Error) -> BlobError {
        let (folder, name) = (self.folder.clone(), name.clone());
        move |error| match folder.is_dir() {
            true => BlobError::NotFound { name },
            false => BlobError::unavailable("read in the folder", folder)(error),
        }
    }

    fn read_metadata(&self, name: &BlobName) -> Result<BlobMetadata, BlobError> {
        let path = self.sidecar_path(name);
        let damaged = |why: String| BlobError::damaged(name)(BlobDefect::Metadata { why });
        match bounded_file::read(&path, sidecar::BYTES_MAX as u64) {
            Ok(bytes) => sidecar::decode(&bytes).map_err(damaged),
            Err(Unread::NotAFile) => Err(damaged("it is not a regular file".into())),
            Err(Unread::TooLong { bytes }) => Err(damaged(format!("it has {bytes} bytes"))),
            Err(Unread::Failed(error)) if error.kind() == ErrorKind::NotFound => Ok(BlobMetadata::default()),
            Err(Unread::Failed(error)) => Err(BlobError::unavailable("read", path)(error)),
        }
    }

    /// The metadata of a blob that was just read. A blob is removed before its sidecar. So if the sidecar is missing and the blob is still
    /// there, it never had one; if the blob is gone too, it must not be taken for one without metadata.
    fn metadata_of_read(&self, name: &BlobName) -> Result<BlobMetadata, BlobError> {
        let metadata = self.read_metadata(name)?;
        if metadata.is_empty() {
            bounded_file::open(&self.path(name)).map_err(|error| self.unread(name)(Unread::Failed(error)))?;
        }
        Ok(metadata)
    }

    /// Whether these bytes are stored already.
    fn holds(&self, name: &BlobName, parts: &[&[u8]]) -> bool {
        let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        let Ok(file) = bounded_file::read(&self.path(name), bytes as u64) else { return false };
        let mut rest = file.as_slice();
        let is_next = |part: &&[u8]| rest.strip_prefix(*part).inspect(|after| rest = after).is_some();
        parts.iter().all(is_next) && file.len() == bytes
    }

    fn write_sidecar(&self, name: &BlobName, metadata: &BlobMetadata) -> Result<(), BlobError> {
        let meta = self.folder.join(META);
        durable_file::make_folder(&meta)?;
        self.write(&meta, &self.sidecar_path(name), &[&sidecar::encode(metadata)])
    }

    /// Writes a file in `root`, or in a folder of `root` for a name such as `folder/name`.
    fn write(&self, root: &Path, path: &Path, parts: &[&[u8]]) -> Result<(), BlobError> {
        make_folder_of(path, root)?;
        durable_file::write(path.parent().unwrap_or(root), path, parts, self.syncing)?;
        self.sync_above(path, root)
    }

    /// Makes the name of the folder that a file is in survive a power failure, where that is not `root`: another process may have created
    /// it a moment ago.
    fn sync_above(&self, path: &Path, root: &Path) -> Result<(), BlobError> {
        match self.syncing {
            Syncing::Always if path.parent() != Some(root) => durable_file::sync_folder(root),
            _ => Ok(()),
        }
    }

    fn sync_folder_of(&self, path: &Path) -> Result<(), BlobError> {
        match (self.syncing, path.parent()) {
            (Syncing::Always, Some(folder)) => durable_file::sync_folder(folder),
            _ => Ok(()),
        }
    }

    fn read_dir(&self, folder: &Path, operation: &'static str) -> Result<impl Iterator<Item = Result<fs::DirEntry, BlobError>>, BlobError> {
        let folder = folder.to_owned();
        let entries = fs::read_dir(&folder).map_err(BlobError::unavailable(operation, &folder))?;
        Ok(entries.map(move |entry| entry.map_err(BlobError::unavailable(operation, &folder))))
    }

    /// The folders of blobs with names such as `folder/name`.
    pub(super) fn folders(&self) -> Result<Vec<BlobFolder>, BlobError> {
        let mut folders = Vec::new();
        for entry in self.read_dir(&self.folder, "tidy")? {
            let entry = entry?;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.extend(entry.file_name().to_str().and_then(|name| name.parse::<BlobFolder>().ok()));
            }
        }
        Ok(folders)
    }

    /// Removes old unfinished writes among the blobs of a folder, and its sidecars without a blob.
    fn tidy_folder(&self, folder: &BlobFolder) -> Result<(), BlobError> {
        durable_file::sweep(&self.folder.join(folder.as_str()), |_| false)?;
        let meta = self.folder.join(META).join(folder.as_str());
        match meta.is_dir() {
            true => durable_file::sweep(&meta, |name| {
                let blob = name.strip_suffix(SIDECAR_SUFFIX).and_then(|name| folder.name(name).ok());
                blob.is_some_and(|blob| matches!(self.path(&blob).try_exists(), Ok(false)))
            }),
            false => Ok(()),
        }
    }
}

impl Blobs for FolderBlobs {
    fn backend(&self) -> &'static str {
        "folder"
    }

    fn open(&self, name: &BlobName, request: &GetRequest<'_>) -> Result<OpenBlob, BlobError> {
        let (file, bytes) = bounded_file::open_bounded(&self.path(name), request.bytes_max).map_err(self.unread(name))?;
        request.accept(name, OpenBlob { file, bytes, metadata: self.metadata_of_read(name)? })
    }

    fn get_range(&self, name: &BlobName, range: Range<u64>) -> Result<Vec<u8>, BlobError> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        bounded_file::read_range(&self.path(name), range).map_err(self.unread(name))
    }

    fn put(&self, name: &BlobName, parts: &[&[u8]], metadata: &BlobMetadata) -> Result<(), BlobError> {
        let path = self.path(name);
        if self.holds(name, parts) {
            if !metadata.is_empty() && !matches!(self.read_metadata(name), Ok(stored) if stored == *metadata) {
                self.write_sidecar(name, metadata)?;
            }
            // In a read-only folder it keeps its time.
            let _ = self.touch(name);
            // Another process may have renamed it a moment ago and not have synced the folder yet.
            self.sync_folder_of(&path)?;
            return self.sync_above(&path, &self.folder);
        }
        // The sidecar first: a reader that sees the blob also sees its metadata.
        if !metadata.is_empty() {
            self.write_sidecar(name, metadata)?;
        }
        self.write(&self.folder, &path, parts)
    }

    fn staging(&self) -> PathBuf {
        self.folder.clone()
    }

    fn put_staged(&self, name: &BlobName, staged: StagedFile, metadata: &BlobMetadata) -> Result<Option<StagedFile>, BlobError> {
        let path = self.path(name);
        // Replaced files are held until the blob is stored, and freed on another thread: freeing takes time, which would tell that they were there.
        let replaced = [bounded_file::open(&path).ok(), bounded_file::open(&self.sidecar_path(name)).ok()];
        if !metadata.is_empty() {
            self.write_sidecar(name, metadata)?;
        }
        make_folder_of(&path, &self.folder)?;
        durable_file::name(staged.into_temporary(), path.parent().unwrap_or(&self.folder), &path, self.syncing)?;
        self.sync_above(&path, &self.folder)?;
        // Where there is no thread for it, here.
        let _ = std::thread::Builder::new().spawn(move || drop(replaced));
        Ok(None)
    }

    fn exists(&self, name: &BlobName) -> Result<Option<bool>, BlobError> {
        let path = self.path(name);
        match path.symlink_metadata() {
            Ok(_) => Ok(Some(true)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Some(false)),
            Err(error) => Err(BlobError::unavailable("read", path)(error)),
        }
    }

    /// Nothing is copied: a file that is not in its place yet is renamed. One sync for each file and one for each folder.
    fn adopt(&self, files: &[LocalFile<'_>]) -> Result<(), BlobError> {
        let mut folders = Vec::new();
        for LocalFile { name, path, file } in files {
            file.sync_data().map_err(BlobError::unavailable("sync", path))?;
            let place = self.path(name);
            if place != *path {
                make_folder_of(&place, &self.folder)?;
                fs::rename(path, &place).map_err(BlobError::unavailable("name the file", &place))?;
                folders.push(self.folder.clone());
            }
            folders.extend(place.parent().map(Path::to_owned));
        }
        folders.sort_unstable();
        folders.dedup();
        folders.iter().try_for_each(|folder| durable_file::sync_folder(folder))
    }

    fn describe(&self, name: &BlobName) -> Result<BlobInfo, BlobError> {
        let start = bounded_file::read_start::<START_BYTES>(&self.path(name)).map_err(self.unread(name))?;
        let metadata = self.metadata_of_read(name)?;
        let file = Some(start.version);
        Ok(BlobInfo { bytes: start.file_bytes, modified: start.modified, metadata, start: Some(start.bytes), file })
    }

    fn list(&self, folder: &BlobFolder, each: &mut dyn FnMut(ListedBlob) -> ControlFlow<()>) -> Result<(), BlobError> {
        let path = self.folder.join(folder.as_str());
        if *folder != BlobFolder::ROOT && !path.exists() && self.folder.is_dir() {
            return Ok(());
        }
        let failed = || BlobError::unavailable("list", &path);
        for entry in self.read_dir(&path, "list")? {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().and_then(|name| folder.name(name).ok()) else { continue };
            let metadata = match entry.metadata() {
                Ok(metadata) if metadata.is_file() => metadata,
                Ok(_not_a_blob) => continue,
                // Removed meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(failed()(error)),
            };
            let modified = metadata.modified().map_err(failed())?;
            if each(ListedBlob { name, bytes: metadata.len(), modified }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn remove(&self, name: &BlobName) -> Result<(), BlobError> {
        // The blob first, and synced: a sidecar without a blob is harmless, a blob without its sidecar has lost its metadata.
        let path = self.path(name);
        match fs::remove_file(&path) {
            Ok(()) => self.sync_folder_of(&path)?,
            Err(error) if error.kind() == ErrorKind::NotFound => match self.missing(name)(error) {
                BlobError::NotFound { .. } => {}
                gone => return Err(gone),
            },
            Err(error) => return Err(BlobError::unavailable("remove", path)(error)),
        }
        let path = self.sidecar_path(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(BlobError::unavailable("remove", path)(error)),
            _ => Ok(()),
        }
    }

    fn tidy(&self) -> Result<(), BlobError> {
        self.tidy_folder(&BlobFolder::ROOT)?;
        self.folders()?.iter().try_for_each(|folder| self.tidy_folder(folder))
    }

    fn check(&self) -> Result<(), BlobError> {
        durable_file::probe(&self.folder)
    }

    fn until(&self, _: Instant) -> Arc<dyn Blobs> {
        Arc::new(self.clone())
    }

    fn for_user(&self, _: &str) -> Arc<dyn Blobs> {
        Arc::new(self.clone())
    }
}

/// Creates the folder of a name such as `folder/name`. `root` itself is never created: its disk may just not be mounted.
fn make_folder_of(path: &Path, root: &Path) -> Result<(), BlobError> {
    match path.parent() {
        Some(folder) if folder != root => durable_file::make_folder(folder),
        _ => Ok(()),
    }
}
