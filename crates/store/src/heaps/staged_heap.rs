//! Heaps on their way into the store: written piece by piece, so that none of them has to fit into memory, and verified before they get their
//! name.

use super::heap_file::{self, Defect, HEADER_BYTES, PAYLOAD_BYTES_MAX};
use super::heap_label::HeapLabel;
use super::heap_store::{HeapStore, HeapStoreError, name_of};
use crate::blobs::StagedFile;
use heapstead_types::HeapKey;
use sha2::{Digest, Sha256};
use std::io;

/// Payload bytes that are kept in memory: a snapshot names its V8 version within them.
const START_BYTES: usize = 256;

/// A complete heap without its name. Dropping it removes it.
pub struct StagedHeap {
    key: HeapKey,
    staged: StagedFile,
    start: Vec<u8>,
}

impl StagedHeap {
    pub fn key(&self) -> HeapKey {
        self.key
    }

    pub fn payload_bytes(&self) -> u64 {
        self.staged.bytes().saturating_sub(HEADER_BYTES as u64)
    }

    /// The first bytes of the payload.
    pub fn start(&self) -> &[u8] {
        &self.start
    }
}

/// A heap file that is being received. Dropping it removes what was received.
pub struct IncomingHeap {
    staged: StagedFile,
    header: Vec<u8>,
    start: Vec<u8>,
    hasher: Sha256,
}

impl IncomingHeap {
    /// Appends bytes of the file. What can't be the beginning of a heap file is refused at once.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), HeapStoreError> {
        let of_header = bytes.len().min(HEADER_BYTES - self.header.len());
        let (header, payload) = bytes.split_at(of_header);
        self.header.extend_from_slice(header);
        heap_file::check_beginning(&self.header).map_err(HeapStoreError::NotAHeap)?;
        let all_bytes = self.staged.bytes() + bytes.len() as u64;
        if all_bytes > (HEADER_BYTES + PAYLOAD_BYTES_MAX) as u64 {
            return Err(HeapStoreError::NotAHeap(Defect::TooLong { bytes: all_bytes - HEADER_BYTES as u64 }));
        }
        self.hasher.update(payload);
        self.start.extend_from_slice(payload.get(..payload.len().min(START_BYTES - self.start.len())).unwrap_or_default());
        Ok(self.staged.write(bytes)?)
    }

    /// The file is complete: it is a heap, or is refused.
    pub fn finish(self) -> Result<StagedHeap, HeapStoreError> {
        heap_file::check_magic(&self.header).map_err(HeapStoreError::NotAHeap)?;
        let payload_bytes = self.staged.bytes().saturating_sub(HEADER_BYTES as u64);
        heap_file::check_length(payload_bytes).map_err(HeapStoreError::NotAHeap)?;
        let key = HeapKey::from_digest(self.hasher.finalize().into());
        if self.header != heap_file::header(&key) {
            return Err(HeapStoreError::NotAHeap(Defect::Checksum));
        }
        Ok(StagedHeap { key, staged: self.staged, start: self.start })
    }
}

impl HeapStore {
    /// Begins to receive a heap file.
    pub fn receive(&self) -> Result<IncomingHeap, HeapStoreError> {
        let staged = StagedFile::create_in(&self.blobs().staging())?;
        Ok(IncomingHeap { staged, header: Vec::new(), start: Vec::new(), hasher: Sha256::new() })
    }

    /// Writes a heap under a temporary name. `chunks` passes on the payload, from which the caller computed the key.
    pub fn stage(
        &self,
        key: &HeapKey,
        chunks: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> Result<StagedHeap, HeapStoreError> {
        let mut staged = StagedFile::create_in(&self.blobs().staging())?;
        staged.write(&heap_file::header(key))?;
        let mut failed = None;
        let read = chunks(&mut |chunk| staged.write(chunk).map_err(|error| io::Error::other(failed.insert(error).to_string())));
        if let Some(error) = failed {
            return Err(error.into());
        }
        read.map_err(HeapStoreError::unreadable)?;
        heap_file::check_length(staged.bytes().saturating_sub(HEADER_BYTES as u64)).map_err(HeapStoreError::NotAHeap)?;
        Ok(StagedHeap { key: *key, staged, start: Vec::new() })
    }

    /// Stores a heap under its key, as `put` does. It is written even if the store has it, so that the time this takes does not tell.
    pub fn store(&self, heap: StagedHeap, label: &HeapLabel) -> Result<(), HeapStoreError> {
        let StagedHeap { key, staged, .. } = heap;
        let metadata = label.metadata().map_err(HeapStoreError::NotAHeap)?;
        self.blobs().put_staged(&name_of(&key), staged, &metadata).map(drop).map_err(HeapStoreError::about(&key))
    }

    /// Whether the store has no file of this heap. None if finding out would cost a request.
    pub fn is_new(&self, key: &HeapKey) -> Result<Option<bool>, HeapStoreError> {
        Ok(self.blobs().exists(&name_of(key))?.map(|exists| !exists))
    }
}
