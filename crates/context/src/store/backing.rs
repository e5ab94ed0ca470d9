//! What a store must offer beyond the trait so that the memory store can flush to it and load from it.

use super::{ContextStore, Pending};
use crate::{Document, SessionId, Timestamp};
use std::sync::Arc;

pub trait Backing: ContextStore {
    /// Marks the start of a process. Returns how the previous process ended.
    fn begin(&self) -> Pending<'_, Option<LastRun>>;

    /// Loads up to `limit` stored contexts in the order of their ids, after the given id.
    fn load(&self, after: Option<SessionId>, limit: usize) -> Pending<'_, Page>;

    /// Atomic.
    fn flush(&self, flush: Flush) -> Pending<'_, ()>;
}

#[derive(Debug, Clone)]
pub struct Saved {
    pub session: SessionId,
    /// Set if the backing knows it.
    pub tenant: Arc<str>,
    /// Empty if it is not known.
    pub owner: Arc<str>,
    pub document: Document,
    pub used_at: Timestamp,
}

#[derive(Debug, Clone, Default)]
pub struct Page {
    pub saved: Vec<Saved>,
    /// Cursor: the last id read, if there may be more.
    pub next: Option<SessionId>,
    /// Damaged, and moved to quarantine.
    pub quarantined: u64,
    /// Encrypted under unknown keys, and left unchanged.
    pub unreadable: u64,
}

/// The changes since the previous flush.
#[derive(Debug, Clone, Default)]
pub struct Flush {
    pub at: Timestamp,
    pub changed: Vec<Saved>,
    pub used: Vec<(SessionId, Timestamp)>,
    pub removed: Vec<SessionId>,
    /// The last flush before the process exits.
    pub last: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRun {
    pub flushed_at: Timestamp,
    /// Whether the process made its last flush.
    pub ended_well: bool,
}
