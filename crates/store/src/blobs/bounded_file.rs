//! Reads files that anybody may have put there: only regular ones, and never more than was allowed.

use super::file_version::FileVersion;
use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

/// Why a file was not read.
#[derive(Debug)]
pub enum Unread {
    NotAFile,
    TooLong { bytes: u64 },
    Failed(io::Error),
}

/// The first bytes of a file, its length and its time.
pub struct Start {
    /// Fewer than requested only if the file has no more.
    pub bytes: Vec<u8>,
    pub file_bytes: u64,
    pub modified: SystemTime,
    pub version: FileVersion,
}

pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Unread> {
    let (file, file_bytes) = open_bounded(path, bytes_max)?;
    let mut bytes = Vec::with_capacity(file_bytes as usize);
    // A file that grows meanwhile is not one of ours, and fails its verification.
    file.take(file_bytes).read_to_end(&mut bytes).map_err(Unread::Failed)?;
    Ok(bytes)
}

/// The file and its length.
pub fn open_bounded(path: &Path, bytes_max: u64) -> Result<(File, u64), Unread> {
    let (file, metadata) = open_regular(path)?;
    match metadata.len() {
        bytes if bytes > bytes_max => Err(Unread::TooLong { bytes }),
        bytes => Ok((file, bytes)),
    }
}

pub fn read_start<const BYTES: usize>(path: &Path) -> Result<Start, Unread> {
    let (file, metadata) = open_regular(path)?;
    let mut bytes = Vec::with_capacity(BYTES);
    file.take(BYTES as u64).read_to_end(&mut bytes).map_err(Unread::Failed)?;
    let (modified, version) = (metadata.modified().map_err(Unread::Failed)?, FileVersion::of(&metadata).map_err(Unread::Failed)?);
    Ok(Start { bytes, file_bytes: metadata.len(), modified, version })
}

/// The bytes of this range, as far as the file has them.
pub fn read_range(path: &Path, range: Range<u64>) -> Result<Vec<u8>, Unread> {
    let (file, metadata) = open_regular(path)?;
    let mut bytes = vec![0; range.end.min(metadata.len()).saturating_sub(range.start) as usize];
    file.read_exact_at(&mut bytes, range.start).map_err(Unread::Failed)?;
    Ok(bytes)
}

/// Opens without waiting for a writer, should the path be a pipe.
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)
}

fn open_regular(path: &Path) -> Result<(File, Metadata), Unread> {
    let file = open(path).map_err(Unread::Failed)?;
    let metadata = file.metadata().map_err(Unread::Failed)?;
    match metadata.is_file() {
        true => Ok((file, metadata)),
        false => Err(Unread::NotAFile),
    }
}
