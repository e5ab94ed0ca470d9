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
mod materialize;

pub(crate) use checkpoints::Checkpoints;

use crate::sessions::EndLogical;
use crate::{Caller, Service, ServiceError};
use heapstead_engine::{Engine, LiveTurn, LiveWorker, RunNumber};
use heapstead_types::{BudgetHolder, HeapKey, Principal, SessionId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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
        }
    }
}

/// The live sessions of this server.
#[derive(Debug, Default)]
pub struct LiveSessions {
    sessions: Mutex<HashMap<SessionId, LiveSession>>,
}

#[derive(Debug)]
struct LiveSession {
    worker: LiveWorker,
    principal: Principal,
    holder: BudgetHolder,
    /// The heap or state that the worker has. None for a fresh one.
    state: Option<HeapKey>,
    /// States after turns of this worker.
    states: HashMap<RunNumber, HeapKey>,
    in_turn: bool,
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
    is_returned: bool,
}

impl LiveSessions {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, LiveSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
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
        Some(LiveTurnHold { sessions: self.clone(), session, worker, is_returned: false })
    }

    /// A worker that was opened for a turn of a session, with this state.
    pub fn add(
        self: &Arc<Self>,
        (principal, holder): (&Principal, &BudgetHolder),
        session: SessionId,
        state: Option<HeapKey>,
        worker: LiveWorker,
    ) -> LiveTurnHold {
        let live = LiveSession {
            worker: worker.clone(),
            principal: principal.clone(),
            holder: holder.clone(),
            state,
            states: HashMap::new(),
            in_turn: true,
            used: Instant::now(),
            memory: None,
        };
        self.sessions().insert(session, live);
        LiveTurnHold { sessions: self.clone(), session, worker, is_returned: false }
    }

    pub fn remove(&self, session: SessionId) {
        self.sessions().remove(&session);
    }

    pub fn count(&self) -> usize {
        self.sessions().len()
    }

    /// Turns of a session since its last checkpoint, as far as its worker has made them.
    pub fn tail(&self, session: SessionId) -> u64 {
        self.sessions().get(&session).map_or(0, |live| live.states.len() as u64)
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
        live.states.get(&run).copied()
    }

    /// The state after this run is stored: what led to it is forgotten.
    fn stored(&self, session: SessionId, run: RunNumber) {
        if let Some(live) = self.sessions().get_mut(&session) {
            live.states.retain(|number, _| *number > run);
        }
    }
}

impl LiveTurnHold {
    /// The turn had no effect.
    pub fn unchanged(mut self) {
        self.returned(None);
    }

    /// The turn is recorded: the worker continues from it, and the session has this state.
    pub async fn commit(mut self, turn: LiveTurn, state: HeapKey) {
        let run = turn.run();
        if let Some(live) = self.sessions.sessions().get_mut(&self.session) {
            live.states.extend(run.map(|run| (run, state)));
        }
        match turn.commit().await {
            Ok(()) => self.returned(Some(state)),
            Err(failure) => tracing::info!(session = %self.session, %failure, "a live worker has ended"),
        }
    }

    fn returned(&mut self, state: Option<HeapKey>) {
        if let Some(live) = self.sessions.sessions().get_mut(&self.session) {
            live.state = state.or(live.state);
            (live.in_turn, live.used) = (false, Instant::now());
            self.is_returned = true;
        }
    }
}

impl Drop for LiveTurnHold {
    fn drop(&mut self) {
        if !self.is_returned {
            self.sessions.remove(self.session);
        }
    }
}

impl Service {
    /// Ends a session, and its worker if it is live. See [`crate::Sessions::end`].
    pub async fn end_session(&self, caller: &Caller, handle: &str, of_logical: EndLogical) -> Result<(), ServiceError> {
        let session = match self.runtime.live.count() {
            0 => None,
            _ => self.sessions().require(caller, handle).await.ok().map(|session| session.id),
        };
        self.sessions().end(caller, handle, of_logical).await?;
        if let Some(session) = session {
            self.runtime.live.remove(session);
        }
        Ok(())
    }
}

/// Whether sessions can be live here, or why not.
pub fn availability(engine: &Engine, policy: &LivePolicy) -> Result<(), String> {
    if !policy.is_on {
        return Err("it is switched off (`--live off`)".into());
    }
    engine.live().clone()
}
