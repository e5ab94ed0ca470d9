//! Whether a file was written to since it was read.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

/// A file at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion {
    inode: u64,
    /// An inode is used again after its file is gone. None where the file system does not store it.
    created: Option<SystemTime>,
    modified: SystemTime,
}

impl FileVersion {
    pub(super) fn of(metadata: &Metadata) -> io::Result<Self> {
        Ok(Self { inode: metadata.ino(), created: metadata.created().ok(), modified: metadata.modified()? })
    }

    /// Whether this file was written to since `known`. That another file has taken its place does not count: blobs are stored that way, and
    /// if others store a blob again, it must not make a difference to whoever has read it.
    pub fn was_written_since(&self, known: &Self) -> bool {
        (self.inode, self.created) == (known.inode, known.created) && self.modified != known.modified
    }
}
