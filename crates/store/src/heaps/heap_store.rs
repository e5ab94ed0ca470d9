//! Heaps as blobs: named by their key, in the heap file format, with the engine's id as metadata. Every read is verified.

use super::heap_file::{self, Defect, HEADER_BYTES, PAYLOAD_BYTES_MAX};
use crate::blobs::{
    Blob, BlobDefect, BlobError, BlobFolder, BlobInfo, BlobMetadata, BlobName, Blobs, FolderBlobs, GetRequest, Owner, Rejection,
};
use heapstead_types::{EngineId, HeapKey};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// The metadata field with the engine's id.
const ENGINE: &str = "engine";
const FILE_BYTES_MAX: u64 = (HEADER_BYTES + PAYLOAD_BYTES_MAX) as u64;

/// A store of heaps. Its methods block, as those of [`Blobs`] do. Clones share the same blobs.
#[derive(Clone)]
pub struct HeapStore {
    blobs: Arc<dyn Blobs>,
}

impl HeapStore {
    pub fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs }
    }

    /// Heaps as files. Creates the folder if it is missing.
    pub fn in_folder(folder: &Path, owner: Owner) -> Result<Self, HeapStoreError> {
        Ok(Self::new(Arc::new(FolderBlobs::open(folder, owner)?)))
    }

    /// `folder` or `s3`.
    pub fn backend(&self) -> &'static str {
        self.blobs.backend()
    }

    /// Returns the heap of this key, verified whole. A damaged one is left as it is, for inspection.
    pub fn get(&self, key: &HeapKey) -> Result<StoredHeap, HeapStoreError> {
        let verify = |blob: &Blob| -> Result<(), Rejection> {
            heap_file::verify(&blob.bytes, key)?;
            engine_of(&blob.metadata)?;
            Ok(())
        };
        let request = GetRequest { bytes_max: FILE_BYTES_MAX, verify: &verify };
        let blob = self.blobs.get(&name_of(key), &request).map_err(HeapStoreError::about(key))?;
        let engine = engine_of(&blob.metadata).map_err(HeapStoreError::damaged(key))?;
        Ok(StoredHeap { file: blob.bytes, engine })
    }

    /// Stores a heap under the key that the caller computed from these very bytes, with the id of the engine that wrote it, if that is known.
    /// When this returns, both survive a power failure; when it fails, nothing partial is visible under the key. Storing a heap again leaves
    /// its bytes as they are and refreshes its time.
    pub fn put(&self, key: &HeapKey, payload: &[u8], engine: Option<&EngineId>) -> Result<(), HeapStoreError> {
        heap_file::check_length(payload.len() as u64).map_err(HeapStoreError::NotAHeap)?;
        let metadata = match engine {
            None => BlobMetadata::default(),
            Some(engine) => BlobMetadata::default()
                .with(ENGINE, engine.to_string())
                .map_err(|error| HeapStoreError::NotAHeap(Defect::Sidecar { why: error.to_string() }))?,
        };
        self.blobs.put(&name_of(key), &[&heap_file::header(key), payload], &metadata).map_err(HeapStoreError::about(key))
    }

    /// Returns what is known about a heap without reading its payload: it exists and has a valid length, but its bytes may be damaged.
    pub fn describe(&self, key: &HeapKey) -> Result<HeapInfo, HeapStoreError> {
        info(key, self.blobs.describe(&name_of(key)))
    }

    /// As `describe`, but may answer from a local copy: what a run has to know before it begins.
    pub fn glance(&self, key: &HeapKey) -> Result<HeapInfo, HeapStoreError> {
        match info(key, self.blobs.glance(&name_of(key))) {
            // It may be the copy that is damaged.
            Err(HeapStoreError::Damaged { .. }) => self.describe(key),
            answer => answer,
        }
    }

    /// Calls `each` for every heap, in no particular order, until it breaks. Heaps that are stored or removed meanwhile may or may not be
    /// included.
    pub fn list(&self, each: &mut dyn FnMut(ListedHeap) -> ControlFlow<()>) -> Result<(), HeapStoreError> {
        let listed = self.blobs.list(&BlobFolder::ROOT, &mut |blob| match blob.name.as_str().parse() {
            Ok(key) => each(ListedHeap { key, payload_bytes: payload_bytes(blob.bytes), stored_at: blob.modified }),
            // Others may keep files beside the heaps.
            Err(_) => ControlFlow::Continue(()),
        });
        Ok(listed?)
    }

    /// Removes a heap and its metadata. Succeeds if there is none.
    pub fn remove(&self, key: &HeapKey) -> Result<(), HeapStoreError> {
        self.blobs.remove(&name_of(key)).map_err(HeapStoreError::about(key))
    }

    /// Removes what crashes left behind: unfinished writes, and metadata of heaps that are gone.
    pub fn tidy(&self) -> Result<(), HeapStoreError> {
        Ok(self.blobs.tidy()?)
    }

    /// Checks that heaps can be written and read now, by doing so with something that is not a heap.
    pub fn check(&self) -> Result<(), HeapStoreError> {
        Ok(self.blobs.check()?)
    }

    /// The same store, for a caller that waits until this deadline: network requests are given up then.
    #[must_use]
    pub fn until(&self, deadline: Instant) -> Self {
        Self::new(self.blobs.until(deadline))
    }
}

