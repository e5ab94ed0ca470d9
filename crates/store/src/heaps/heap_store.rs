//! Heaps as blobs: named by their key, in the heap file format, with their label as metadata. Every read is verified.

use super::heap_file::{self, Defect, HEADER_BYTES, PAYLOAD_BYTES_MAX, Verification};
use super::heap_label::{HeapLabel, HeapSigner, Unsigned};
use crate::blobs::{
    BlobDefect, BlobError, BlobFolder, BlobInfo, BlobName, Blobs, FileVersion, FolderBlobs, GetRequest, OpenBlob, Owner, Rejection,
};
use heapstead_types::{EngineId, HeapKey, Principal};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

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

    pub(super) fn blobs(&self) -> &dyn Blobs {
        &*self.blobs
    }

    /// `folder` or `s3`.
    pub fn backend(&self) -> &'static str {
        self.blobs.backend()
    }

    /// Returns the heap of this key, verified whole, but signed by anyone or nobody: it must not be restored. A damaged one is left as it is,
    /// for inspection.
    pub fn get(&self, key: &HeapKey) -> Result<StoredHeap, HeapStoreError> {
        self.open(key)?.read()
    }

    /// As `get`, and the heap is signed with one of the keys.
    pub fn get_signed(&self, key: &HeapKey, signer: &HeapSigner) -> Result<StoredHeap, HeapStoreError> {
        self.open_signed(key, signer)?.read()
    }

    /// Opens the heap of this key, verified whole, to be read piece by piece. As with `get`, it must not be restored.
    pub fn open(&self, key: &HeapKey) -> Result<OpenHeap, HeapStoreError> {
        self.open_if(key, &|_| Ok(()))
    }

    /// As `open`, and the heap is signed with one of the keys.
    pub fn open_signed(&self, key: &HeapKey, signer: &HeapSigner) -> Result<OpenHeap, HeapStoreError> {
        self.open_if(key, &|label| signer.check(key, label))
    }

    fn open_if(&self, key: &HeapKey, check: &dyn Fn(&HeapLabel) -> Result<(), Unsigned>) -> Result<OpenHeap, HeapStoreError> {
        let verify = |blob: &OpenBlob| {
            let mut verification = Verification::default();
            blob.read_pieces(0, &mut |piece| {
                verification.update(piece);
                Ok(())
            })?;
            let verified = || -> Result<(), Rejection> {
                verification.finish(key)?;
                check(&HeapLabel::read(&blob.metadata)?)?;
                Ok(())
            };
            Ok(verified())
        };
        let request = GetRequest { bytes_max: FILE_BYTES_MAX, verify: &verify };
        let blob = self.blobs.open(&name_of(key), &request).map_err(HeapStoreError::about(key))?;
        let label = HeapLabel::read(&blob.metadata).map_err(HeapStoreError::damaged(key))?;
        Ok(OpenHeap { blob, label })
    }

    /// Stores a heap under the key that the caller computed from these very bytes, with its label. When this returns, both survive a power
    /// failure; when it fails, nothing partial is visible under the key. Storing a heap again leaves its bytes as they are and refreshes its
    /// time.
    pub fn put(&self, key: &HeapKey, payload: &[u8], label: &HeapLabel) -> Result<(), HeapStoreError> {
        heap_file::check_length(payload.len() as u64).map_err(HeapStoreError::NotAHeap)?;
        let metadata = label.metadata().map_err(HeapStoreError::NotAHeap)?;
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

    /// The same store, for one owner of heaps: see [`Blobs::for_user`].
    #[must_use]
    pub fn for_owner(&self, owner: &Principal) -> Self {
        Self::new(self.blobs.for_user(owner.as_str()))
    }
}

pub(super) fn name_of(key: &HeapKey) -> BlobName {
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
    let label = HeapLabel::read(&blob.metadata).map_err(HeapStoreError::damaged(key))?;
    Ok(HeapInfo { key: *key, payload_bytes, stored_at: blob.modified, label, file: blob.file })
}

/// A heap that was verified when it was opened. Its bytes stay the same even if the heap is removed.
#[derive(Debug)]
pub struct OpenHeap {
    blob: OpenBlob,
    label: HeapLabel,
}

impl OpenHeap {
    /// Of header and payload.
    pub fn file_bytes(&self) -> u64 {
        self.blob.bytes
    }

    /// The next piece of the file from `offset` on; empty at the end.
    pub fn piece(&self, offset: u64) -> Result<Vec<u8>, HeapStoreError> {
        self.blob.piece(offset).map_err(HeapStoreError::unreadable)
    }

    /// The first piece of the payload.
    pub fn start(&self) -> Result<Vec<u8>, HeapStoreError> {
        self.piece(HEADER_BYTES as u64)
    }

    /// Passes the payload, piece by piece.
    pub fn read_payload(&self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.blob.read_pieces(HEADER_BYTES as u64, each)
    }

    fn read(self) -> Result<StoredHeap, HeapStoreError> {
        Ok(StoredHeap { file: self.blob.read().map_err(HeapStoreError::unreadable)?, label: self.label })
    }

    pub fn label(&self) -> &HeapLabel {
        &self.label
    }
}

/// A heap that was verified when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHeap {
    /// Header and payload as they were read: removing the header would copy the rest.
    file: Vec<u8>,
    label: HeapLabel,
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
        self.label.engine.as_ref()
    }

    pub fn label(&self) -> &HeapLabel {
        &self.label
    }
}

/// What is known about a heap without its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapInfo {
    pub key: HeapKey,
    pub payload_bytes: u64,
    /// When it was stored last.
    pub stored_at: SystemTime,
    pub label: HeapLabel,
    pub file: Option<FileVersion>,
}

impl HeapInfo {
    /// Whether the file may no longer have the bytes that were read when it was `known`. Storing the heap again does not count.
    pub fn may_be_damaged_since(&self, known: &Self) -> bool {
        let was_written = self.file.zip(known.file).is_some_and(|(now, then)| now.was_written_since(&then));
        was_written || self.payload_bytes != known.payload_bytes
    }
}

/// A heap in a list. Nothing of it was read, so it may be damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedHeap {
    pub key: HeapKey,
    pub payload_bytes: u64,
    /// When it was stored last.
    pub stored_at: SystemTime,
}

/// "Not found", "damaged", "not signed" and "can't be determined now" are different errors.
#[derive(Debug, thiserror::Error)]
pub enum HeapStoreError {
    #[error("heap {key} was not found")]
    NotFound { key: HeapKey },
    #[error("heap {key} is damaged: {defect}")]
    Damaged { key: HeapKey, defect: Defect },
    #[error("heap {key} is not restored: {why}")]
    Unsigned { key: HeapKey, why: Unsigned },
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

    /// The bytes of a heap can't be read.
    pub(super) fn unreadable(error: std::io::Error) -> Self {
        BlobError::Unavailable { operation: "read", place: "the heap".into(), error: error.into() }.into()
    }

    /// What the failure of a blob means for the heap that it is.
    pub(super) fn about(key: &HeapKey) -> impl FnOnce(BlobError) -> Self {
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
            BlobError::Rejected { name, why } => match why.downcast().map_err(|why| why.downcast()) {
                Ok(defect) => Self::Damaged { key, defect: *defect },
                Err(Ok(why)) => Self::Unsigned { key, why: *why },
                Err(Err(why)) => BlobError::Rejected { name, why }.into(),
            },
            unavailable => unavailable.into(),
        }
    }
}
