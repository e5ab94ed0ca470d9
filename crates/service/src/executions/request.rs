//! The parameters of a run, and the rules that make a request of them.

use super::start_point::{OnMissingHeap, StartPoint};
use crate::sessions::{OnStale, SessionTarget};
use crate::{Caller, Service, ServiceError, check_tags};
use heapstead_engine::SourceText;
use heapstead_store::Tags;
use heapstead_store::records::RunSession;
use heapstead_types::{LimitMaxima, Limits};

/// What a caller asks for. Everything but the code is optional.
#[derive(Debug, Clone, Default)]
pub struct RunParameters {
    pub code: String,
    /// A heap key, or the empty string for a fresh heap. If none, see [`StartPoint::choose`].
    pub heap: Option<String>,
    pub heap_memory_max_mb: Option<i64>,
    pub execution_timeout_secs: Option<i64>,
    pub tags: Option<Tags>,
    /// A session's handle or name. If none, the session of the request or its connection.
    pub session: Option<String>,
    pub on_missing_heap: Option<OnMissingHeap>,
    pub on_stale: OnStale,
    /// Only in an opened session. If none, as the operator decided.
    pub durability: Option<Durability>,
}

/// A run whose parameters were checked and whose session was resolved.
#[derive(Debug, Clone)]
pub struct RunRequest {
    pub code: SourceText,
    pub start: StartPoint,
    pub limits: Limits,
    /// Set on the heap that the run produces.
    pub tags: Option<Tags>,
    pub session: SessionTarget,
    /// What to do if the state of its logical session is lost.
    pub on_stale: OnStale,
    pub durability: Durability,
}

/// What a turn waits for before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Its entry in the journal: the heap is stored later.
    Journal,
    /// Its heap too.
    Snapshot,
}

impl RunRequest {
    /// Its session as the record has it: running extends the session's TTL.
    pub fn run_session(&self, expires_at: jiff::Timestamp) -> Option<RunSession> {
        match &self.session {
            SessionTarget::None => None,
            SessionTarget::Named(name) => Some(RunSession::Named(name.clone())),
            SessionTarget::Opened(session) => Some(RunSession::Opened { id: session.id, logical: session.logical, expires_at }),
        }
    }
}

impl Service {
    /// Checks the parameters of a run whose session was resolved.
    pub(crate) fn run_request(
        &self,
        caller: &Caller,
        session: SessionTarget,
        parameters: RunParameters,
    ) -> Result<RunRequest, ServiceError> {
        let policy = self.policy();
        if policy.require_session && session == SessionTarget::None {
            return Err(ServiceError::SessionRequired);
        }
        let on_missing = parameters.on_missing_heap.unwrap_or(policy.on_missing_heap);
        let start = StartPoint::choose(parameters.heap.as_deref(), &session, on_missing)?;
        if let Some(tags) = &parameters.tags {
            check_tags(tags)?;
        }
        let limits = limits_or(policy.limits, policy.maxima, parameters.heap_memory_max_mb, parameters.execution_timeout_secs)?;
        let code = self.engine().source(&caller.budget_holder(), parameters.code)?;
        // Whoever tags a heap wants one.
        let durability = match parameters.tags {
            Some(_) => Durability::Snapshot,
            None => parameters.durability.unwrap_or(policy.session_durability),
        };
        Ok(RunRequest { code, start, limits, tags: parameters.tags, session, on_stale: parameters.on_stale, durability })
    }
}

/// The server's limits, with what the caller asks for instead.
pub fn limits_or(defaults: Limits, maxima: LimitMaxima, heap_mb: Option<i64>, timeout_secs: Option<i64>) -> Result<Limits, ServiceError> {
    Ok(Limits {
        heap_mb: heap_mb.map_or(Ok(defaults.heap_mb), |mb| maxima.heap_mb("heap_memory_max_mb", mb))?,
        timeout_secs: timeout_secs.map_or(Ok(defaults.timeout_secs), |secs| maxima.timeout_secs("execution_timeout_secs", secs))?,
        ..defaults
    })
}
