//! The turns of a live session whose heap is not stored. They are repeated if it has to be resumed, so their number and run time are bounded.

use super::{LivePolicy, LiveSession, LiveSessions};
use heapstead_types::{HeapKey, SessionId};
use std::time::{Duration, Instant};

/// A turn after which no heap is stored.
#[derive(Debug, Clone, Copy)]
pub struct UnstoredTurn {
    pub state: HeapKey,
    pub ended: Instant,
    pub ran: Duration,
}

impl UnstoredTurn {
    /// One that has just ended.
    pub fn new(state: HeapKey, ran: Duration) -> Self {
        Self { state, ended: Instant::now(), ran }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnstoredTail {
    pub turns: u64,
    /// What they took when they ran.
    pub ran: Duration,
    /// Why the last checkpoint could not be written.
    pub failure: Option<String>,
}

impl UnstoredTail {
    /// Whether the next turn has to wait for a checkpoint.
    pub fn is_full(&self, policy: &LivePolicy) -> bool {
        self.turns >= policy.tail_turns_max || self.ran >= policy.tail_run_time_max
    }
}

impl LiveSessions {
    /// The turns that led to this state of a session. Empty for a session that is not live.
    pub fn tail(&self, session: SessionId, state: Option<HeapKey>) -> UnstoredTail {
        self.sessions().get(&session).filter(|live| live.state == state).map(LiveSession::tail).unwrap_or_default()
    }

    /// Only so many turns that led to this state have no heap: the heap of one before them was stored on demand.
    pub fn shorten_tail(&self, session: SessionId, state: Option<HeapKey>, turns: u64) {
        let mut sessions = self.sessions();
        let Some(live) = sessions.get_mut(&session).filter(|live| live.state == state) else { return };
        let mut runs: Vec<_> = live.unstored.keys().copied().collect();
        runs.sort_unstable();
        let stored = runs.len().saturating_sub(turns as usize);
        runs.truncate(stored);
        live.unstored.retain(|run, _| !runs.contains(run));
    }
}

impl LiveSession {
    pub(super) fn tail(&self) -> UnstoredTail {
        let ran = self.unstored.values().map(|turn| turn.ran).sum();
        UnstoredTail { turns: self.unstored_turns(), ran, failure: self.failure.as_ref().map(|failure| failure.why.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_bounded_by_turns_and_by_run_time() {
        let policy = LivePolicy { tail_turns_max: 3, tail_run_time_max: Duration::from_secs(10), ..LivePolicy::default() };
        for (turns, secs, is_full) in [(0, 0, false), (2, 9, false), (3, 0, true), (1, 10, true)] {
            let tail = UnstoredTail { turns, ran: Duration::from_secs(secs), failure: None };
            assert_eq!(tail.is_full(&policy), is_full, "{tail:?}");
        }
    }
}
