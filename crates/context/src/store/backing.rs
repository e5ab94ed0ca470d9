//! What a store must offer beyond the trait so that the memory store can flush to it and load from it.

use super::{ContextStore, Pending};
use crate::{Document, SessionId, Timestamp};
use std::sync::Arc;

pub trait Backing: ContextStore {
    /// A process begins to use it; how the one before it ended.
    fn begin(&self) -> Pending<'_, Option<LastRun>>;

    /// What is kept, in the order of the ids, `limit` at most and after this one.
    fn load(&self, after: Option<SessionId>, limit: usize) -> Pending<'_, Page>;

    /// All of it, or nothing.
    fn flush(&self, flush: Flush) -> Pending<'_, ()>;
}

#[derive(Debug, Clone)]
pub struct Saved {
    pub session: SessionId,
    /// Where the backing knows it.
    pub tenant: Arc<str>,
    pub document: Document,
    pub used_at: Timestamp,
}

#[derive(Debug, Clone, Default)]
pub struct Page {
    pub saved: Vec<Saved>,
    /// The last one looked at, if there may be more.
    pub next: Option<SessionId>,
    /// Damaged, and moved aside.
    pub quarantined: u64,
    /// Under keys that are not known; left untouched.
    pub unreadable: u64,
}

/// What happened since the last one.
#[derive(Debug, Clone, Default)]
pub struct Flush {
    pub at: Timestamp,
    pub changed: Vec<Saved>,
    pub used: Vec<(SessionId, Timestamp)>,
    pub removed: Vec<SessionId>,
    /// The process ends with this one.
    pub last: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRun {
    pub flushed_at: Timestamp,
    /// Whether that was its last act.
    pub ended_well: bool,
}
