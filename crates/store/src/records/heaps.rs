//! Heap records: who owns which heap, when it was last used, and whether anything still refers to it. Garbage collection is decided from these.

use super::RecordsError;
use async_trait::async_trait;
use heapstead_types::{HeapKey, Principal};
use jiff::Timestamp;

#[async_trait]
pub trait HeapRecords: Send + Sync {
    /// Whether a tag, a running execution, a head, or a use or log entry since then refers to this heap.
    async fn uses_heap(&self, key: HeapKey, since: Timestamp) -> Result<bool, RecordsError>;

    /// As `uses_heap`, for the references of one owner only.
    async fn owner_uses_heap(&self, principal: &Principal, key: HeapKey, since: Timestamp) -> Result<bool, RecordsError>;

    /// Whether an owner other than this one has the heap.
    async fn others_have_heap(&self, principal: &Principal, key: HeapKey) -> Result<bool, RecordsError>;

    /// Whether any run or import recorded in this database produced it.
    async fn knows_heap(&self, key: HeapKey) -> Result<bool, RecordsError>;

    /// The heaps among these that this owner has; with `unowned`, also those without an owner in this database.
    async fn owned_heaps(&self, principal: &Principal, keys: Vec<HeapKey>, unowned: bool) -> Result<Vec<HeapKey>, RecordsError>;

    /// Adds a heap to an owner. Idempotent.
    async fn own_heap(&self, principal: &Principal, key: HeapKey, bytes: u64, at: Timestamp) -> Result<(), RecordsError>;

    /// Total size of an owner's heaps.
    async fn heap_bytes(&self, principal: &Principal) -> Result<u64, RecordsError>;

    /// Removes a heap from one owner. Other owners keep it.
    async fn disown_heap(&self, principal: &Principal, key: HeapKey) -> Result<(), RecordsError>;

    /// Deletes the heap's records of all owners.
    async fn delete_heap(&self, key: HeapKey) -> Result<(), RecordsError>;
}
