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

/// Where a run of a session goes on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartsFrom {
    /// What its caller says.
    Given(Origin),
    /// The head that the session has when the run comes to its turn.
    Head { on_missing: OnMissingHeap },
}

impl StartsFrom {
    /// What is known of it before its turn.
    pub fn key(self) -> Option<HeapKey> {
        match self {
            Self::Given(origin) => origin.key(),
            Self::Head { .. } => None,
        }
    }

    pub fn origin(self, head: Option<HeapKey>) -> Origin {
        match (self, head) {
            (Self::Given(origin), _) => origin,
            (Self::Head { on_missing }, Some(key)) => Origin::Heap { key, on_missing },
            (Self::Head { .. }, None) => Origin::Fresh,
        }
    }
}

/// What becomes of a run whose heap is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissingHeap {
    /// It begins with a fresh heap, and a warning says so.
    Fresh,
    /// It is refused; where the heap goes while it waits, it fails, and nothing runs.
    Fail,
}

/// The heap to begin with; none for a fresh one.
pub async fn restore(heaps: &HeapAccess, origin: Origin, warnings: &mut Vec<String>) -> Result<Option<HeapImage>, Failure> {
    let Origin::Heap { key, on_missing } = origin else { return Ok(None) };
    match (heaps.restore(key).await, on_missing) {
        (Ok(heap), _) => Ok(Some(heap)),
        (Err(Failure::HeapNotFound { key }), on_missing) => missing(key, on_missing, warnings),
        (Err(failure), _) => Err(failure),
    }
}

/// What becomes of a run whose heap is not there, or not its caller's, which is the same.
pub fn missing(key: HeapKey, on_missing: OnMissingHeap, warnings: &mut Vec<String>) -> Result<Option<HeapImage>, Failure> {
    let missing = Failure::HeapNotFound { key };
    match on_missing {
        OnMissingHeap::Fail => Err(missing),
        OnMissingHeap::Fresh => {
            warnings.push(format!("{missing}: the run began with a fresh heap"));
            Ok(None)
        }
    }
}
