//! Records: everything the server stores about executions, sessions, heaps and owners, except bytes.
//!
//! One trait per noun; [`Records`] is all of them. `sqlite/` implements them, and `tests/records` is the contract suite that every
//! implementation has to pass. SQL is only inside the implementations.

mod damaged_heaps;
mod executions;
mod heaps;
mod logical_sessions;
mod owners;
mod session_log;
mod sessions;
mod state_keys;
mod tags;
mod turns;

pub use damaged_heaps::DamagedHeapRecords;
pub use executions::{
    Accepted, ContinuityReport, Cursor, EndedExecution, Execution, ExecutionEnd, ExecutionFilter, ExecutionRecords, ExecutionSummary,
    NewExecution,
};
pub use heaps::HeapRecords;
pub use logical_sessions::{Binding, ExecuteSession, LogicalSession, LogicalSessionRecords, NewLogicalSession, OpenedLogicalSession};
pub use owners::{OwnerRecords, Totals};
pub use session_log::{LogEntry, LogRange, NameRange, NewLogEntry, OpenedOn, SessionLogRecords};
pub use sessions::{Head, NewSession, OpenedSession, RunSession, SessionFilter, SessionRecords};
pub use state_keys::{StateKey, StateKeyRecords};
pub use tags::{TagQuery, TagRecords, TaggedHeap, Tags};
pub use turns::{NewTurn, Turn, TurnId, TurnRecords};

use crate::BlobError;
use async_trait::async_trait;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a record could not be read or written. None of these says anything about whether the record exists.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RecordsError {
    #[error("the metadata database {} can't be used: {why}", path.display())]
    Unavailable { path: PathBuf, why: String },
    #[error("the metadata database was written by a newer version ({found}, this one knows {known}): use that version")]
    Newer { found: i64, known: i64 },
    #[error(transparent)]
    Folder(Arc<BlobError>),
}

/// All records of a server.
#[async_trait]
pub trait Records:
    ExecutionRecords
    + SessionRecords
    + SessionLogRecords
    + LogicalSessionRecords
    + TurnRecords
    + HeapRecords
    + DamagedHeapRecords
    + TagRecords
    + OwnerRecords
    + StateKeyRecords
{
    /// Whether records can be read and written now; for health checks.
    async fn check(&self) -> Result<(), RecordsError>;

    /// How many reads and write transactions were made since the store was opened.
    fn counts(&self) -> AccessCounts;
}

/// Round trips to the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccessCounts {
    pub reads: u64,
    pub writes: u64,
}
