//! Records: everything the server stores about executions, sessions, heaps and owners, except bytes.
//!
//! One trait per noun; [`Records`] is all of them. `sqlite/` implements them, and `tests/records` is the contract suite that every
//! implementation has to pass. SQL is only inside the implementations.

mod damaged_heaps;
mod executions;
mod heap_reservations;
mod heaps;
mod journal;
mod logical_sessions;
mod owners;
mod server_keys;
mod session_log;
mod sessions;
mod tags;
mod turn_states;
mod turns;

pub use damaged_heaps::DamagedHeapRecords;
pub use executions::{
    Accepted, ContinuityReport, Cursor, DeletedExecution, EndedExecution, Execution, ExecutionEnd, ExecutionFilter, ExecutionRecords,
    ExecutionSummary, NewExecution, RecordedTurn,
};
pub use heap_reservations::{
    HeapReservationRecords, NewReservation, Released, Removal, Reservation, ReservationId, Reserved, ReservedHeap,
};
pub use heaps::{
    CollectedHeap, DeletedHeap, FoundHeap, HeapRange, HeapRecords, HeapUse, NewHeap, NewHeapEngine, OwnedHeap, RecordedEngine, UnusedHeap,
};
pub use journal::{JournalEntry, JournalLink, JournalRecords, LINKS_MAX, NewImport, RebuiltHeap};
pub use logical_sessions::{Binding, ExecuteSession, LogicalSession, LogicalSessionRecords, NewLogicalSession, OpenedLogicalSession};
pub use owners::{OwnerRecords, StoredElsewhere, Totals, Usage};
pub use server_keys::{KeyPurpose, ServerKey, ServerKeyRecords};
pub use session_log::{LastTurn, LogEntry, LogRange, NameRange, NewLogEntry, OpenedOn, SessionLogRecords};
pub use sessions::{Head, NewSession, OpenedSession, RunSession, SessionFilter, SessionRecords, UnusedSession};
pub use tags::{TagQuery, TagRecords, TaggedHeap, Tags};
pub use turn_states::{StateHeap, Tail, TurnState, TurnStateRecords};
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
    /// Nothing was written.
    #[error("you have {} MB stored, and an owner may have {} MB: delete executions, sessions, heaps, tags or contexts", used_bytes >> 20, bytes_max >> 20)]
    OverQuota { used_bytes: u64, bytes_max: u64 },
    #[error(transparent)]
    Folder(Arc<BlobError>),
}

/// A part of a long text: this many bytes at most, from an offset at the start of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPart {
    pub offset: u64,
    pub bytes_max: usize,
}

/// All records of a server.
#[async_trait]
pub trait Records:
    ExecutionRecords
    + JournalRecords
    + SessionRecords
    + SessionLogRecords
    + LogicalSessionRecords
    + TurnRecords
    + TurnStateRecords
    + HeapRecords
    + HeapReservationRecords
    + DamagedHeapRecords
    + TagRecords
    + OwnerRecords
    + ServerKeyRecords
{
    /// Whether records can be read and written now; for health checks.
    async fn check(&self) -> Result<(), RecordsError>;

    /// From now on, what stores more for an owner fails with `OverQuota` once the owner has this many bytes. None means no limit.
    fn limit_storage(&self, bytes_max: Option<u64>);

    /// From now on, this counts towards the quota too. It is asked before a transaction, so both stores together may exceed the quota by what
    /// is written at the same time. Set once.
    fn count_elsewhere(&self, elsewhere: StoredElsewhere);

    /// How many reads and write transactions were made since the store was opened.
    fn counts(&self) -> AccessCounts;
}

/// Round trips to the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccessCounts {
    pub reads: u64,
    pub writes: u64,
}
