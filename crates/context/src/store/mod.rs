//! Where contexts are kept: one trait, and the stores behind it.
//!
//! A store knows ids and bytes. It replaces a document only where it still holds, byte for byte, the one that the caller has read: so nothing is lost when
//! many write at once, in one process or in several. A context that nobody uses for its time to live is gone.

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

/// How long a context is kept that nobody uses.
pub const TTL_DEFAULT: Duration = Duration::from_secs(30 * 60);
/// Sessions held in memory.
pub const SESSIONS_MAX_DEFAULT: usize = 10_000;

pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

pub trait ContextStore: Send + Sync + 'static {
    /// `memory`, `sqlite` or `redis`.
    fn backend(&self) -> &'static str;

    /// What is kept for a session. Being read is being used.
    fn read<'a>(&'a self, access: Access<'a>) -> Pending<'a, Option<Document>>;

    /// Keeps `new` if what is kept now is `expected`, or if nothing is and nothing was expected. False when it is something else.
    fn replace<'a>(&'a self, access: Access<'a>, expected: Option<&'a Document>, new: &'a Document) -> Pending<'a, bool>;

    /// Whether there was one.
    fn remove<'a>(&'a self, access: Access<'a>) -> Pending<'a, bool>;

    /// Moves aside what can't be read, if it is still that. It can be looked at there, and is in nobody's way.
    fn quarantine<'a>(&'a self, access: Access<'a>, found: &'a Document, why: &'a str) -> Pending<'a, bool>;

    /// Lets go of what has expired. To be called now and then, see [`crate::Contexts::keep_up`].
    fn sweep(&self) -> Pending<'_, ()>;

    fn stats(&self) -> Pending<'_, Stats>;

    /// Whether it can be read and written now; for health.
    fn check(&self) -> Pending<'_, ()>;
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Where they can be counted in the time that a look at them may take.
    pub sessions: Option<u64>,
    pub sessions_max: Option<u64>,
    /// Memory of this process that the store itself takes.
    pub memory_bytes: u64,
    pub memory_bytes_max: Option<u64>,
    pub evictions: Evictions,
    /// Moved aside by this process.
    pub quarantined: u64,
}

/// By reason. (Redis lets expired keys go by itself and counts them as `expired_keys`.)
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

    fn check(&self) -> Pending<'_, ()> {
        (**self).check()
    }
}
