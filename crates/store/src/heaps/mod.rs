//! Heaps: V8 snapshots, stored as blobs.
//!
//! ```text
//! HeapStore ──► heap_file (the format, its verification)
//!     └───────► Blobs (folder, S3, S3 with a cache)
//! ```

mod heap_file;
mod heap_store;

pub use heap_file::{Defect, HEADER_BYTES, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, header, key_of, verify};
pub use heap_store::{HeapInfo, HeapStore, HeapStoreError, ListedHeap, StoredHeap};
