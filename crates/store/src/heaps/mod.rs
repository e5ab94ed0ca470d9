//! Heaps: one trait, and the stores behind it.
//!
//! ```text
//!              ┌► FileHeaps ──┐
//! HeapStore ───┼► S3Heaps ────┴─► heap_file (the format), sidecar (the engine id), atomic_file (whole or not at all)
//!              └► CachedHeaps ──► one of those, and FileHeaps for its copies
//! ```

mod atomic_file;
mod bounded_file;
mod cached_heaps;
mod file_heaps;
mod heap_file;
mod heap_store;
mod s3_heaps;
mod s3_settings;
mod sidecar;

pub use cached_heaps::CachedHeaps;
pub use file_heaps::{FileHeaps, Owner};
pub use heap_file::{Defect, HEADER_BYTES, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, header, key_of, verify};
pub use heap_store::{HeapInfo, HeapStore, HeapStoreError, ListedHeap, StoredHeap};
pub use s3_heaps::S3Heaps;
pub use s3_settings::{S3_DEADLINE_DEFAULT, S3Settings};
