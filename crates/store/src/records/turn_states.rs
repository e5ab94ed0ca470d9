//! States after turns of opened sessions that were acknowledged before their heap was stored. Such a state has an id, which takes the place of a
//! heap key in the log, in the journal and as the head of the session, until its heap is stored, and after that.

use super::{NewHeap, RecordsError};
use async_trait::async_trait;
use heapstead_types::{ExecutionId, HeapKey, Principal};
use jiff::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnState {
    pub id: HeapKey,
    pub execution: ExecutionId,
    pub heap: StateHeap,
}

/// The heap of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateHeap {
    /// It is not stored yet.
    Pending,
    Stored(HeapKey),
    /// The heap of a later turn was stored instead.
    Skipped,
}

impl StateHeap {
    pub fn key(self) -> Option<HeapKey> {
        match self {
            Self::Stored(key) => Some(key),
            Self::Pending | Self::Skipped => None,
        }
    }
}

/// How far a head is ahead of the newest stored heap that leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tail {
    /// None if the turns began with a fresh heap, or their journal is gone.
    pub checkpoint: Option<HeapKey>,
    /// Turns after it.
    pub turns: u64,
}

#[async_trait]
pub trait TurnStateRecords: Send + Sync {
    /// The state with this id. None if it is not one: then it may be the key of a heap.
    async fn turn_state(&self, principal: &Principal, id: HeapKey) -> Result<Option<TurnState>, RecordsError>;

    /// The stored heap behind each of these heaps or states. None for a state whose heap is not stored.
    async fn stored_heaps(&self, ids: Vec<HeapKey>) -> Result<Vec<Option<HeapKey>>, RecordsError>;

    /// The tail of each of these heads, which are heaps or states.
    async fn tails(&self, heads: Vec<HeapKey>) -> Result<Vec<Tail>, RecordsError>;

    /// The state after this run.
    async fn turn_state_of(&self, principal: &Principal, execution: &ExecutionId) -> Result<Option<TurnState>, RecordsError>;

    /// Records why the heap of a state could not be stored: with the state, and with earlier ones of the session that wait for it.
    async fn checkpoint_failed(&self, principal: &Principal, id: HeapKey, why: &str) -> Result<(), RecordsError>;

    /// Records that the heap of a state is stored: with the state, with its execution, and as what its session is resumed from if no later one
    /// is. Earlier states of the session that are pending are skipped. False if the state is gone.
    async fn add_checkpoint(&self, principal: &Principal, id: HeapKey, heap: NewHeap, at: Timestamp) -> Result<bool, RecordsError>;
}
