//! Named bytes with a little metadata: one interface, [`Blobs`], and its implementations. It does not know what the bytes mean.
//!
//! ```text
//!          ┌► FolderBlobs ──► durable_file (atomic, synced writes), bounded_file (careful reads), sidecar (metadata)
//! Blobs ───┼► S3Blobs ──────► s3_settings
//!          └► CachedBlobs ──► one of those, and FolderBlobs for its copies
//! ```
//!
//! The methods block. A blob can be many megabytes to read, hash and sync, which belongs on a thread that may block whatever the backend is.
//! A tokio server wraps a call in `spawn_blocking` once, a backend with an async client waits for it on that same thread, and neither the
//! folder backend nor its tests need a runtime.

mod bounded_file;
mod cached;
mod durable_file;
mod error;
mod file_version;
mod folder;
mod metadata;
mod name;
mod open_blob;
mod s3;
mod s3_settings;
pub(crate) mod sidecar;
mod staged_file;

pub use cached::CachedBlobs;
pub use error::{BlobDefect, BlobError, Rejection};
pub use file_version::FileVersion;
pub use folder::{FolderBlobs, Owner};
pub use metadata::{BlobMetadata, InvalidMetadata};
pub use name::{BlobFolder, BlobName, InvalidName};
pub use open_blob::{GetRequest, OpenBlob};
pub use s3::{PART_BYTES as S3_PART_BYTES, S3Blobs};
pub use s3_settings::{S3_DEADLINE_DEFAULT, S3Settings};
pub use staged_file::StagedFile;

use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// A store of blobs. Several processes may use the same folder or bucket at the same time.
pub trait Blobs: Send + Sync {
    /// `folder` or `s3`.
    fn backend(&self) -> &'static str;

    /// Opens a whole blob that has passed `request.verify`, as a file on this machine, so that it need not fit into memory. A blob that has not
    /// passed is left as it is, for inspection. The opened bytes stay the same whatever happens to the blob.
    fn open(&self, name: &BlobName, request: &GetRequest<'_>) -> Result<OpenBlob, BlobError>;

    /// As `open`, in memory.
    fn get(&self, name: &BlobName, request: &GetRequest<'_>) -> Result<Blob, BlobError> {
        let open = self.open(name, request)?;
        let bytes = open.read().map_err(BlobError::unavailable("read", name.as_str()))?;
        Ok(Blob { bytes, metadata: open.metadata })
    }

    /// Returns the bytes in this range: fewer if the blob ends inside it, none if the blob ends before it. An empty range reads nothing and
    /// does not look whether the blob exists. A part of a blob can't be verified.
    fn get_range(&self, name: &BlobName, range: Range<u64>) -> Result<Vec<u8>, BlobError>;

    /// Stores the parts, one after the other, as one blob, and replaces the one of this name. When this returns, bytes and metadata survive a
    /// power failure. When it fails, nothing partial is visible under the name. Storing the same bytes again leaves them as they are and
    /// refreshes their time. With empty metadata, a folder keeps the metadata that it has for this name.
    fn put(&self, name: &BlobName, parts: &[&[u8]], metadata: &BlobMetadata) -> Result<(), BlobError>;

    /// Where a [`StagedFile`] for `put_staged` is written.
    fn staging(&self) -> PathBuf {
        std::env::temp_dir()
    }

    /// As `put`, with the bytes of a file in the `staging` folder. The blob is written again even if the store has it: the time that this takes
    /// does not tell. Returns the file if the blob is a copy of it.
    fn put_staged(&self, name: &BlobName, staged: StagedFile, metadata: &BlobMetadata) -> Result<Option<StagedFile>, BlobError>;

    /// Whether there is a blob of this name. None if finding out would cost a request.
    fn exists(&self, _name: &BlobName) -> Result<Option<bool>, BlobError> {
        Ok(None)
    }

    /// Makes complete local files into blobs without metadata; they are no longer at their paths afterwards, unless that is where the blobs
    /// lie. Returns when all of them survive a power failure. They become visible in the given order.
    fn adopt(&self, files: &[LocalFile<'_>]) -> Result<(), BlobError>;

    /// Returns what is known about a blob without reading it whole. Its bytes may be damaged.
    fn describe(&self, name: &BlobName) -> Result<BlobInfo, BlobError>;

    /// As `describe`, but may answer from a local copy.
    fn glance(&self, name: &BlobName) -> Result<BlobInfo, BlobError> {
        self.describe(name)
    }

    /// Calls `each` for every blob directly in this folder, in no particular order, until it breaks. Anything whose name is not a valid
    /// [`BlobName`] is skipped. Blobs that are stored or removed meanwhile may or may not be included.
    fn list(&self, folder: &BlobFolder, each: &mut dyn FnMut(ListedBlob) -> ControlFlow<()>) -> Result<(), BlobError>;

    /// Removes a blob and its metadata. Succeeds if there is none.
    fn remove(&self, name: &BlobName) -> Result<(), BlobError>;

    /// Removes what crashes left behind: unfinished writes, and metadata of blobs that are gone.
    fn tidy(&self) -> Result<(), BlobError>;

    /// Checks that blobs can be written and read now, by doing so with something that is not a blob.
    fn check(&self) -> Result<(), BlobError>;

    /// The same blobs, for a caller that waits until this deadline: network requests are given up then. Disk operations can't be interrupted.
    fn until(&self, deadline: Instant) -> Arc<dyn Blobs>;

    /// The same blobs, for one of several users of this process. A cache keeps copies for each of them, because the time that a read takes
    /// shows whether there is a copy.
    fn for_user(&self, user: &str) -> Arc<dyn Blobs>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    pub bytes: Vec<u8>,
    pub metadata: BlobMetadata,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobInfo {
    pub bytes: u64,
    /// When it was stored last.
    pub modified: SystemTime,
    pub metadata: BlobMetadata,
    /// Its first [`START_BYTES`] bytes, from backends where they cost no further request.
    pub start: Option<Vec<u8>>,
    /// None from backends where a blob can't be written to, only replaced.
    pub file: Option<FileVersion>,
}

/// Enough for the header of any of our file formats.
pub const START_BYTES: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedBlob {
    pub name: BlobName,
    pub bytes: u64,
    /// When it was stored last.
    pub modified: SystemTime,
}

/// A file that is complete and is to become a blob.
pub struct LocalFile<'a> {
    pub name: BlobName,
    pub path: &'a Path,
    /// The descriptor that the file was written through: write errors that the system noticed late are reported there.
    pub file: &'a File,
}
