//! Live sessions: opened sessions whose heap is in memory between turns.
//!
//! ```text
//! turn ─► live worker (or: newest stored heap + journal ─► live worker) ─► one commit: end, log entry, journal, head ─► waiting callers
//!                                                                     └─► checkpoint, behind the answer
//! ```
//! A session is live only while its worker has the state that the session's head names. Whatever else moves the head (a run that starts from
//! another heap, another server) makes the worker useless, and it is dropped by the next turn. Nothing is lost with a worker: the journal holds
//! every turn.

mod checkpoints;
pub(crate) mod eviction;
mod failure;
mod materialize;
mod pressure;
mod status;
mod tail;

pub(crate) use checkpoints::Checkpoints;
pub(crate) use materialize::Materialized;
pub(crate) use status::LiveStatus;

use crate::Service;
use crate::monitoring::{EvictionReason, LiveMeter};
use failure::CheckpointFailure;
use heapstead_engine::{LiveTurn, LiveWorker, RunNumber};
use heapstead_store::records::OpenedSession;
use heapstead_types::{BudgetHolder, HeapKey, Principal, SessionId};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
pub(crate) use tail::{UnstoredTail, UnstoredTurn};

/// What the operator allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivePolicy {
    pub is_on: bool,
    /// Memory of all live workers.
    pub memory_mb_max: u64,
    pub per_owner_max: usize,
    /// A session that was not used for so long is evicted.
    pub idle: Duration,
    /// Checkpoints that are written at the same time.
    pub checkpoints_max: usize,
    /// Turns after the last checkpoint, before the next turn waits for one.
    pub tail_turns_max: u64,
    /// Run time of these turns, likewise.
    pub tail_run_time_max: Duration,
}

impl Default for LivePolicy {
    fn default() -> Self {
        Self {
            is_on: true,
            memory_mb_max: heapstead_engine::memory_mb_of_machine() / 4,
            per_owner_max: 1000,
            idle: Duration::from_secs(900),
            checkpoints_max: 1,
            tail_turns_max: 100,
            tail_run_time_max: Duration::from_secs(60),
        }
    }
}

/// The live sessions of this server.
#[derive(Debug, Default)]
pub struct LiveSessions {
    sessions: Mutex<HashMap<SessionId, LiveSession>>,
    pub meter: LiveMeter,
}

#[derive(Debug)]
struct LiveSession {
    worker: LiveWorker,
    /// As it was when it became live, with the expiry that its last run has given it.
    opened: Option<OpenedSession>,
    principal: Principal,
    holder: BudgetHolder,
    /// The heap or state that the worker has. None for a fresh one.
    state: Option<HeapKey>,
    /// Turns of this worker after which no heap is stored.
    unstored: HashMap<RunNumber, UnstoredTurn>,
    /// The last checkpoint, if it could not be written.
    failure: Option<CheckpointFailure>,
    in_turn: bool,
    /// It is evicted after its checkpoint.
    is_leaving: bool,
    used: Instant,
    /// What it took when it was measured, which is done again once it was used.
    memory: Option<(Instant, u64)>,
}

/// The worker of a session, for one turn. If it is dropped, the session is not live any more.
#[derive(Debug)]
pub struct LiveTurnHold {
    sessions: Arc<LiveSessions>,
    session: SessionId,
    pub worker: LiveWorker,
    state: Option<HeapKey>,
    is_returned: bool,
}

impl LiveSessions {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, LiveSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the worker of a session has this state.
    pub fn has(&self, session: SessionId, state: Option<HeapKey>) -> bool {
        self.sessions().get(&session).is_some_and(|live| live.state == state)
    }

    /// The worker of a session, if it has this state. A worker that has not is dropped.
    pub fn take(self: &Arc<Self>, session: SessionId, state: Option<HeapKey>) -> Option<LiveTurnHold> {
        let mut sessions = self.sessions();
        let live = sessions.get_mut(&session)?;
        if live.state != state || live.in_turn {
            sessions.remove(&session);
            return None;
        }
        live.in_turn = true;
        let worker = live.worker.clone();
        Some(LiveTurnHold { sessions: self.clone(), session, worker, state, is_returned: false })
    }

    /// The worker of a session that waits for its next turn, if it has this cap, and its checkpoints keep up.
    pub fn take_idle(self: &Arc<Self>, session: SessionId, heap_mb: u32, policy: &LivePolicy) -> Option<LiveTurnHold> {
        let mut sessions = self.sessions();
        let is_ready = |live: &&mut LiveSession| {
            !live.in_turn && live.worker.heap_mb() == heap_mb && !live.tail().is_full(policy) && live.failure.is_none()
        };
        let live = sessions.get_mut(&session).filter(is_ready).filter(|live| live.worker.seems_alive())?;
        live.in_turn = true;
        Some(LiveTurnHold { sessions: self.clone(), session, worker: live.worker.clone(), state: live.state, is_returned: false })
    }

    /// A worker that was opened for a turn of a session, with this state.
    pub fn add(
        self: &Arc<Self>,
        (principal, holder): (&Principal, &BudgetHolder),
        (session, opened): (SessionId, Option<&OpenedSession>),
        state: Option<HeapKey>,
        unstored: HashMap<RunNumber, UnstoredTurn>,
        worker: LiveWorker,
    ) -> LiveTurnHold {
        let live = LiveSession {
            worker: worker.clone(),
            opened: opened.cloned(),
            principal: principal.clone(),
            holder: holder.clone(),
            state,
            unstored,
            failure: None,
            in_turn: true,
            is_leaving: false,
            used: Instant::now(),
            memory: None,
        };
        if state.is_some() {
            self.meter.resumed();
        }
        self.sessions().insert(session, live);
        LiveTurnHold { sessions: self.clone(), session, worker, state, is_returned: false }
    }

