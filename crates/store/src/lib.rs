//! Where heaps are kept: one trait, [`HeapStore`], and the backends behind it. It knows bytes and keys, not V8, HTTP or MCP.
//!
//! ```text
//! HeapStore ─► FileHeaps ─► heap_file (the format), sidecar (the engine id), atomic_file (whole or not at all)
//! ```
#![forbid(unsafe_code)]

mod atomic_file;
mod file_heaps;
mod heap_file;
mod heap_store;
mod sidecar;

pub use file_heaps::{FileHeaps, Owner};
pub use heap_file::{Defect, HEADER_BYTES, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, header, key_of, verify};
pub use heap_store::{HeapStore, HeapStoreError, StoredHeap};
