//! The log of each session: one entry per execution that completed in it, numbered from 0 without gaps.

use super::{Head, RecordsError, RunSession, TextPart};
use async_trait::async_trait;
use heapstead_types::{ExecutionId, HeapKey, Principal, SessionId, SessionName, SharedText};
use jiff::Timestamp;

#[derive(Debug, Clone)]
pub struct NewLogEntry {
    pub session: RunSession,
    /// The heap or state (`turn_states.rs`) that the run started from.
    pub input_heap: Option<HeapKey>,
    /// The head of the session, if the run started from another heap.
    pub instead_of: Option<Option<HeapKey>>,
    /// The heap or state that it has left.
    pub output_heap: HeapKey,
    /// The JavaScript that ran, after type stripping.
    pub code: SharedText,
    pub timestamp: Timestamp,
    pub execution_id: ExecutionId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    pub index: u64,
    /// The heap or state that the run started from.
    pub before: Option<HeapKey>,
    /// The heap or state that it has left.
    pub after: HeapKey,
    /// Stored heaps: those of `before` and `after`, if they are stored.
    pub input_heap: Option<HeapKey>,
    pub output_heap: Option<HeapKey>,
    /// As much of it as was asked for.
    pub code: String,
    /// Length of the whole code.
    pub code_bytes: u64,
    pub timestamp: Timestamp,
    pub execution_id: ExecutionId,
    /// The head was moved back to before it.
    pub is_undone: bool,
}

/// A turn that can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastTurn {
    pub index: u64,
    /// The head before it: a heap or state, or none for a fresh one.
    pub before: Option<HeapKey>,
    /// The head after it.
    pub after: HeapKey,
}

/// Filter: which opened sessions of an owner to include.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenedOn {
    Any,
    /// Those that were opened on this connection.
    Connection(String),
    None,
}

/// A page of session names.
#[derive(Debug, Clone, Default)]
pub struct NameRange {
    /// Names after this one.
    pub after: Option<String>,
    pub limit: Option<u32>,
}

/// A page of log entries.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogRange {
    pub from: u64,
    pub limit: Option<u32>,
    /// Of the code of each entry no more is read than this.
    pub code_bytes_each: Option<usize>,
    /// Ends before the entry that exceeds this many bytes of code, but not before the second.
    pub code_bytes_max: Option<usize>,
}

#[async_trait]
pub trait SessionLogRecords: Send + Sync {
    /// Sessions with at least one log entry, ordered: named sessions by name, opened sessions that have not ended by id.
    async fn session_names(
        &self,
        principal: &Principal,
        opened: OpenedOn,
        range: NameRange,
        now: Timestamp,
    ) -> Result<Vec<String>, RecordsError>;

    /// Entries in order, and whether there are more. Empty for a session that does not exist.
    async fn session_log(
        &self,
        principal: &Principal,
        session: &SessionName,
        range: LogRange,
    ) -> Result<(Vec<LogEntry>, bool), RecordsError>;

    /// This many bytes of an entry's code, from an offset at the start of a character. Ends at a character; none if there is no such entry.
    async fn logged_code(
        &self,
        principal: &Principal,
        session: &SessionName,
        index: u64,
        part: TextPart,
    ) -> Result<Option<String>, RecordsError>;

    /// The number of the turn of this execution.
    async fn turn_of(&self, session: SessionId, execution: &ExecutionId) -> Result<Option<u64>, RecordsError>;

    /// The last turns of an opened session that are not undone, newest first.
    async fn last_turns(&self, session: SessionId, limit: u32) -> Result<Vec<LastTurn>, RecordsError>;

    /// Marks the turns from this one on as undone, and moves the head, which is durable when this returns. None if the session has ended. The
    /// caller holds the turn of the session.
    async fn undo_turns(&self, session: SessionId, from: u64, head: Option<HeapKey>) -> Result<Option<Head>, RecordsError>;

    /// Whether a run in this session started from this stored heap or produced it.
    async fn log_has_heap(&self, session: SessionId, heap: HeapKey) -> Result<bool, RecordsError>;
}