    /// A session of this owner, for a run, if it is live here. It may have ended since on another server. None for a logical session: its
    /// expiry depends on what it is bound to.
    pub fn opened(&self, principal: &Principal, session: SessionId, now: Timestamp) -> Option<OpenedSession> {
        let sessions = self.sessions();
        let live = sessions.get(&session).filter(|live| live.principal == *principal)?;
        let is_valid = |opened: &&OpenedSession| opened.logical.is_none() && opened.expires_at.is_some_and(|expires_at| expires_at > now);
        live.opened.as_ref().filter(is_valid).cloned()
    }

    /// A run was accepted into the session, which then expires later.
    pub fn refreshed(&self, session: SessionId, expires_at: Timestamp) {
        if let Some(opened) = self.sessions().get_mut(&session).and_then(|live| live.opened.as_mut()) {
            opened.expires_at = Some(expires_at);
        }
    }

    /// The worker is of no use any more.
    pub fn remove(&self, session: SessionId) {
        self.sessions().remove(&session);
    }

    /// Removes a session between turns whose processes have all ended. Returns whether it did.
    fn remove_dead(&self, session: SessionId) -> bool {
        let mut sessions = self.sessions();
        let is_dead = sessions.get(&session).is_some_and(|live| !live.in_turn && !live.worker.seems_alive());
        is_dead && sessions.remove(&session).is_some()
    }

    /// The session has ended.
    pub fn end(&self, session: SessionId) {
        if self.sessions().remove(&session).is_some() {
            self.meter.evicted(EvictionReason::Ended);
        }
    }

    /// Another process has continued the session from this state.
    fn end_if_idle(&self, session: SessionId, state: Option<HeapKey>) {
        let mut sessions = self.sessions();
        if sessions.get(&session).is_some_and(|live| !live.in_turn && live.state == state) {
            sessions.remove(&session);
            self.meter.evicted(EvictionReason::Ended);
        }
    }

    pub fn count(&self) -> usize {
        self.sessions().len()
    }

    /// The session whose worker has this state.
    fn session_with(&self, state: HeapKey) -> Option<SessionId> {
        self.sessions().iter().find(|(_, live)| live.state == Some(state)).map(|(session, _)| *session)
    }

    /// The worker of a session and its state, if that is the state after a turn.
    fn current(&self, session: SessionId) -> Option<(LiveWorker, Principal, HeapKey)> {
        let sessions = self.sessions();
        let live = sessions.get(&session)?;
        Some((live.worker.clone(), live.principal.clone(), live.state?))
    }

    /// The state after a run of the session's worker.
    fn state_after(&self, session: SessionId, run: RunNumber) -> Option<HeapKey> {
        let sessions = self.sessions();
        let live = sessions.get(&session)?;
        live.unstored.get(&run).map(|turn| turn.state)
    }

    /// The state after this run is stored: what led to it is forgotten.
    fn stored(&self, session: SessionId, run: RunNumber) {
        if let Some(live) = self.sessions().get_mut(&session) {
            live.stored(run);
        }
    }
}

impl LiveTurnHold {
    /// What the worker has before the turn.
    pub fn state(&self) -> Option<HeapKey> {
        self.state
    }

    /// The turn had no effect.
    pub fn unchanged(mut self) {
        self.returned(None);
    }

    /// The turn is recorded: the worker continues from it, and the session has this state.
    pub async fn commit(mut self, turn: LiveTurn, state: HeapKey, ran: Duration) {
        let run = turn.run();
        self.with_session(|live| match state.is_state() {
            true => drop(live.unstored.insert(run, UnstoredTurn::new(state, ran))),
            false => live.stored(run),
        });
        match turn.commit().await {
            Ok(()) => self.returned(Some(state)),
            Err(failure) => tracing::info!(session = %self.session, %failure, "a live worker has ended"),
        }
    }

    fn returned(&mut self, state: Option<HeapKey>) {
        self.is_returned = self.with_session(|live| {
            live.state = state.or(live.state);
            (live.in_turn, live.used) = (false, Instant::now());
        });
    }

    /// False if the session is not live any more, or with another worker, which has another state.
    fn with_session(&self, change: impl FnOnce(&mut LiveSession)) -> bool {
        let mut sessions = self.sessions.sessions();
        sessions.get_mut(&self.session).filter(|live| live.worker.is(&self.worker)).map(change).is_some()
    }
}

impl LiveSession {
    /// The state after this run is stored.
    fn stored(&mut self, run: RunNumber) {
        self.unstored.retain(|number, _| *number > run);
        self.failure = None;
    }
}

impl Drop for LiveTurnHold {
    fn drop(&mut self) {
        if !self.is_returned && self.with_session(|_| ()) {
            self.sessions.remove(self.session);
        }
    }
}

impl Service {
    /// Whether sessions can be live here.
    pub(crate) fn can_be_live(&self) -> bool {
        self.policy().live.is_on && self.runtime.engine.live().is_ok()
    }
}
