//! Executions: accepted, run, recorded, and queried afterwards.
//!
//! ```text
//! request.rs      parameters of a run ─► checked request
//! start_point.rs  which heap a run starts from
//! driver/         one execution from acceptance to its recorded end
//! running.rs      executions of this process: progress, waiting callers, stop requests
//! turn_queue.rs   turns of this process; turn_across_servers.rs waits for those of others
//! queries.rs, result_part.rs, output.rs   records, lists, results and output as callers see them
//! journal.rs      what has to be known to repeat a run
//! replay.rs       repeats a run; replay_point.rs: the state to repeat it in
//! lineage.rs      rebuilds a heap from the runs that led to it; rebuilt_session.rs: what becomes of its session
//! orphans.rs      executions of servers that died
//! ```

pub(crate) mod driver;
mod journal;
mod lineage;
mod one_shot;
pub(crate) mod orphans;
mod outcome;
mod output;
mod output_quota;
mod output_text;
pub(crate) mod peer_questions;
mod queries;
pub(crate) mod rebuilt_session;
mod record;
mod replay;
mod replay_point;
mod request;
mod result_part;
mod running;
mod start_point;
mod stateless;
mod turn_across_servers;
mod turn_queue;

pub(crate) use journal::{RunEnd, RunRecorder};
pub(crate) use lineage::{KnownState, Lineage, Rebuilt, RebuiltLive};
pub use one_shot::{OneShot, OneShotMode, OneShotRequest};
pub use outcome::{ExecutionOutcome, FinishedRun};
pub use output::ExecutionOutput;
pub use queries::{ExecutionList, ExecutionSummary, ListRequest, RECENT_SUFFIX};
pub use record::{ExecutionRecord, ResultPart, ResultRange, iso_8601};
pub use replay::ReplayReport;
pub(crate) use replay::{NotRecorded, RecordedRun, Replayer};
pub(crate) use replay_point::ReplayPoint;
pub use request::{Durability, RunParameters, RunRequest};
pub use running::{Progress, RunningExecution};
pub use start_point::{InputHeap, OnMissingHeap, StartPoint};
pub use stateless::{OUTPUTS_BYTES_MAX as STATELESS_OUTPUT_BYTES_MAX, Stateless, StatelessAnswer};

pub(crate) use output::reaches;
pub(crate) use queries::note_head;
pub(crate) use request::limits_or;
pub(crate) use running::{RunningExecutions, StopReason};
pub(crate) use turn_across_servers::{PreparationTurn, RETRY_PAUSE};
pub(crate) use turn_queue::TurnQueues;

use crate::Stores;

/// Operations on executions.
pub struct Executions<'a>(pub(crate) &'a Stores);
