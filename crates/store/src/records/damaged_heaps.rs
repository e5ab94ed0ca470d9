//! Records of heaps that failed verification. A record is removed when the heap is found intact again or is gone.

use super::RecordsError;
use async_trait::async_trait;
use heapstead_types::HeapKey;
use jiff::Timestamp;

#[async_trait]
pub trait DamagedHeapRecords: Send + Sync {
    /// At most `max`, oldest finding first.
    async fn damaged_heaps(&self, max: usize) -> Result<Vec<HeapKey>, RecordsError>;

    async fn add_damaged_heap(&self, key: HeapKey, at: Timestamp) -> Result<(), RecordsError>;

    async fn remove_damaged_heaps(&self, keys: Vec<HeapKey>) -> Result<(), RecordsError>;
}
