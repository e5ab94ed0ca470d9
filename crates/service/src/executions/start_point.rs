//! Which heap a run starts from, and what happens if that heap does not exist. In a logical session,
//! `sessions/logical/preparation.rs` replaces the head if the execute session is lost; it imports the catalogs into a heap that the caller names.

use crate::heaps::{HeapCache, parse_heap_key};
use crate::{ServiceError, SessionTarget};
use heapstead_engine::HeapImage;
use heapstead_types::{Failure, HeapKey};

/// The heap that a run restores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputHeap {
    Fresh,
    Heap { key: HeapKey, on_missing: OnMissingHeap },
}

impl InputHeap {
    pub fn key(self) -> Option<HeapKey> {
        match self {
            Self::Fresh => None,
            Self::Heap { key, .. } => Some(key),
        }
    }
}

/// Where a run starts, as decided when it is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartPoint {
    /// The heap that the caller chose.
    Given(InputHeap),
    /// The session's head when the run gets its turn.
    Head { on_missing: OnMissingHeap },
}

impl StartPoint {
    /// The rule. A key selects that heap, the empty string a fresh one. Without the parameter, a run continues from the head of its opened
    /// session; outside of one it gets a fresh heap.
    pub fn choose(heap: Option<&str>, session: &SessionTarget, on_missing: OnMissingHeap) -> Result<Self, ServiceError> {
        Ok(match heap {
            None if let SessionTarget::Opened(session) = session => {
                // A logical session whose head is lost is prepared again instead, and the loss reported.
                Self::Head { on_missing: if session.logical.is_some() { OnMissingHeap::Fail } else { on_missing } }
            }
            None | Some("") => Self::Given(InputHeap::Fresh),
            Some(text) => Self::Given(InputHeap::Heap { key: parse_heap_key("heap", text)?, on_missing }),
        })
    }

    /// The key, if it is known before the turn.
    pub fn key(self) -> Option<HeapKey> {
        match self {
            Self::Given(input) => input.key(),
            Self::Head { .. } => None,
        }
    }

    pub fn input_heap(self, head: Option<HeapKey>) -> InputHeap {
        match (self, head) {
            (Self::Given(input), _) => input,
            (Self::Head { on_missing }, Some(key)) => InputHeap::Heap { key, on_missing },
            (Self::Head { .. }, None) => InputHeap::Fresh,
        }
    }
}

/// What to do if the heap of a run does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissingHeap {
    /// Start with a fresh heap, and add a warning to the record.
    Fresh,
    /// Refuse the run. If the heap disappears while the run waits, the run fails without running.
    Fail,
}

/// Restores the heap to start with; none for a fresh one.
pub async fn restore(heaps: &HeapCache, input: InputHeap, warnings: &mut Vec<String>) -> Result<Option<HeapImage>, Failure> {
    let InputHeap::Heap { key, on_missing } = input else { return Ok(None) };
    match heaps.restore(key).await {
        Ok(heap) => Ok(Some(heap)),
        Err(Failure::HeapNotFound { key }) => missing(key, on_missing, warnings),
        Err(failure) => Err(failure),
    }
}

/// The heap does not exist, or is not the caller's, which looks the same.
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
