//! Heaps: who may see which, listing, import and export, tags, quota, deletion, garbage collection, and the cache between store and engine.

mod collection;
mod damaged;
mod deletion;
mod heap_cache;
mod import;
mod library;
pub(crate) mod removal;
pub(crate) mod reservation;
pub(crate) mod signing;
mod tags;
mod upgrade;

pub use collection::{CollectRequest, Collected};
pub use deletion::FileRemoval;
pub use heap_cache::{HOT_BYTES_MAX as HEAP_CACHE_BYTES_MAX, HeapCache};
pub use import::{HeapImport, ImportedHeap};
pub use library::{ExportedHeap, HeapList, HeapSummary, ListHeaps, parse_heap_key};
pub use signing::{SignRequest, SignedHeaps, SkippedHeap};
pub use tags::{HeapTags, TAG_KEY_CHARS_MAX, TAG_VALUE_CHARS_MAX, TAGS_MAX, TaggedHeap, TaggedHeaps, check_tags};
pub use upgrade::UpgradedHeap;

pub(crate) use damaged::DamagedHeaps;
pub(crate) use reservation::HeapReservation;

use crate::Stores;

/// Operations on heaps.
pub struct Heaps<'a>(pub(crate) &'a Stores);
