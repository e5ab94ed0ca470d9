//! The journal: for each stateful run what has to be known to repeat it exactly. An entry stays as long as its execution, and in an opened
//! session as long as the session.
//!
//! Imports of catalog entities into a session are in it too: they change the heap of the session between two turns. An import is no execution.
//! It has an id of the same kind, under which only the journal knows it.

use super::{NewHeap, RecordsError};
use async_trait::async_trait;
use heapstead_types::{EngineId, ExecutionId, HeapKey, Limits, Principal, SessionId, SharedText};
use jiff::Timestamp;

/// Written in the transaction that ends the run, or that binds what was imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// The opened session that the run was in.
    pub session: Option<SessionId>,
    /// Whether it is an import of catalog entities.
    pub is_import: bool,
    /// The JavaScript that ran, or the source that was sent if there is no `form`.
    pub code: SharedText,
    /// How the JavaScript was made from the source, encoded. None of a run that did not compile or whose worker died, of one whose JavaScript or
    /// form is too long, and of those of earlier versions.
    pub form: Option<Vec<u8>>,
    /// None for a run that started fresh.
    pub input_heap: Option<HeapKey>,
    /// None for a run that failed.
    pub output_heap: Option<HeapKey>,
    pub limits: Limits,
    /// The engine that ran it.
    pub engine: EngineId,
    /// Of all randomness in the run.
    pub seed: [u8; 32],
    /// What the run read from outside, encoded.
    pub inputs: Vec<u8>,
    pub output_sha256: [u8; 32],
    /// Of the result, or of the error if the run failed.
    pub result_sha256: [u8; 32],
}

/// An import of catalog entities, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewImport {
    pub id: ExecutionId,
    pub entry: JournalEntry,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuiltHeap {
    /// The run that was repeated last.
    pub execution: ExecutionId,
    pub heap: NewHeap,
    /// The opened session whose head it becomes.
    pub session: Option<SessionId>,
    pub at: Timestamp,
}

/// The most links that are read at once.
pub const LINKS_MAX: usize = 1_000;

/// What led to a heap or state, without what is needed to repeat it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalLink {
    pub execution: ExecutionId,
    pub is_import: bool,
    /// None for a fresh heap.
    pub input_heap: Option<HeapKey>,
    pub heap_mb: u32,
}

#[async_trait]
pub trait JournalRecords: Send + Sync {
    /// None if the owner has no such execution, or if it was not recorded: it is running, its code never started, its server died, or an earlier version ran it.
    async fn journal_entry(&self, principal: &Principal, id: &ExecutionId) -> Result<Option<JournalEntry>, RecordsError>;

    /// The runs and imports of the owner that led to this heap or state, the last one first: as far back as their states are not stored, and no
    /// further than [`LINKS_MAX`] of them. Of several that produced a heap, or whose state was rebuilt as this heap, the first: it is older than
    /// all runs that started from the heap, unless it was deleted.
    async fn links(&self, principal: &Principal, heap: HeapKey) -> Result<Vec<JournalLink>, RecordsError>;

    /// What the last import of a session that produced this heap was imported into; the inner none is a fresh heap. None if no import did.
    async fn import_input(&self, session: SessionId, heap: HeapKey) -> Result<Option<Option<HeapKey>>, RecordsError>;

    /// Records a heap that another engine has produced by repeating a run. In an opened session it takes the place of that run's heap in the log,
    /// and becomes the head. False if the run is not recorded any more, or the session has ended.
    async fn add_rebuilt(&self, principal: &Principal, rebuilt: RebuiltHeap) -> Result<bool, RecordsError>;
}
