//! Heaps: who may see which, listing, import and export, tags, garbage collection, and the cache between store and engine.

mod collection;
mod damaged;
mod heap_cache;
mod library;
mod tags;

pub use collection::{CollectRequest, Collected};
pub use heap_cache::HeapCache;
pub use library::{HeapList, HeapSummary, ImportedHeap, parse_heap_key};
pub use tags::{HeapTags, TAG_KEY_CHARS_MAX, TAG_VALUE_CHARS_MAX, TAGS_MAX, TaggedHeap, TaggedHeaps, check_tags};

pub(crate) use damaged::DamagedHeaps;

use crate::Stores;

/// Operations on heaps.
pub struct Heaps<'a>(pub(crate) &'a Stores);
