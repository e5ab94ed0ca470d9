//! Where the server stores its data. It knows bytes, keys and records, not V8, HTTP or MCP.
//!
//! ```text
//! records/  traits for executions, sessions, turns, heaps, tags …, by noun
//! sqlite/   their implementation in SQLite; SQL is nowhere else
//! peers/    other servers on the same database: leases and questions
//! blobs/    named bytes behind one interface: a folder, S3, S3 with a cache
//! heaps/    heaps as blobs: file format, verification, engine id, signature
//! outputs/  console output: a local file while it is written, blobs once it has ended
//! ```
#![forbid(unsafe_code)]

pub mod blobs;
mod database;
#[doc(hidden)]
pub mod fuzzing;
mod heaps;
pub mod outputs;
pub mod peers;
pub mod records;
mod sqlite;

pub use database::Database;
pub use outputs::Outputs;
pub use records::{Records, RecordsError, Tags};
pub use sqlite::Sqlite;

pub use blobs::{BlobError, Blobs, CachedBlobs, FolderBlobs, Owner, S3_DEADLINE_DEFAULT, S3_PART_BYTES, S3Blobs, S3Settings};
pub use heaps::{
    Defect, HEADER_BYTES, HeapInfo, HeapLabel, HeapMac, HeapSigner, HeapStore, HeapStoreError, IncomingHeap, InvalidMac, ListedHeap,
    OpenHeap, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, StagedHeap, StoredHeap, Unsigned, header, key_of, verify,
};
pub use heapstead_sqlite::{CONNECTION_MB as SQLITE_CONNECTION_MB, READERS_MAX};
