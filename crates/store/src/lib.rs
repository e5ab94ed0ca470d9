//! Where heaps are kept: one trait, [`HeapStore`], and the backends behind it. It knows bytes and keys, not V8, HTTP or MCP.
//!
//! ```text
//! HeapStore ─► FileHeaps ─► heap_file (the format), sidecar (the engine id), atomic_file (whole or not at all)
//! ```
#![forbid(unsafe_code)]

mod heaps;
pub mod metadata;
pub mod outputs;

pub use metadata::{Durability, Metadata, MetadataError, Tags};
pub use outputs::Outputs;

pub use heaps::{
    CachedHeaps, Defect, FileHeaps, HEADER_BYTES, HeapInfo, HeapStore, HeapStoreError, ListedHeap, Owner, PAYLOAD_BYTES_MAX,
    PAYLOAD_BYTES_MIN, S3_DEADLINE_DEFAULT, S3Heaps, S3Settings, StoredHeap, header, key_of, verify,
};
