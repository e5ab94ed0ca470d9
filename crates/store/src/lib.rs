//! Where heaps, and what is known about them, are kept. It knows bytes and keys, not V8, HTTP or MCP.
//!
//! ```text
//! heaps/     one trait, HeapStore, and the stores behind it: files, S3, either with a cache
//! metadata/  the database of sessions, executions and tags
//! outputs/   what code wrote to its console
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
