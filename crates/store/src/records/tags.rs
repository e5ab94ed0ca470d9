//! Tags: a map of strings per owner and heap. The heap does not have to exist.

use super::RecordsError;
use async_trait::async_trait;
use heapstead_types::{HeapKey, Principal};
use jiff::Timestamp;
use std::collections::BTreeMap;

pub type Tags = BTreeMap<String, String>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaggedHeap {
    pub heap: HeapKey,
    pub tags: Tags,
}

/// Selects heaps whose tags contain every one of these pairs, ordered by key.
#[derive(Debug, Clone, Default)]
pub struct TagQuery {
    pub pairs: Tags,
    pub after: Option<HeapKey>,
    pub limit: Option<u32>,
}

#[async_trait]
pub trait TagRecords: Send + Sync {
    async fn tags(&self, principal: &Principal, heap: HeapKey) -> Result<Tags, RecordsError>;

    /// Replaces all tags of a heap; an empty map deletes them.
    async fn set_tags(&self, principal: &Principal, heap: HeapKey, tags: Tags) -> Result<(), RecordsError>;

    /// Deletes the tags with these names.
    async fn remove_tags(&self, principal: &Principal, heap: HeapKey, keys: Vec<String>) -> Result<(), RecordsError>;

    /// A batch of heaps with tags that were set before, by an owner that does not have the heap.
    async fn stray_tags(&self, set_before: Timestamp) -> Result<Vec<(Principal, HeapKey)>, RecordsError>;

    /// Deletes such tags, unless they were set again or their owner has the heap meanwhile.
    async fn delete_stray_tags(&self, found: Vec<(Principal, HeapKey)>, set_before: Timestamp) -> Result<(), RecordsError>;

    /// The heaps, and whether there are more.
    async fn heaps_by_tags(&self, principal: &Principal, query: TagQuery) -> Result<(Vec<TaggedHeap>, bool), RecordsError>;
}
