//! Reads files that anybody may have put there: only regular ones, and never more than was allowed.

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
}

pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Unread> {
    let (file, metadata) = open_regular(path)?;
    if metadata.len() > bytes_max {
        return Err(Unread::TooLong { bytes: metadata.len() });
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    // A file that grows meanwhile is not one of ours, and fails its verification.
    file.take(metadata.len()).read_to_end(&mut bytes).map_err(Unread::Failed)?;
    Ok(bytes)
}

pub fn read_start<const BYTES: usize>(path: &Path) -> Result<Start, Unread> {
    let (file, metadata) = open_regular(path)?;
    let mut bytes = Vec::with_capacity(BYTES);
    file.take(BYTES as u64).read_to_end(&mut bytes).map_err(Unread::Failed)?;
    Ok(Start { bytes, file_bytes: metadata.len(), modified: metadata.modified().map_err(Unread::Failed)? })
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
