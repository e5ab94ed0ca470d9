//! Errors of a blob store. "Not found", "damaged" and "can't be determined now" are three different errors.

use super::name::BlobName;
use std::io;
use std::path::{Path, PathBuf};

/// Why the caller's own check refused a blob.
pub type Rejection = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    #[error("blob `{name}` was not found")]
    NotFound { name: BlobName },
    #[error("blob `{name}` is damaged: {defect}")]
    Damaged { name: BlobName, defect: BlobDefect },
    #[error("blob `{name}` is damaged: {why}")]
    Rejected { name: BlobName, why: Rejection },
    /// `place` is a path, or an object and its bucket.
    #[error("can't {operation} {place}: {error}")]
    Unavailable { operation: &'static str, place: String, error: Box<dyn std::error::Error + Send + Sync> },
    #[error("S3 settings: {why}")]
    S3Settings { why: String },
    #[error("{} is not a folder", path.display())]
    NotAFolder { path: PathBuf },
    #[error("{} belongs to another user (uid {owner}, this is uid {us})", path.display())]
    ForeignFolder { path: PathBuf, owner: u32, us: u32 },
}

/// What can be wrong with a blob whatever its content means.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlobDefect {
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it has {bytes} bytes, more than expected")]
    TooLong { bytes: u64 },
    #[error("its metadata can't be read: {why}")]
    Metadata { why: String },
}

impl BlobError {
    pub(super) fn unavailable(operation: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let place = path.as_ref().display().to_string();
        move |error| Self::Unavailable { operation, place, error: error.into() }
    }

    pub(super) fn damaged(name: &BlobName) -> impl FnOnce(BlobDefect) -> Self {
        let name = name.clone();
        move |defect| Self::Damaged { name, defect }
    }
}
