//! What live sessions take, and how far their checkpoints are behind.

use super::{LiveSession, LiveSessions};
use heapstead_types::{Fault, Principal, SessionId};
use std::time::{Duration, Instant};

/// Totals of live sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveStatus {
    pub sessions: u64,
    /// As it was measured last; what became live since then is not included.
    pub memory_bytes: u64,
    /// Turns whose heap is not stored.
    pub unstored_turns: u64,
    /// The age of the oldest of them.
    pub checkpoint_lag: Duration,
    /// Sessions whose last checkpoint could not be written.
    pub failing: u64,
    /// Why that of one of them could not be.
    pub failure: Option<String>,
}

impl LiveSessions {
    /// Of all live sessions, or of those of one owner.
    pub fn status(&self, of: Option<&Principal>) -> LiveStatus {
        let (now, mut status) = (Instant::now(), LiveStatus::default());
        for live in self.sessions().values().filter(|live| of.is_none_or(|owner| live.principal == *owner)) {
            status.sessions += 1;
            status.memory_bytes += live.memory_bytes();
            status.unstored_turns += live.unstored_turns();
            let age = live.unstored_since().map_or(Duration::ZERO, |since| now.duration_since(since));
            status.checkpoint_lag = status.checkpoint_lag.max(age);
            if let Some(failure) = &live.failure {
                status.failing += 1;
                status.failure.get_or_insert_with(|| failure.why.clone());
            }
        }
        status
    }

    /// Whether a session is live.
    pub fn contains(&self, session: SessionId) -> bool {
        self.sessions().contains_key(&session)
    }

    /// The memory of a live session, in bytes. None if it was not measured yet.
    pub fn memory_bytes(&self, session: SessionId) -> Option<u64> {
        self.sessions().get(&session)?.memory.map(|(_, kib)| kib << 10)
    }

    /// How many sessions have no checkpoint because of the server, and why one of them has none.
    pub fn failure_of_server(&self) -> Option<(u64, String)> {
        let sessions = self.sessions();
        let mut failures = sessions.values().filter_map(|live| live.failure.as_ref()).filter(|failure| failure.fault == Fault::Server);
        let first = failures.next()?;
        Some((1 + failures.count() as u64, first.why.clone()))
    }
}

impl LiveSession {
    /// As it was measured last.
    pub fn memory_bytes(&self) -> u64 {
        self.memory.map_or(0, |(_, kib)| kib << 10)
    }

    pub fn unstored_turns(&self) -> u64 {
        self.unstored.len() as u64
    }

    /// When the oldest turn ended whose heap is not stored. Of turns that were repeated, when that was.
    fn unstored_since(&self) -> Option<Instant> {
        self.unstored.values().map(|turn| turn.ended).min()
    }
}
