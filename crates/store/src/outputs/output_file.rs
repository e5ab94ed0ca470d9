//! The text or the index of an output, read by range: from the local file that is being written, or from a blob.

use crate::blobs::{BlobError, BlobName, Blobs};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What is read of a blob at once: a block of the index's text, or the entries of 512 blocks.
const WINDOW_BYTES: u64 = super::line_index::BLOCK_BYTES;

pub enum OutputFile<'a> {
    Local(File),
    Blob(BlobWindows<'a>),
    /// An index that does not exist, because the text is shorter than a block.
    Missing,
}

/// A blob, and the parts of it that were read for this page: looking up a line reads the same few blocks again and again, and each read may
/// be a request over the network.
pub struct BlobWindows<'a> {
    blobs: &'a dyn Blobs,
    name: BlobName,
    windows: RefCell<Vec<(u64, Vec<u8>)>>,
}

impl<'a> OutputFile<'a> {
    pub fn local(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self::Local)
    }

    pub fn blob(blobs: &'a dyn Blobs, name: BlobName) -> Self {
        Self::Blob(BlobWindows { blobs, name, windows: RefCell::default() })
    }

    /// Exactly these bytes.
    pub fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        match self {
            Self::Missing => Err(io::ErrorKind::NotFound.into()),
            Self::Local(file) => {
                let mut bytes = vec![0; (range.end - range.start) as usize];
                file.read_exact_at(&mut bytes, range.start)?;
                Ok(bytes)
            }
            Self::Blob(blob) => {
                let length = range.end - range.start;
                let bytes = if length <= WINDOW_BYTES { blob.read_from_windows(range)? } else { blob.request(range)? };
                if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
            }
        }
    }
}

impl BlobWindows<'_> {
    fn read_from_windows(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
        for window in range.start / WINDOW_BYTES..range.end.div_ceil(WINDOW_BYTES) {
            self.load(window)?;
            let windows = self.windows.borrow();
            let Some((_, loaded)) = windows.iter().find(|(number, _)| *number == window) else { continue };
            let start = range.start.saturating_sub(window * WINDOW_BYTES) as usize;
            let end = loaded.len().min((range.end - window * WINDOW_BYTES).min(WINDOW_BYTES) as usize);
            bytes.extend_from_slice(loaded.get(start..end).unwrap_or_default());
        }
        Ok(bytes)
    }

    fn load(&self, window: u64) -> io::Result<()> {
        if self.windows.borrow().iter().all(|(number, _)| *number != window) {
            let start = window * WINDOW_BYTES;
            let bytes = self.request(start..start + WINDOW_BYTES)?;
            self.windows.borrow_mut().push((window, bytes));
        }
        Ok(())
    }

    fn request(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.blobs.get_range(&self.name, range).map_err(into_io_error)
    }
}

pub fn into_io_error(error: BlobError) -> io::Error {
    match error {
        BlobError::NotFound { .. } => io::Error::new(io::ErrorKind::NotFound, error),
        error => io::Error::other(error),
    }
}
