//! What every heap store can do, and how it can fail.
//!
//! The methods block. A heap is megabytes to read, hash and sync, which belongs on a thread that may block whatever the backend is; a tokio
//! server wraps a call in `spawn_blocking` once, a backend with an async client waits for it on that same thread, and neither the file
//! backend nor the tests need a runtime.

use crate::heap_file::{Defect, HEADER_BYTES};
use heapstead_types::{EngineId, HeapKey};
use std::io;
use std::path::PathBuf;

pub trait HeapStore: Send + Sync {
    /// The heap kept under this key, verified whole.
    fn get(&self, key: &HeapKey) -> Result<StoredHeap, HeapStoreError>;

    /// Keeps a heap and the id of the engine that wrote it. When this returns, both survive a power cut; when it fails, nothing partial is
    /// visible under the key. Putting what is there already is cheap and changes nothing.
    fn put(&self, payload: &[u8], engine: &EngineId) -> Result<HeapKey, HeapStoreError>;
}

/// A heap that was verified when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHeap {
    /// Header and payload, as they were read: cutting the header off would copy the rest.
    file: Vec<u8>,
    engine: Option<EngineId>,
}

impl StoredHeap {
    /// `file` has passed [`verify`](crate::verify).
    pub(crate) fn verified(file: Vec<u8>, engine: Option<EngineId>) -> Self {
        Self { file, engine }
    }

    pub fn payload(&self) -> &[u8] {
        self.file.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// Which engine wrote it; none when that was not kept with it.
    pub fn engine(&self) -> Option<&EngineId> {
        self.engine.as_ref()
    }
}

/// "Not found", "damaged" and "can't tell now" are three different things.
#[derive(Debug, thiserror::Error)]
pub enum HeapStoreError {
    #[error("heap {key} was not found")]
    NotFound { key: HeapKey },
    #[error("heap {key} is damaged: {defect}")]
    Damaged { key: HeapKey, defect: Defect },
    #[error("can't {operation} {}: {error}", path.display())]
    Unavailable { operation: &'static str, path: PathBuf, error: io::Error },
    #[error("what was to be kept is not a heap: {0}")]
    NotAHeap(Defect),
    #[error("{} is not a folder", path.display())]
    NotAFolder { path: PathBuf },
    #[error("{} belongs to another user (uid {owner}, this is uid {us})", path.display())]
    ForeignFolder { path: PathBuf, owner: u32, us: u32 },
}

impl HeapStoreError {
    pub(crate) fn unavailable(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Unavailable { operation, path, error }
    }
}
