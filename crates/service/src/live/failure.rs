//! A checkpoint that could not be written: the turns stay valid, because the journal holds them. Their owner and the operator are told.

use super::LiveSessions;
use heapstead_types::{ErrorCode, Fault, HeapKey, SessionId};
use std::time::{Duration, Instant};

/// After this time a checkpoint is tried again that failed because of the server, or whose process was killed.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct CheckpointFailure {
    /// The state that was to be stored.
    pub state: HeapKey,
    pub why: String,
    pub fault: Fault,
    /// It may work if it is tried again, without a turn in between.
    is_temporary: bool,
    pub at: Instant,
    /// Whether a turn has told the client.
    is_reported: bool,
}

impl CheckpointFailure {
    pub fn new(state: HeapKey, code: ErrorCode, why: String) -> Self {
        let fault = code.fault();
        // The process that wrote it was killed.
        let is_temporary = fault == Fault::Server || code == ErrorCode::WorkerCrashed;
        Self { state, why, fault, is_temporary, at: Instant::now(), is_reported: false }
    }
}

impl LiveSessions {
    /// A checkpoint of the session could not be written. As long as the reason is the same, it is one failure.
    pub(super) fn failed(&self, session: SessionId, failure: CheckpointFailure) {
        if let Some(live) = self.sessions().get_mut(&session) {
            let is_reported = live.failure.as_ref().is_some_and(|before| before.is_reported && before.why == failure.why);
            live.failure = Some(CheckpointFailure { is_reported, ..failure });
        }
    }

    /// A warning for the next turn of a session, once per failure.
    pub fn unreported_failure(&self, session: SessionId) -> Option<String> {
        let mut sessions = self.sessions();
        let failure = sessions.get_mut(&session)?.failure.as_mut().filter(|failure| !failure.is_reported)?;
        failure.is_reported = true;
        Some(format!("the heap of the session could not be stored: {}; the journal holds its turns", failure.why))
    }

    /// Whether the newest state of a session is neither the one that was stored last nor the one that failed last.
    pub(super) fn has_untried(&self, session: SessionId, stored: Option<HeapKey>) -> bool {
        let sessions = self.sessions();
        let Some(live) = sessions.get(&session) else { return false };
        let tried = [stored, live.failure.as_ref().map(|failure| failure.state)];
        live.state.is_some() && tried.iter().any(Option::is_some) && !tried.contains(&live.state)
    }

    /// The newest state of a session was stored by a replay.
    pub(super) fn stored_otherwise(&self, session: SessionId, state: HeapKey) {
        let run =
            self.sessions().get(&session).and_then(|live| live.unstored.iter().find(|(_, turn)| turn.state == state).map(|(run, _)| *run));
        if let Some(run) = run {
            self.stored(session, run);
        }
    }

    /// Sessions whose checkpoint failed a while ago, not because of what is on the heap: it may work now.
    pub(super) fn to_retry(&self) -> Vec<SessionId> {
        let is_due = |failure: &CheckpointFailure| failure.is_temporary && failure.at.elapsed() >= RETRY_PAUSE;
        self.sessions().iter().filter(|(_, live)| live.failure.as_ref().is_some_and(is_due)).map(|(session, _)| *session).collect()
    }
}
