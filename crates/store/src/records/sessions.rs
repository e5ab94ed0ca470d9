//! Sessions. An *opened* session has a head, the heap that its next run continues from, and ends when it is deleted or its TTL expires. A
//! *named* session is only a log.

use super::RecordsError;
use async_trait::async_trait;
use heapstead_types::{HeapKey, Principal, SessionId, SessionName};
use jiff::Timestamp;
use uuid::Uuid;

/// The session of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunSession {
    /// A session that is only a log.
    Named(SessionName),
    /// An opened session. Running in it extends its TTL, or that of its logical session's execute session, to `expires_at`.
    Opened { id: SessionId, logical: Option<Uuid>, expires_at: Timestamp },
}

impl RunSession {
    pub fn opened(&self) -> Option<SessionId> {
        match self {
            Self::Named(_) => None,
            Self::Opened { id, .. } => Some(*id),
        }
    }

    pub fn logical(&self) -> Option<Uuid> {
        match self {
            Self::Named(_) => None,
            Self::Opened { logical, .. } => *logical,
        }
    }

    /// Its name in execution records and logs.
    pub fn name(&self) -> String {
        match self {
            Self::Named(name) => name.as_str().to_owned(),
            Self::Opened { id, .. } => id.to_string(),
        }
    }
}

/// The head of a session. The sequence grows with every completed run, also when the heap stays the same; preparing a logical session can
/// change the heap without a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Number of completed runs.
    pub sequence: u64,
    pub heap: Option<HeapKey>,
}

#[derive(Debug, Clone)]
pub struct NewSession {
    pub id: SessionId,
    pub principal: Principal,
    /// The connection on which an anonymous caller opened it.
    pub connection: Option<String>,
    pub head: Option<HeapKey>,
    pub at: Timestamp,
    /// None for a logical session: its execute session expires instead.
    pub expires_at: Option<Timestamp>,
}

impl NewSession {
    /// The session as it is right after it was opened.
    pub fn opened(&self, logical: Option<Uuid>) -> OpenedSession {
        OpenedSession {
            id: self.id,
            connection: self.connection.clone(),
            head: self.head,
            sequence: 0,
            created_at: self.at,
            used_at: self.at,
            expires_at: self.expires_at,
            logical,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSession {
    pub id: SessionId,
    pub connection: Option<String>,
    /// The heap, or the state (`turn_states.rs`), that its next run continues from.
    pub head: Option<HeapKey>,
    /// Number of completed runs.
    pub sequence: u64,
    pub created_at: Timestamp,
    pub used_at: Timestamp,
    /// When it expires, or its execute session does. None if it is a logical session without an execute session.
    pub expires_at: Option<Timestamp>,
    /// The logical session that it belongs to.
    pub logical: Option<Uuid>,
}

impl OpenedSession {
    pub fn head(&self) -> Head {
        Head { sequence: self.sequence, heap: self.head }
    }

    /// The same session after its head has moved.
    pub fn at(self, head: Head) -> Self {
        Self { head: head.heap, sequence: head.sequence, ..self }
    }
}

/// A named or logical session that was not used for long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedSession {
    pub principal: Principal,
    pub id: SessionId,
    /// Set if it is a logical session.
    pub logical: Option<Uuid>,
}

/// A page of sessions.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// Only sessions that were opened on this connection.
    pub connection: Option<String>,
    /// Continues after this session, which has to be the owner's.
    pub after: Option<SessionId>,
    pub limit: Option<u32>,
}

#[async_trait]
pub trait SessionRecords: Send + Sync {
    /// Opens a session. False, and nothing is written, if its owner has `sessions_max` already.
    async fn open_session(&self, new: NewSession, sessions_max: Option<u32>) -> Result<bool, RecordsError>;

    /// Whether an owner may open another session.
    async fn has_room_for_session(&self, principal: &Principal, sessions_max: Option<u32>) -> Result<bool, RecordsError>;

    /// An opened session of this owner that has neither ended nor expired.
    async fn opened_session(&self, principal: &Principal, id: SessionId, now: Timestamp) -> Result<Option<OpenedSession>, RecordsError>;

    /// As `opened_session`, found by its logical session.
    async fn opened_session_of_logical(
        &self,
        principal: &Principal,
        logical: Uuid,
        now: Timestamp,
    ) -> Result<Option<OpenedSession>, RecordsError>;

    /// Opened sessions of this owner, oldest first, and whether there are more. None if `filter.after` is not the owner's.
    async fn opened_sessions(
        &self,
        principal: &Principal,
        filter: SessionFilter,
        now: Timestamp,
    ) -> Result<Option<(Vec<OpenedSession>, bool)>, RecordsError>;

    /// The id of a named session. With `create`, a new name becomes a session with an empty log.
    async fn named_session(&self, principal: &Principal, name: &SessionName, create: bool) -> Result<Option<SessionId>, RecordsError>;

    /// The name of the named session whose id or name is this text.
    async fn name_of_session(&self, principal: &Principal, text: &str) -> Result<Option<SessionName>, RecordsError>;

    /// Whether this owner ever opened a session with this id. It may have ended.
    async fn was_opened(&self, principal: &Principal, id: SessionId) -> Result<bool, RecordsError>;

    /// Whether another owner has a session with this id.
    async fn is_session_of_another_owner(&self, principal: &Principal, id: SessionId) -> Result<bool, RecordsError>;

    /// Whether any owner has, or had, a session with this id.
    async fn is_session(&self, id: SessionId) -> Result<bool, RecordsError>;

    /// Refreshes the TTL of a session.
    async fn refresh_session(&self, id: SessionId, at: Timestamp, expires_at: Timestamp) -> Result<(), RecordsError>;

    /// Ends a session. False if there is none or it had ended before.
    async fn end_session(&self, principal: &Principal, id: SessionId, at: Timestamp) -> Result<bool, RecordsError>;

    /// Ends a session whose TTL is over. False if it was used meanwhile or has ended.
    async fn expire_session(&self, principal: &Principal, id: SessionId, now: Timestamp) -> Result<bool, RecordsError>;

    /// A batch of sessions whose TTL is over and that have not been ended.
    async fn expired_sessions(&self, now: Timestamp) -> Result<Vec<(Principal, SessionId)>, RecordsError>;

    /// When the next session or execute session expires.
    async fn next_expiry(&self) -> Result<Option<Timestamp>, RecordsError>;

    /// Deletes a batch of sessions that ended before, with their logs. Until then an ended session is recognised by its id. False when none are
    /// left.
    async fn delete_sessions(&self, before: Timestamp) -> Result<bool, RecordsError>;

    /// Ends a named session: its name is free again. With `unused_since`, only if it was not used since. False if there is none.
    async fn end_named_session(
        &self,
        principal: &Principal,
        id: SessionId,
        unused_since: Option<Timestamp>,
        at: Timestamp,
    ) -> Result<bool, RecordsError>;

    /// A batch of named and logical sessions that were not used since.
    async fn unused_sessions(&self, since: Timestamp) -> Result<Vec<UnusedSession>, RecordsError>;

    /// Deletes a batch of the log of a session that has ended. False when it is empty; then a named session is gone.
    async fn delete_ended_log(&self, id: SessionId) -> Result<bool, RecordsError>;

    /// The heads of these sessions; none for a session that has ended.
    async fn heads(&self, sessions: Vec<SessionId>, now: Timestamp) -> Result<Vec<(SessionId, Option<Head>)>, RecordsError>;
}
