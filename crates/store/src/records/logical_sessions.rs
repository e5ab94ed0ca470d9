//! Logical sessions, which hosts name by intent and which never expire, and the execute sessions they are bound to: a symbol space each, and
//! the heap that holds it.

use super::{NewHeap, NewImport, NewSession, NewTurn, RecordsError};
use async_trait::async_trait;
use heapstead_types::{ExecutionId, HeapKey, Principal, ServerId, SessionId};
use jiff::Timestamp;
use uuid::Uuid;

#[derive(Debug, Clone)]
pub struct NewLogicalSession {
    pub id: Uuid,
    pub session: NewSession,
    /// The same intent in two scopes means two logical sessions.
    pub scope: String,
    pub intent: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogicalSession {
    pub id: Uuid,
    /// The intent that it was opened with.
    pub intent: String,
    pub session: SessionId,
    /// The head of its session.
    pub head: Option<HeapKey>,
    /// The server that used it last.
    pub server: ServerId,
    /// A notice about its continuity that no caller has received yet, as JSON.
    pub pending_notice: Option<String>,
    /// The execute session it is bound to, lost or not.
    pub execute: Option<ExecuteSession>,
}

/// A symbol space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecuteSession {
    /// 32 hex digits.
    pub id: String,
    pub reuse_key: String,
    pub prompt_hash: String,
    /// Its symbols and their catalogs, as JSON.
    pub symbols: String,
    /// How often it has grown.
    pub revision: u64,
    /// Its heap while another execute session is bound in its place.
    pub head: Option<HeapKey>,
    pub expires_at: Timestamp,
    /// Why it was lost, if it was.
    pub lost: Option<String>,
}

/// Result of opening a logical session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenedLogicalSession {
    Opened,
    /// The intent has one already. Nothing was written.
    Exists(Box<LogicalSession>),
    /// Its owner has the maximum number of sessions. Nothing was written.
    TooMany,
}

/// A change to the binding of a logical session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    pub logical: Uuid,
    /// The execute session from now on: a new one, one that has grown, or one that is reused.
    pub execute: ExecuteSession,
    /// Why the previous execute session was lost. None if it continues, or is only set aside.
    pub replaces: Option<String>,
    /// The new head of the session. If none, an execute session that continues keeps the head, a reused one gets the
    /// heap that it was set aside with, and a new one has no head until a run completes.
    pub head: Option<NewHeap>,
    /// The import that produced it.
    pub import: Option<NewImport>,
    /// The first turn of the session that its new head does not contain. It and those after it count as undone.
    pub undone_from: Option<u64>,
    /// A notice to store until a caller receives it, as JSON.
    pub pending_notice: Option<String>,
}

#[async_trait]
pub trait LogicalSessionRecords: Send + Sync {
    async fn logical_session(&self, principal: &Principal, id: Uuid) -> Result<Option<LogicalSession>, RecordsError>;

    async fn logical_session_of_intent(
        &self,
        principal: &Principal,
        scope: &str,
        intent: &str,
    ) -> Result<Option<LogicalSession>, RecordsError>;

    /// Opens the logical session of an intent, bound from the start, and takes its first turn. One that can't be bound never exists.
    async fn open_logical_session(
        &self,
        new: NewLogicalSession,
        binding: Binding,
        turn: NewTurn,
        sessions_max: Option<u32>,
    ) -> Result<OpenedLogicalSession, RecordsError>;

    /// Binds a logical session. The caller holds its turn. An error if the owner has no such session. Changes nothing if the execute session
    /// is the bound one and was lost meanwhile.
    async fn bind(&self, principal: &Principal, binding: Binding, at: Timestamp) -> Result<(), RecordsError>;

    /// Whether another owner has a logical session with this id.
    async fn is_logical_session_of_another_owner(&self, principal: &Principal, id: Uuid) -> Result<bool, RecordsError>;

    /// The logical session that an execution ran in.
    async fn logical_session_of_execution(&self, id: &ExecutionId) -> Result<Option<Uuid>, RecordsError>;

    /// An execute session that was set aside and may be bound again.
    async fn reusable_execute_session(&self, reuse_key: String, now: Timestamp) -> Result<Option<ExecuteSession>, RecordsError>;

    /// Records that this server uses a logical session, and refreshes the TTL of its execute session.
    async fn use_logical_session(&self, id: Uuid, expires_at: Timestamp) -> Result<(), RecordsError>;

    /// Refreshes the TTL of the execute session unless it has expired.
    async fn refresh_logical_session(&self, id: Uuid, now: Timestamp, expires_at: Timestamp) -> Result<(), RecordsError>;

    /// The notice that no caller has received yet.
    async fn pending_notice(&self, id: Uuid) -> Result<Option<String>, RecordsError>;

    /// Removes this pending notice, because a caller received it. A newer notice stays.
    async fn clear_notice(&self, id: Uuid, notice: String) -> Result<(), RecordsError>;

    /// Marks the execute session of a logical session as lost. False if it has none, or lost it before.
    async fn lose_execute_session(&self, logical: Uuid, why: &'static str) -> Result<bool, RecordsError>;

    /// Extends execute sessions that would expire before `soon` and that have an unfinished turn on this server.
    async fn extend_running_execute_sessions(&self, soon: Timestamp, expires_at: Timestamp) -> Result<(), RecordsError>;

    /// Marks execute sessions as lost whose TTL is over, and clears the heads of their sessions. Returns those sessions.
    async fn expire_execute_sessions(&self, now: Timestamp) -> Result<Vec<SessionId>, RecordsError>;

    /// The number N of the short name `sN` that an owner without a connection uses for a logical session. An error if the owner has no such
    /// session.
    async fn session_ref(&self, principal: &Principal, id: Uuid) -> Result<u64, RecordsError>;

    /// The logical session with this number.
    async fn logical_session_by_ref(&self, principal: &Principal, number: u64) -> Result<Option<Uuid>, RecordsError>;

    /// Deletes a logical session with its refs and execute sessions, and ends the session that it belongs to: its intent is free again. With
    /// `unused_since`, only if it was not used since. False if there is none.
    async fn forget_logical_session(
        &self,
        principal: &Principal,
        id: Uuid,
        unused_since: Option<Timestamp>,
        at: Timestamp,
    ) -> Result<bool, RecordsError>;

    /// Deletes a batch of execute sessions that were lost or expired before and that nothing refers to. False when none are left.
    async fn delete_execute_sessions(&self, before: Timestamp) -> Result<bool, RecordsError>;
}
