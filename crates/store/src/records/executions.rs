//! Execution records: one per execution, written when it is accepted and ended exactly once.

use super::{Binding, Head, JournalEntry, NewHeap, NewLogEntry, RecordsError, RunSession, StateHeap, Tags, TextPart};
use crate::outputs::Extent;
use async_trait::async_trait;
use heapstead_types::{ErrorCode, ExecutionId, HeapKey, Principal, ServerId, SessionName, Status};
use jiff::Timestamp;
use uuid::Uuid;

/// An execution to accept.
#[derive(Debug, Clone)]
pub struct NewExecution {
    pub id: ExecutionId,
    pub principal: Principal,
    pub session: Option<RunSession>,
    pub started_at: Timestamp,
    pub input_heap: Option<HeapKey>,
}

/// Result of accepting an execution. Nothing is written unless it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// Accepted outside of an opened session.
    Alone,
    /// Accepted into an opened session. `head` is the session's head if no earlier turn is unfinished, else none: then the head is read when
    /// the turn comes.
    InSession { head: Option<Option<HeapKey>> },
    /// Refused: its session has ended, or its owner has no such session.
    SessionEnded,
    /// Refused: its owner has the maximum number of running executions.
    TooMany,
}

/// The end of an execution, and everything that changes in the same transaction.
#[derive(Debug, Clone)]
pub struct ExecutionEnd {
    pub status: Status,
    /// When its code started. If none, the record keeps the time of acceptance.
    pub started_at: Option<Timestamp>,
    pub completed_at: Timestamp,
    pub result: Option<String>,
    pub error: Option<String>,
    /// Set if and only if `error` is.
    pub error_code: Option<ErrorCode>,
    pub warnings: Vec<String>,
    pub output: Extent,
    /// The heap it produced.
    pub heap: Option<NewHeap>,
    /// The state it has left in its opened session, if its heap is not stored yet. The log entry and the journal name it too.
    pub state: Option<HeapKey>,
    /// Replaces the tags of that heap.
    pub tags: Option<Tags>,
    /// Its entry in the journal. None if it was not recorded.
    pub journal: Option<JournalEntry>,
    /// Its entry in the log of its session.
    pub log: Option<NewLogEntry>,
    /// The logical session it ran in, and the new expiry of that session's execute session.
    pub extends: Option<(Uuid, Timestamp)>,
    /// Changes to its logical session. Applied whether the execution completed or not.
    pub binding: Option<Binding>,
    /// What it found out about the continuity of its logical session.
    pub continuity: Option<ContinuityReport>,
}

impl ExecutionEnd {
    /// An end now, with a status and nothing else.
    pub fn bare(status: Status) -> Self {
        Self {
            status,
            started_at: None,
            completed_at: Timestamp::now(),
            result: None,
            error: None,
            error_code: None,
            warnings: Vec::new(),
            output: Extent::default(),
            heap: None,
            state: None,
            tags: None,
            journal: None,
            log: None,
            extends: None,
            binding: None,
            continuity: None,
        }
    }
}

/// Result of ending an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedExecution {
    /// The end was written. `head` is the new head of its opened session, if the execution moved it.
    Ended { head: Option<Head> },
    /// It had ended before; nothing was changed.
    EndedBefore,
}

/// Result of recording a turn that ended before it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedTurn {
    /// It was accepted and ended. `head` is the new head of its session, if the execution moved it.
    Ended { head: Option<Head> },
    /// Another turn is unfinished, or has moved the head: the execution was only accepted, or refused, and what it did must be discarded.
    NotEnded(Accepted),
}

/// Result of deleting an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletedExecution {
    Deleted,
    /// It is running; nothing was changed.
    IsRunning,
    /// The owner has no such execution.
    Unknown,
}

/// What a run found out about the continuity of its logical session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinuityReport {
    pub json: String,
    /// Whether the caller of the run is waiting for this report. If not, it is stored until a caller receives it.
    pub is_delivered: bool,
}

