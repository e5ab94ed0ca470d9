//! What the product does, whoever asks for it and however they reach us. It knows neither terminals nor protocols.
//!
//! ```text
//! Service::run ─► record `running` ─► heap (store, or hot) ─► engine ─► output file, page by page
//!                                                            └─► heap stored ─► one commit: end, log entry, tags ─► whoever waits
//! ```
#![forbid(unsafe_code)]

mod archive;
mod caller;
mod collecting;
mod context;
mod context_recording;
mod context_store;
mod crash_point;
mod damaged;
mod end;
mod error;
mod execution;
mod executions;
mod expiry;
mod following;
mod health;
mod heap_access;
mod heaps;
mod hub;
mod listening;
mod live;
mod logical;
mod meter;
mod neighbours;
mod origin;
mod output_text;
mod page_room;
mod record;
mod run;
pub mod schema;
mod service;
mod session_log;
mod sessions;
mod shutdown;
mod state;
mod stateless;
mod sweep;
mod tags;
mod trespass;
mod turns;

pub use archive::{Archive, Policy, Quotas};
pub use caller::{Caller, Connection};
pub use collecting::{CollectRequest, Collected};
pub use context::{CheckRequest, Cleared, NewFinding, ShownContext};
pub use context_recording::Noting;
pub use context_store::{ContextPlace, ContextSettings, ContextStoreError, OpenContexts};
pub use end::{End, Finished};
pub use error::ServiceError;
pub use execution::RunRequest;
pub use executions::{ExecutionList, ExecutionSummary, ListRequest, OutputPage};
pub use following::end_message;
pub use health::{ContextHealth, EngineHealth, Health, HealthStatus, HeapStoreHealth};
pub use heap_access::HeapAccess;
pub use heaps::HeapSummary;
pub use hub::{Event, Heard, Level, Listener, Position, Scope, Topic};
pub use live::{Live, Progress};
pub use logical::{ContextRequest, Continuity, ExecuteBinding, OnStale, Reason, SessionContext, Told, Wave, WaveMode, logical_id};
pub use meter::{ContextMetrics, KeptMetrics, Metrics, Times};
pub use origin::{OnMissingHeap, Origin, StartsFrom};
pub use page_room::PageRoom;
pub use record::{ExecutionRecord, ResultPart, ResultRange, iso_8601};
pub use run::{Mode, Request, Run};
pub use service::Service;
pub use session_log::{EntryField, LogRequest, NamesRequest, SessionEntries, SessionEntry, SessionNames};
pub use sessions::{SessionPage, SessionView, Target, session_name};
pub use state::STATE_BYTES_MAX;
pub use stateless::{Stateless, StatelessAnswer};
pub use tags::{TAG_KEY_CHARS_MAX, TAG_VALUE_CHARS_MAX, TAGS_MAX, TaggedHeap, TaggedHeaps, check_tags};
