//! What every heap store can do, and how it can fail.
//!
//! The methods block. A heap is megabytes to read, hash and sync, which belongs on a thread that may block whatever the backend is; a tokio
//! server wraps a call in `spawn_blocking` once, a backend with an async client waits for it on that same thread, and neither the file
//! backend nor its tests need a runtime.

use super::heap_file::{Defect, HEADER_BYTES};
use heapstead_types::{EngineId, HeapKey};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

pub trait HeapStore: Send + Sync {
    /// `folder` or `s3`.
    fn backend(&self) -> &'static str;

    /// The heap kept under this key, verified whole. What is damaged is left as it is, for inspection.
    fn get(&self, key: &HeapKey) -> Result<StoredHeap, HeapStoreError>;

    /// Keeps a heap under the key that the caller computed from these very bytes, with the id of the engine that wrote it, if that is known. When
    /// this returns, both survive a power cut; when it fails, nothing partial is visible under the key. Putting what is there already leaves its
    /// bytes as they are, and makes it as young as a new one.
    fn put(&self, key: &HeapKey, payload: &[u8], engine: Option<&EngineId>) -> Result<(), HeapStoreError>;

    /// What is known about a heap without reading its payload: so it is there and of a right length, but its bytes may be wrong.
    fn describe(&self, key: &HeapKey) -> Result<HeapInfo, HeapStoreError>;

    /// As `describe`, from a copy where there is one: what a run has to know before it begins.
    fn glance(&self, key: &HeapKey) -> Result<HeapInfo, HeapStoreError> {
        self.describe(key)
    }

    /// Hands out every heap, one after the other in no particular order, until it is told to stop. Heaps that come or go meanwhile may be
    /// among them or not.
    fn list(&self, each: &mut dyn FnMut(ListedHeap) -> ControlFlow<()>) -> Result<(), HeapStoreError>;

    /// Removes a heap and what is known about it. One that is not there is as good as removed.
    fn remove(&self, key: &HeapKey) -> Result<(), HeapStoreError>;

    /// Removes what crashes left behind and nobody can see: unfinished writes, and what was known about heaps that are gone.
    fn tidy(&self) -> Result<(), HeapStoreError>;

    /// Whether heaps could be put and read now: tries it, with something that is no heap.
    fn check(&self) -> Result<(), HeapStoreError>;

    /// The same store, for somebody who waits until then: what goes over a network is given up at that moment. A disk can't be told to stop.
    fn until(&self, deadline: Instant) -> Arc<dyn HeapStore>;
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
    pub(super) fn verified(file: Vec<u8>, engine: Option<EngineId>) -> Self {
        Self { file, engine }
    }

    pub fn payload(&self) -> &[u8] {
        self.file.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// The file as it is kept.
    pub fn into_file(self) -> Vec<u8> {
        self.file
    }

    /// Which engine wrote it; none when that was not kept with it.
    pub fn engine(&self) -> Option<&EngineId> {
        self.engine.as_ref()
    }
}

/// A heap as it is told about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapInfo {
    pub key: HeapKey,
    pub payload_bytes: u64,
    /// When it was put last.
    pub stored_at: SystemTime,
    pub engine: Option<EngineId>,
}

/// A heap as it is listed: nothing of it was read, so it may be damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedHeap {
    pub key: HeapKey,
    pub payload_bytes: u64,
    /// When it was put last.
    pub stored_at: SystemTime,
}

/// "Not found", "damaged" and "can't tell now" are three different things.
#[derive(Debug, thiserror::Error)]
pub enum HeapStoreError {
    #[error("heap {key} was not found")]
    NotFound { key: HeapKey },
    #[error("heap {key} is damaged: {defect}")]
    Damaged { key: HeapKey, defect: Defect },
    /// `place` is a path, or an object and its bucket.
    #[error("can't {operation} {place}: {error}")]
    Unavailable { operation: &'static str, place: String, error: Box<dyn std::error::Error + Send + Sync> },
    #[error("S3 settings: {why}")]
    S3Settings { why: String },
    #[error("what was to be kept is not a heap: {0}")]
    NotAHeap(Defect),
    #[error("{} is not a folder", path.display())]
    NotAFolder { path: PathBuf },
    #[error("{} belongs to another user (uid {owner}, this is uid {us})", path.display())]
    ForeignFolder { path: PathBuf, owner: u32, us: u32 },
}

impl HeapStoreError {
    pub(super) fn unavailable(operation: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let place = path.as_ref().display().to_string();
        move |error| Self::Unavailable { operation, place, error: error.into() }
    }

    pub(super) fn damaged(key: &HeapKey) -> impl FnOnce(Defect) -> Self {
        let key = *key;
        move |defect| Self::Damaged { key, defect }
    }
}