/// An execution as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    pub id: ExecutionId,
    /// The server that runs or ran it.
    pub server: ServerId,
    pub status: Status,
    pub started_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub heap: Option<HeapKey>,
    /// Of a turn that was acknowledged before its heap was stored.
    pub state_heap: Option<StateHeap>,
    /// Why it is still pending.
    pub heap_error: Option<String>,
    pub error: Option<String>,
    pub error_code: Option<ErrorCode>,
    pub warnings: Vec<String>,
    pub output: Extent,
    /// Its continuity report as JSON.
    pub continuity: Option<String>,
    /// As much of it as was asked for.
    pub result: Option<String>,
    /// Length of the whole result.
    pub result_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionSummary {
    pub id: ExecutionId,
    pub status: Status,
    pub started_at: Timestamp,
    pub completed_at: Option<Timestamp>,
}

/// Position in a list: before this row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor(pub i64);

#[derive(Debug, Clone, Default)]
pub struct ExecutionFilter {
    pub status: Option<Status>,
    pub session: Option<SessionName>,
    /// Running executions, and those that ended since.
    pub ended_since: Option<Timestamp>,
    pub before: Option<Cursor>,
    pub limit: Option<u32>,
}

#[async_trait]
pub trait ExecutionRecords: Send + Sync {
    /// Records an execution as running on this server, takes its turn if it is in an opened session, and refreshes that session's TTL.
    async fn accept_execution(&self, new: NewExecution, running_max: Option<u32>) -> Result<Accepted, RecordsError>;

    /// As [`accept_execution`](Self::accept_execution) and [`end_execution`](Self::end_execution) in one transaction, for a run in an opened
    /// session that started from this heap or state before it was accepted.
    async fn record_turn(
        &self,
        new: NewExecution,
        from: Option<HeapKey>,
        end: ExecutionEnd,
        running_max: Option<u32>,
    ) -> Result<RecordedTurn, RecordsError>;

    /// Ends a running execution: record, log entry, head, tags, heap and turn in one transaction that survives a power failure.
    async fn end_execution(&self, id: ExecutionId, end: ExecutionEnd) -> Result<EndedExecution, RecordsError>;

    async fn execution(&self, principal: &Principal, id: &ExecutionId) -> Result<Option<Execution>, RecordsError>;

    /// As [`execution`](Self::execution), with at most this much of the result, which may be megabytes; with 0, without the result.
    async fn execution_with_part(
        &self,
        principal: &Principal,
        id: &ExecutionId,
        result_bytes_max: usize,
    ) -> Result<Option<Execution>, RecordsError>;

    /// A part of the result. It ends at a character; none if there is no such execution or result.
    async fn result_part(&self, principal: &Principal, id: &ExecutionId, part: TextPart) -> Result<Option<String>, RecordsError>;

    /// The position after this execution in a list of its owner's executions.
    async fn cursor_after(&self, principal: &Principal, id: &ExecutionId) -> Result<Option<Cursor>, RecordsError>;

    /// Newest first, and the cursor of the next page if there is one.
    async fn executions(
        &self,
        principal: &Principal,
        filter: ExecutionFilter,
    ) -> Result<(Vec<ExecutionSummary>, Option<Cursor>), RecordsError>;

    /// All executions that are recorded as running, and the servers they run on.
    async fn running_executions(&self) -> Result<Vec<(ExecutionId, ServerId)>, RecordsError>;

    /// Running executions of a session.
    async fn executions_running_in(&self, session: heapstead_types::SessionId) -> Result<Vec<(ExecutionId, ServerId)>, RecordsError>;

    /// Deletes an execution that has ended.
    async fn delete_execution(&self, principal: &Principal, id: &ExecutionId) -> Result<DeletedExecution, RecordsError>;

    /// Deletes a batch of executions that ended before. Returns their ids; empty when none are left.
    async fn delete_executions(&self, before: Timestamp) -> Result<Vec<ExecutionId>, RecordsError>;
}
