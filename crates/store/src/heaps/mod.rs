//! Heaps: V8 snapshots, stored as blobs.
//!
//! ```text
//! HeapStore ──► heap_file (the format, its verification), heap_label (engine id and signature)
//!     └───────► Blobs (folder, S3, S3 with a cache)
//! ```

mod heap_file;
mod heap_label;
mod heap_store;
mod staged_heap;

pub use heap_file::{Defect, HEADER_BYTES, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, check_start, header, key_of, verify};
pub use heap_label::{HeapLabel, HeapMac, HeapSigner, InvalidMac, Unsigned};
pub use heap_store::{HeapInfo, HeapStore, HeapStoreError, ListedHeap, OpenHeap, StoredHeap};
pub use staged_heap::{IncomingHeap, StagedHeap};
