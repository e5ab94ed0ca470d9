//! The store trait and its implementations.
//!
//! A store maps ids to bytes. It replaces a document only if it still holds exactly the bytes that the caller has read (compare-and-swap),
//! so concurrent writers in one process or several lose no update. A context that is not used for its TTL is removed.

mod backing;
mod memory;
mod redis;
mod sqlite;

pub use backing::{Backing, Flush, LastRun, Page, Saved};
pub use memory::{FLUSH_EVERY_DEFAULT, Flusher, Loaded, Memory, MemorySettings};
pub use redis::{KEY_PREFIX, QUARANTINE_PREFIX, Redis, RedisSettings};
pub use sqlite::{Durability, Sqlite, SqliteSettings};

use crate::{Access, Document, StoreError};
use serde::Serialize;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// TTL of an unused context.
pub const TTL_DEFAULT: Duration = Duration::from_secs(30 * 60);
/// Maximum number of sessions in memory.
pub const SESSIONS_MAX_DEFAULT: usize = 10_000;
/// What a context counts for besides its document; the triggers in `sqlite/owners.sql` use the same number.
pub const CONTEXT_BYTES: u64 = 512;

pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

pub trait ContextStore: Send + Sync + 'static {
    /// `memory`, `sqlite` or `redis`.
    fn backend(&self) -> &'static str;

    /// The stored document of a session. A read refreshes the TTL.
    fn read<'a>(&'a self, access: Access<'a>) -> Pending<'a, Option<Document>>;

    /// Stores `new` if the stored document equals `expected`, or if there is none and `expected` is `None`. Returns false otherwise. A longer
    /// document fails with [`StoreError::OverQuota`] if its owner would have more than [`Access::owner_bytes_max`].
    fn replace<'a>(&'a self, access: Access<'a>, expected: Option<&'a Document>, new: &'a Document) -> Pending<'a, bool>;

    /// Returns whether there was one.
    fn remove<'a>(&'a self, access: Access<'a>) -> Pending<'a, bool>;

    /// Quarantines an unreadable document if it is still the stored one. The quarantined copy can be inspected and no longer affects the
    /// session.
    fn quarantine<'a>(&'a self, access: Access<'a>, found: &'a Document, why: &'a str) -> Pending<'a, bool>;

    /// Removes expired contexts. Call it periodically, see [`crate::Contexts::keep_up`].
    fn sweep(&self) -> Pending<'_, ()>;

    fn stats(&self) -> Pending<'_, Stats>;

    /// Bytes of all contexts of an owner: their documents, and [`CONTEXT_BYTES`] for each. `None` if the store does not count them.
    fn owner_bytes<'a>(&'a self, owner: &'a str) -> Pending<'a, Option<u64>>;

    /// Whether the store can be read and written now, for health checks.
    fn check(&self) -> Pending<'_, ()>;
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// `None` if they could not be counted in the available time.
    pub sessions: Option<u64>,
    pub sessions_max: Option<u64>,
    /// Memory of this process that the store uses.
    pub memory_bytes: u64,
    pub memory_bytes_max: Option<u64>,
    pub evictions: Evictions,
    /// Quarantined by this process.
    pub quarantined: u64,
}

/// Evictions by reason. (Redis removes expired keys itself and counts them as `expired_keys`.)
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Evictions {
    pub idle: u64,
    pub lru: u64,
    pub memory_pressure: u64,
}

impl Evictions {
    pub fn by_reason(&self) -> [(&'static str, u64); 3] {
        [("idle", self.idle), ("lru", self.lru), ("memory_pressure", self.memory_pressure)]
    }
}

impl<S: ContextStore + ?Sized> ContextStore for Arc<S> {
    fn backend(&self) -> &'static str {
        (**self).backend()
    }

    fn read<'a>(&'a self, access: Access<'a>) -> Pending<'a, Option<Document>> {
        (**self).read(access)
    }

    fn replace<'a>(&'a self, access: Access<'a>, expected: Option<&'a Document>, new: &'a Document) -> Pending<'a, bool> {
        (**self).replace(access, expected, new)
    }

    fn remove<'a>(&'a self, access: Access<'a>) -> Pending<'a, bool> {
        (**self).remove(access)
    }

    fn quarantine<'a>(&'a self, access: Access<'a>, found: &'a Document, why: &'a str) -> Pending<'a, bool> {
        (**self).quarantine(access, found, why)
    }

    fn sweep(&self) -> Pending<'_, ()> {
        (**self).sweep()
    }

    fn stats(&self) -> Pending<'_, Stats> {
        (**self).stats()
    }

    fn owner_bytes<'a>(&'a self, owner: &'a str) -> Pending<'a, Option<u64>> {
        (**self).owner_bytes(owner)
    }

    fn check(&self) -> Pending<'_, ()> {
        (**self).check()
    }
}
