//! Heap records: who owns which heap, what each owner knows about it, and whether anything still refers to it. Garbage collection is decided
//! from these. What one owner sees here never depends on what other owners have.

use super::{RecordsError, Removal, Reservation, ReservationId};
use async_trait::async_trait;
use heapstead_types::{EngineId, ExecutionId, HeapKey, Principal, SessionId};
use jiff::Timestamp;

/// A heap to record for an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewHeap {
    pub key: HeapKey,
    pub bytes: u64,
    pub engine: NewHeapEngine,
    /// The reservation under which its bytes were stored. The record takes its place; if it is gone, nothing is recorded.
    pub reservation: Option<ReservationId>,
}

/// The engine of a heap to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewHeapEngine {
    /// A run produced it on this engine.
    Produced(EngineId),
    /// An import named it. If the owner has the heap already, its record keeps the engine that it has.
    Named(Option<EngineId>),
}

/// A heap as its owner knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedHeap {
    pub key: HeapKey,
    pub bytes: u64,
    /// When this owner stored it last.
    pub stored_at: Timestamp,
    pub engine: RecordedEngine,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedEngine {
    /// What this owner's run or import named.
    Known(Option<EngineId>),
    /// A run of this owner stored the heap with an earlier version, which wrote the engine only next to the file.
    InFile,
}

impl RecordedEngine {
    /// The engine, if it is known. `in_file` is what is stored next to the file.
    pub fn or<'a>(&'a self, in_file: Option<&'a EngineId>) -> Option<&'a EngineId> {
        match self {
            Self::Known(engine) => engine.as_ref(),
            Self::InFile => in_file,
        }
    }
}

/// A heap seen by an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundHeap {
    Owned(OwnedHeap),
    /// No owner in this database has it, stores it or is removing it.
    Unowned,
    OfOthers,
}

/// A range of an owner's heaps, in the order of their keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeapRange {
    pub after: Option<HeapKey>,
    pub limit: Option<u32>,
}

/// A heap that nothing of its owner refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnusedHeap {
    pub key: HeapKey,
    pub bytes: u64,
}

/// Result of collecting a heap of one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CollectedHeap {
    /// Something refers to it, or the owner does not have it. Nothing was changed.
    Kept,
    /// The owner no longer has it. Others do, so its file stays.
    Disowned,
    /// Nobody has it any more: its file has to be removed.
    Removing(Removal),
}

/// Result of deleting a heap on request of its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletedHeap {
    /// The owner has no such heap.
    Unknown,
    /// Nothing was changed.
    InUse(HeapUse),
    /// The owner no longer has it. Something else names it, so its file stays.
    Disowned,
    /// Nobody has it any more: its file has to be removed. No server does that yet, so storing the heap again ends the removal.
    Removing(Removal),
    /// Nobody has it any more, but another database may have stored the same file. The reservation counts for the owner until that is
    /// decided.
    Undecided(Reservation),
}

/// What refers to a heap of its owner, so that it can't be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeapUse {
    /// The next run in this session continues from it.
    Head(SessionId),
    /// This execution has not ended and starts from it.
    Execution(ExecutionId),
    /// A run or an import is storing the same heap.
    Storing,
}

#[async_trait]
pub trait HeapRecords: Send + Sync {
    /// Whether a tag, a running execution, a head, or a use or log entry since then refers to this heap, of any owner.
    async fn uses_heap(&self, key: HeapKey, since: Timestamp) -> Result<bool, RecordsError>;

    async fn find_heap(&self, principal: &Principal, key: HeapKey) -> Result<FoundHeap, RecordsError>;

    /// The heaps among these that are [`FoundHeap::Unowned`].
    async fn unowned_heaps(&self, keys: Vec<HeapKey>) -> Result<Vec<HeapKey>, RecordsError>;

    /// An owner's heaps, and whether there are more after them.
    async fn heaps(&self, principal: &Principal, range: HeapRange) -> Result<(Vec<OwnedHeap>, bool), RecordsError>;

    async fn count_heaps(&self, principal: &Principal) -> Result<u64, RecordsError>;

    /// The heaps of an owner that were not used since then and that no tag, session, log entry since then, running execution or reservation of
    /// this owner refers to.
    async fn unused_heaps(&self, principal: &Principal, since: Timestamp, range: HeapRange) -> Result<Vec<UnusedHeap>, RecordsError>;

    /// Removes a heap from its owner if it is unused, as [`unused_heaps`](Self::unused_heaps) decides, in one transaction.
    async fn collect_heap(&self, principal: &Principal, key: HeapKey, since: Timestamp) -> Result<CollectedHeap, RecordsError>;

    /// Removes a heap with its tags from its owner, unless a session, an unfinished execution or a store in progress of this owner refers to
    /// it, in one transaction.
    async fn delete_heap(&self, principal: &Principal, key: HeapKey) -> Result<DeletedHeap, RecordsError>;

    /// Adds a heap to an owner. Idempotent.
    async fn own_heap(&self, principal: &Principal, heap: NewHeap, at: Timestamp) -> Result<(), RecordsError>;

    /// What counts towards the byte quota of an owner.
    async fn used_bytes(&self, principal: &Principal) -> Result<u64, RecordsError>;
}