fn name_of(key: &HeapKey) -> BlobName {
    BlobName::of_content(key.digest())
}

fn payload_bytes(file_bytes: u64) -> u64 {
    file_bytes.saturating_sub(HEADER_BYTES as u64)
}

fn info(key: &HeapKey, blob: Result<BlobInfo, BlobError>) -> Result<HeapInfo, HeapStoreError> {
    let blob = blob.map_err(HeapStoreError::about(key))?;
    let checked = match &blob.start {
        Some(start) => heap_file::check_start(start, blob.bytes, key),
        None => heap_file::check_length(payload_bytes(blob.bytes)).map(|()| payload_bytes(blob.bytes)),
    };
    let payload_bytes = checked.map_err(HeapStoreError::damaged(key))?;
    let engine = engine_of(&blob.metadata).map_err(HeapStoreError::damaged(key))?;
    Ok(HeapInfo { key: *key, payload_bytes, stored_at: blob.modified, engine })
}

fn engine_of(metadata: &BlobMetadata) -> Result<Option<EngineId>, Defect> {
    let Some(engine) = metadata.get(ENGINE) else { return Ok(None) };
    engine.parse().map(Some).map_err(|error: <EngineId as std::str::FromStr>::Err| Defect::Sidecar { why: error.to_string() })
}

/// A heap that was verified when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHeap {
    /// Header and payload as they were read: removing the header would copy the rest.
    file: Vec<u8>,
    engine: Option<EngineId>,
}

impl StoredHeap {
    pub fn payload(&self) -> &[u8] {
        self.file.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// The file as it is stored.
    pub fn into_file(self) -> Vec<u8> {
        self.file
    }

    /// The engine that wrote it, if that was stored with it.
    pub fn engine(&self) -> Option<&EngineId> {
        self.engine.as_ref()
    }
}

/// What is known about a heap without its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapInfo {
    pub key: HeapKey,
    pub payload_bytes: u64,
    /// When it was stored last.
    pub stored_at: SystemTime,
    pub engine: Option<EngineId>,
}

/// A heap in a list. Nothing of it was read, so it may be damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedHeap {
    pub key: HeapKey,
    pub payload_bytes: u64,
    /// When it was stored last.
    pub stored_at: SystemTime,
}

/// "Not found", "damaged" and "can't be determined now" are three different errors.
#[derive(Debug, thiserror::Error)]
pub enum HeapStoreError {
    #[error("heap {key} was not found")]
    NotFound { key: HeapKey },
    #[error("heap {key} is damaged: {defect}")]
    Damaged { key: HeapKey, defect: Defect },
    #[error("the bytes to store are not a valid heap: {0}")]
    NotAHeap(Defect),
    /// The store can't be opened, or is unavailable now.
    #[error(transparent)]
    Blobs(#[from] BlobError),
}

impl HeapStoreError {
    fn damaged(key: &HeapKey) -> impl FnOnce(Defect) -> Self {
        let key = *key;
        move |defect| Self::Damaged { key, defect }
    }

    /// What the failure of a blob means for the heap that it is.
    fn about(key: &HeapKey) -> impl FnOnce(BlobError) -> Self {
        let key = *key;
        move |error| match error {
            BlobError::NotFound { .. } => Self::NotFound { key },
            BlobError::Damaged { defect, .. } => {
                let defect = match defect {
                    BlobDefect::NotAFile => Defect::NotAFile,
                    BlobDefect::TooLong { bytes } => Defect::TooLong { bytes: payload_bytes(bytes) },
                    BlobDefect::Metadata { why } => Defect::Sidecar { why },
                };
                Self::Damaged { key, defect }
            }
            BlobError::Rejected { name, why } => match why.downcast() {
                Ok(defect) => Self::Damaged { key, defect: *defect },
                Err(why) => BlobError::Rejected { name, why }.into(),
            },
            unavailable => unavailable.into(),
        }
    }
}
