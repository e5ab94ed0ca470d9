//! Where a run goes on from, and what becomes of it when that heap is not there.

use crate::heap_access::HeapAccess;
use heapstead_engine::HeapImage;
use heapstead_types::{Failure, HeapKey};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Fresh,
    Heap { key: HeapKey, on_missing: OnMissingHeap },
}

impl Origin {
    pub fn key(self) -> Option<HeapKey> {
        match self {
            Self::Fresh => None,
            Self::Heap { key, .. } => Some(key),
        }
    }
}

/// What becomes of a run whose heap is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissingHeap {
    /// It begins with a fresh heap, and a warning says so.
    Fresh,
    /// It fails, and nothing runs.
    Fail,
}

/// The heap to begin with; none for a fresh one.
pub async fn restore(heaps: &HeapAccess, origin: Origin, warnings: &mut Vec<String>) -> Result<Option<HeapImage>, Failure> {
    let Origin::Heap { key, on_missing } = origin else { return Ok(None) };
    match (heaps.restore(key).await, on_missing) {
        (Ok(heap), _) => Ok(Some(heap)),
        (Err(missing @ Failure::HeapNotFound { .. }), OnMissingHeap::Fresh) => {
            warnings.push(format!("{missing}: the run began with a fresh heap"));
            Ok(None)
        }
        (Err(failure), _) => Err(failure),
    }
}
