//! What the product does, independent of terminals and protocols.
//!
//! ```text
//! service.rs    the stores plus the engine: accepts runs, opens and closes
//! stores.rs     what is stored and shared between requests; one view per noun:
//!   executions/   accept, drive, record, query, cancel; turns; orphans
//!   sessions/     resolve, open, fork, end, expire; log; logical sessions
//!   heaps/        list, import, export, tag, collect; the in-memory cache
//!   contexts/     conversation context: tools and recording
//!   events/       subscriptions and what they deliver
//! budget.rs     bounded resources that callers share
//! caller.rs     on whose behalf a request is made, and in which session
//! live/         sessions whose heap is in memory between turns
//! key_ring.rs   secret keys that all servers on one database share
//! monitoring/   health and metrics
//! long_answers.rs  lists and texts that are sent while they are read
//! retention.rs  deletes what is older than its retention
//! ```
//!
//! ```text
//! run ─► record `running` + turn ─► heap (store or cache) ─► engine ─► output, page by page
//!                                                             └─► heap stored ─► one commit: end, log entry, head, tags ─► waiting callers
//! ```
#![forbid(unsafe_code)]

mod budget;
mod caller;
mod contexts;
mod crash_point;
mod error;
mod events;
mod executions;
#[doc(hidden)]
pub mod fuzzing;
mod heaps;
mod key_ring;
mod live;
mod long_answers;
mod monitoring;
mod owner_permits;
mod page_room;
mod policy;
mod retention;
pub mod schema;
mod service;
mod sessions;
mod stores;
mod usage;

pub use budget::{Budget, Exhausted, Portion};
pub use caller::{CONNECTION_STATE_BYTES_MAX, Caller, Connection};
pub use contexts::{
    CallRecording, CheckRequest, Cleared, ContextPlace, ContextSettings, ContextStoreError, Contexts, NewFinding, OpenContexts,
    ShownContext,
};
pub use error::{Noun, ServiceError};
pub use events::{Delivery, EVENT_BYTES_MAX, Event, Events, Level, Position, Scope, Subscriber, TOPICS_BYTES_MAX, Topic, end_message};
pub use executions::{
    Durability, ExecutionList, ExecutionOutcome, ExecutionOutput, ExecutionRecord, ExecutionSummary, Executions, FinishedRun, InputHeap,
    ListRequest, OnMissingHeap, OneShot, OneShotMode, OneShotRequest, Progress, ReplayReport, ResultPart, ResultRange, RunParameters,
    RunRequest, RunningExecution, STATELESS_OUTPUT_BYTES_MAX, StartPoint, Stateless, StatelessAnswer, iso_8601,
};
pub use heaps::{
    CollectRequest, Collected, ExportedHeap, FileRemoval, HEAP_CACHE_BYTES_MAX, HeapCache, HeapImport, HeapList, HeapSummary, HeapTags,
    Heaps, ImportedHeap, ListHeaps, SignRequest, SignedHeaps, SkippedHeap, TAG_KEY_CHARS_MAX, TAG_VALUE_CHARS_MAX, TAGS_MAX, TaggedHeap,
    TaggedHeaps, UpgradedHeap, check_tags, parse_heap_key,
};
pub use key_ring::KeyRing;
pub use live::LivePolicy;
pub use long_answers::{LIST_BYTES_MAX, ListPage, LongAnswer, LongText, TextRest};
pub use monitoring::{
    ContextHealth, ContextMetrics, EngineHealth, Health, HealthStatus, HeapStoreHealth, LiveHealth, LiveMetrics, Metrics, StoreMetrics,
};
pub use owner_permits::{OwnerPermit, OwnerPermits};
pub use page_room::{MESSAGE_BYTES_MAX, PageRoom};
pub use policy::{Policy, Quotas};
pub use service::Service;
pub use sessions::{
    CatalogHits, CatalogQuery, ContextRequest, Continuity, EndLogical, EnteredSession, EntryField, ExecuteBinding, LogRequest,
    NamesRequest, OnStale, REPLAY_TURNS_MAX, Reason, ReplayedTurn, STATE_BYTES_MAX, SessionContext, SessionEntries, SessionEntry,
    SessionNames, SessionNotice, SessionPage, SessionReplay, SessionState, SessionTarget, SessionView, Sessions, TurnOutcome, TurnRange,
    UNDO_TURNS_MAX, UndoneTurns, Wave, WaveMode, logical_id, session_name,
};
pub use stores::Stores;
pub use usage::StorageUsage;
