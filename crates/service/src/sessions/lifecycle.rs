//! Opened sessions: open, show, list, fork, end.

use super::Sessions;
use super::logical::Reason;
use super::resolve::{SessionTarget, check_same, session_not_found};
use super::state::SessionState;
use crate::error::Noun;
use crate::events::Topic;
use crate::executions::iso_8601;
use crate::{Caller, ListPage, LongAnswer, ServiceError};
use heapstead_store::records::{NewSession, OpenedSession, SessionFilter, UnusedSession};
use heapstead_types::{ErrorCode, HeapKey, Principal, SessionId};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// An opened session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionView {
    /// 64 hex digits. Pass it as `session` to `run_js` to continue the session. Keep it secret: with it, a caller of the same owner can.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// The heap that the next run continues from; null if nothing has run yet.
    #[schemars(schema_with = "crate::schema::optional_heap_key")]
    pub head: Option<HeapKey>,
    /// Number of completed runs.
    pub runs: u64,
    pub created_at: String,
    pub last_used_at: String,
    /// When it expires unless it is used before; null if it does not expire.
    pub expires_at: Option<String>,
    #[serde(flatten)]
    pub state: SessionState,
}

impl From<OpenedSession> for SessionView {
    fn from(session: OpenedSession) -> Self {
        Self {
            session_id: session.id,
            head: session.head,
            runs: session.sequence,
            created_at: iso_8601(session.created_at),
            last_used_at: iso_8601(session.used_at),
            expires_at: session.expires_at.map(iso_8601),
            state: SessionState::of_head(&session),
        }
    }
}

/// What ending a logical session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndLogical {
    /// It loses its state; it keeps its id and its log, and starts with a fresh heap when it is used again.
    ClearState,
    /// It is deleted with its log: the same intent opens a new session.
    Forget,
}

/// A view without head and expiry.
const VIEW_CHARS_MIN: usize = 200;

/// Opened sessions, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionPage {
    pub sessions: Vec<SessionView>,
    /// Pass this as `cursor` to get the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl LongAnswer for SessionView {}

impl ListPage for SessionPage {
    const MEMBER: &'static str = "sessions";
    type Item = SessionView;

    fn into_items(self) -> (Vec<SessionView>, Option<String>) {
        (self.sessions, self.next_cursor)
    }
}

