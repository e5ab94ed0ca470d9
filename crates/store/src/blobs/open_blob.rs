//! A blob that is read piece by piece from a file on this machine: the file of a folder, or a download.

use super::error::{BlobDefect, BlobError, Rejection};
use super::metadata::BlobMetadata;
use super::name::BlobName;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// How much is read at once.
const PIECE_BYTES: u64 = 256 << 10;

/// Its file may have lost its name, and is never written any more.
#[derive(Debug)]
pub struct OpenBlob {
    pub file: File,
    pub bytes: u64,
    pub metadata: BlobMetadata,
}

impl OpenBlob {
    /// Passes the bytes from `offset` on, piece by piece.
    pub fn read_pieces(&self, mut offset: u64, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        while offset < self.bytes {
            let piece = self.piece(offset)?;
            each(&piece)?;
            offset += piece.len() as u64;
        }
        Ok(())
    }

    /// The next piece from `offset` on; empty at the end.
    pub fn piece(&self, offset: u64) -> io::Result<Vec<u8>> {
        let mut piece = vec![0; self.bytes.saturating_sub(offset).min(PIECE_BYTES) as usize];
        self.file.read_exact_at(&mut piece, offset)?;
        Ok(piece)
    }

    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.bytes).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

/// What a caller of [`Blobs::open`](super::Blobs::open) accepts.
pub struct GetRequest<'a> {
    /// A longer blob is refused before it is read.
    pub bytes_max: u64,
    /// Called once for the bytes that are returned, and fails if they can't be read. A cache also calls it for a copy, and fetches the blob
    /// again if the copy is rejected.
    pub verify: &'a dyn Fn(&OpenBlob) -> io::Result<Result<(), Rejection>>,
}

impl GetRequest<'_> {
    /// Applies both rules to a blob that was opened. Implementations return nothing else.
    pub fn accept(&self, name: &BlobName, open: OpenBlob) -> Result<OpenBlob, BlobError> {
        if open.bytes > self.bytes_max {
            return Err(BlobError::damaged(name)(BlobDefect::TooLong { bytes: open.bytes }));
        }
        match (self.verify)(&open).map_err(BlobError::unavailable("read", name.as_str()))? {
            Ok(()) => Ok(open),
            Err(why) => Err(BlobError::Rejected { name: name.clone(), why }),
        }
    }
}
