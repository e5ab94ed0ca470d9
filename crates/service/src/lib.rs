//! What the product does, whoever asks for it and however they reach us. It knows neither terminals nor protocols.
//!
//! ```text
//! Service::run ─► record `running` ─► heap (store, or hot) ─► engine ─► output file, page by page
//!                                                            └─► heap stored ─► one commit: end, log entry, tags ─► whoever waits
//! ```
#![forbid(unsafe_code)]

mod archive;
mod caller;
mod crash_point;
mod end;
mod error;
mod execution;
mod executions;
mod health;
mod heap_access;
mod heaps;
mod live;
mod neighbours;
mod origin;
mod output_text;
mod record;
mod run;
pub mod schema;
mod service;
mod session_log;
mod shutdown;
mod stateless;
mod sweep;
mod tags;

pub use archive::{Archive, Policy};
pub use caller::Caller;
pub use end::{End, Finished};
pub use error::ServiceError;
pub use execution::RunRequest;
pub use executions::{ExecutionList, ExecutionSummary, ListRequest, OutputPage};
pub use health::{Component, Components, Health, HealthStatus};
pub use heap_access::HeapAccess;
pub use heaps::{Collected, HeapSummary};
pub use live::{Live, Progress};
pub use origin::{OnMissingHeap, Origin};
pub use record::ExecutionRecord;
pub use run::{Mode, Request, Run};
pub use service::Service;
pub use session_log::{EntryField, LogRequest, SessionEntries, SessionEntry, SessionNames};
pub use stateless::{Stateless, StatelessAnswer};
pub use tags::{TAG_KEY_CHARS_MAX, TAG_VALUE_CHARS_MAX, TAGS_MAX, TaggedHeap, TaggedHeaps, check_tags};