impl Sessions<'_> {
    pub async fn open(&self, caller: &Caller) -> Result<OpenedSession, ServiceError> {
        self.open_at(caller, None).await
    }

    async fn open_at(&self, caller: &Caller, head: Option<HeapKey>) -> Result<OpenedSession, ServiceError> {
        let now = Timestamp::now();
        let new = NewSession {
            id: SessionId::random(),
            principal: caller.principal.clone(),
            connection: caller.scope().map(str::to_owned),
            head,
            at: now,
            expires_at: Some(self.0.policy.expiry(now)),
        };
        let (opened, max) = (new.opened(None), self.0.policy.quotas.sessions_max);
        if !self.0.records.open_session(new, max).await? {
            return Err(too_many_sessions(max));
        }
        self.0.expiries.notify_one();
        Ok(opened)
    }

    pub async fn show(&self, caller: &Caller, handle: &str) -> Result<SessionView, ServiceError> {
        self.view(self.require(caller, handle).await?).await
    }

    /// The caller's opened sessions. An anonymous caller sees those of its connection.
    pub async fn list_opened(&self, caller: &Caller, cursor: Option<&str>, limit: Option<u32>) -> Result<SessionPage, ServiceError> {
        if caller.principal.is_anonymous() && caller.connection.is_none() {
            cursor.map(parse_cursor).transpose()?;
            return Ok(SessionPage { sessions: Vec::new(), next_cursor: None });
        }
        self.list_opened_of(&caller.principal, caller.scope(), cursor, caller.list_limit(limit, VIEW_CHARS_MIN)).await
    }

    /// All opened sessions of an owner, or those of one connection.
    pub async fn list_opened_of(
        &self,
        principal: &Principal,
        connection: Option<&str>,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<SessionPage, ServiceError> {
        let after = cursor.map(parse_cursor).transpose()?;
        let filter = SessionFilter { connection: connection.map(str::to_owned), after, limit };
        let found = self.0.records.opened_sessions(principal, filter, Timestamp::now()).await?;
        let (sessions, has_more) = found.ok_or_else(|| ServiceError::bad_cursor(cursor.unwrap_or_default()))?;
        let next_cursor = sessions.last().filter(|_| has_more).map(|last| last.id.to_string());
        Ok(SessionPage { sessions: self.views(sessions).await?, next_cursor })
    }

    /// Opens a session at a heap of another one: its head, or any heap that a run in it started from or produced.
    pub async fn fork(&self, caller: &Caller, handle: &str, heap: Option<HeapKey>) -> Result<SessionView, ServiceError> {
        let from = self.require(caller, handle).await?;
        let target = SessionTarget::Opened(from.clone());
        let of_connection = self.of_connection(caller, Some(&target)).await.ok();
        check_same([Some(from.id), caller.entered_id(), of_connection.as_ref().and_then(SessionTarget::opened).map(|session| session.id)])?;
        let head = match heap {
            None => self.stored_head(&from).await?,
            Some(heap) => Some(self.heap_of(caller, &from, heap).await?),
        };
        Ok(self.open_at(caller, head).await?.into())
    }

    /// The heap of the session's head.
    async fn stored_head(&self, session: &OpenedSession) -> Result<Option<HeapKey>, ServiceError> {
        let Some(head) = session.head else { return Ok(None) };
        match self.0.records.stored_heaps(vec![head]).await?.first() {
            Some(Some(key)) => Ok(Some(*key)),
            _ => Err(ServiceError::conflict(
                ErrorCode::Conflict,
                format!("the heap of session `{}` is not stored yet: ask the server for it (`--url`), which stores it first", session.id),
            )),
        }
    }

    /// A heap that the session has, and the caller.
    async fn heap_of(&self, caller: &Caller, session: &OpenedSession, heap: HeapKey) -> Result<HeapKey, ServiceError> {
        let unknown = || ServiceError::not_found(Noun::HeapInSession, &heap.to_string());
        if session.head != Some(heap) && !self.0.records.log_has_heap(session.id, heap).await? {
            return Err(unknown());
        }
        // The log also has heaps that a run was given, even if they did not exist or were another owner's.
        match self.0.heaps().show(caller, heap).await {
            Ok(_) => Ok(heap),
            Err(ServiceError::NotFound { .. }) => Err(unknown()),
            Err(error) => Err(error),
        }
    }

    /// Ends a session and deletes its log: what runs in it is cancelled, and it can't be continued. A named session is deleted; what runs in it
    /// goes on. Heaps stay until they are collected.
    pub async fn end(&self, caller: &Caller, handle: &str, of_logical: EndLogical) -> Result<(), ServiceError> {
        let session = match self.require(caller, handle).await {
            Err(refusal @ (ServiceError::NotFound { .. } | ServiceError::UnknownHandle(_))) => {
                return if self.end_named(caller, handle).await? { Ok(()) } else { Err(refusal) };
            }
            found => found?,
        };
        let (records, now) = (&self.0.records, Timestamp::now());
        let is_ended = match (session.logical, of_logical) {
            (None, _) => records.end_session(&caller.principal, session.id, now).await?,
            (Some(logical), EndLogical::ClearState) => records.lose_execute_session(logical, Reason::Cleared.as_str()).await?,
            (Some(logical), EndLogical::Forget) => records.forget_logical_session(&caller.principal, logical, None, now).await?,
        };
        if !is_ended {
            return Err(session_not_found(handle));
        }
        self.stop(session.id).await?;
        let has_log = session.sequence > 0 && (session.logical.is_none() || of_logical == EndLogical::Forget);
        if has_log { self.delete_log(session.id).await } else { Ok(()) }
    }

    /// False if the caller has no named session with this name or id.
    async fn end_named(&self, caller: &Caller, text: &str) -> Result<bool, ServiceError> {
        let (records, owner) = (&self.0.records, &caller.principal);
        let Some(name) = records.name_of_session(owner, text).await? else { return Ok(false) };
        let Some(id) = records.named_session(owner, &name, false).await? else { return Ok(false) };
        let is_ended = records.end_named_session(owner, id, None, Timestamp::now()).await?;
        self.0.contexts().delete(id).await;
        self.delete_log(id).await?;
        Ok(is_ended)
    }

    /// Deletes named and logical sessions that were not used since.
    pub(crate) async fn end_unused(&self, since: Timestamp) -> Result<(), ServiceError> {
        let records = &self.0.records;
        loop {
            let mut is_changed = false;
            for UnusedSession { principal, id, logical } in records.unused_sessions(since).await? {
                let now = Timestamp::now();
                is_changed |= match logical {
                    Some(logical) => records.forget_logical_session(&principal, logical, Some(since), now).await?,
                    None => records.end_named_session(&principal, id, Some(since), now).await?,
                };
                self.0.contexts().delete(id).await;
                self.delete_log(id).await?;
            }
            if !is_changed {
                return Ok(());
            }
        }
    }

    /// The log of a session that has ended; of one that has not, nothing is deleted. If this process dies, `retention.rs` continues.
    pub(super) async fn delete_log(&self, id: SessionId) -> Result<(), ServiceError> {
        while self.0.records.delete_ended_log(id).await? {}
        Ok(())
    }

    /// Cancels what runs in a session that has ended, and notifies its subscribers.
    pub(super) async fn stop(&self, id: SessionId) -> Result<(), ServiceError> {
        for (execution, server) in self.0.records.executions_running_in(id).await? {
            self.0.executions().stop_everywhere(&execution, &server).await;
            self.0.hub.updated(&Topic::Execution(execution));
        }
        self.0.live.end(id);
        self.0.hub.end(id);
        self.0.contexts().delete(id).await;
        Ok(())
    }
}

fn parse_cursor(text: &str) -> Result<SessionId, ServiceError> {
    text.parse().map_err(|_| ServiceError::bad_cursor(text))
}

pub fn too_many_sessions(max: Option<u32>) -> ServiceError {
    let text = format!("you have {} open sessions, which is as many as an owner may have: end some", max.unwrap_or_default());
    ServiceError::busy(ErrorCode::TooManySessions, text)
}
