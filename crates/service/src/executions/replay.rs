//! Repeats a recorded run: with the same inputs it must do the same. Nothing is stored or changed.

use super::{ExecutionOutcome, Executions};
use crate::error::Noun;
use crate::heaps::HeapCache;
use crate::{Caller, OwnerPermit, Service, ServiceError, Stores};
use heapstead_engine::{Engine, Event, HeapImage, Job, Kind, LiveTurn, Outcome, Recorded, RecordedInputs, Replay, ScriptForm, Slot};
use heapstead_store::records::JournalEntry;
use heapstead_types::{BudgetHolder, ErrorCode, ExecutionId, Failure, Fault, HeapKey, Limits, Principal, Status, limits};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// How a run and its replay compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReplayReport {
    pub execution_id: String,
    /// Whether result, output and status are the same.
    pub identical: bool,
    /// What differs: `status`, `result`, `output`.
    pub differs: Vec<&'static str>,
    /// How the replay ended.
    #[schemars(schema_with = "crate::schema::status")]
    pub status: Status,
    /// Why the replay failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The heap that the replay produced. It is not stored. In an opened session it may differ from that of the run, and is null if it can't be stored.
    pub heap: Option<String>,
    /// The heap that the run produced.
    pub recorded_heap: Option<String>,
    pub engine: String,
    pub recorded_engine: String,
}

impl Service {
    /// See [`Executions::replay`].
    pub async fn replay_execution(&self, caller: &Caller, id: &str) -> Result<ReplayReport, ServiceError> {
        self.refuse_while_closing()?;
        self.executions().replay(&self.runtime.engine, caller, id).await
    }
}

impl Executions<'_> {
    /// Repeats a run of the caller's from its journal, and compares.
    pub async fn replay(&self, engine: &Engine, caller: &Caller, id: &str) -> Result<ReplayReport, ServiceError> {
        let unknown = || ServiceError::not_found(Noun::Execution, id);
        let execution: ExecutionId = id.parse().map_err(|_| unknown())?;
        let record = self.0.records.execution_with_part(&caller.principal, &execution, 0).await?.ok_or_else(unknown)?;
        if !record.status.is_terminal() {
            return Err(ServiceError::conflict(ErrorCode::ExecutionRunning, format!("execution `{id}` is running: wait until it ends")));
        }
        let replayer = Replayer::new(self.0, engine, &caller.principal, caller.budget_holder()).await;
        let not_recorded =
            |why: NotRecorded| ServiceError::conflict(ErrorCode::NotRecorded, format!("execution `{id}` can't be repeated: {why}"));
        let recorded = replayer.recorded(&execution).await?.map_err(not_recorded)?;
        let point = replayer.point_before(&recorded).await?.map_err(not_recorded)?;
        let replayed = replayer.run_to_heap(&recorded, &point).await?;
        let differs = replayed.differences(record.status, &recorded.entry);
        Ok(ReplayReport {
            execution_id: id.to_owned(),
            identical: differs.is_empty(),
            differs,
            status: replayed.status,
            error: replayed.error,
            heap: replayed.heap.map(|heap| heap.key().to_string()),
            recorded_heap: record.heap.map(|key| key.to_string()),
            engine: engine.info().id.to_string(),
            recorded_engine: recorded.entry.engine.to_string(),
        })
    }
}

/// Why a run can't be repeated.
#[derive(Debug, thiserror::Error)]
pub enum NotRecorded {
    #[error("nothing of it was recorded, because its code never started, its server died, or an earlier version ran it")]
    NoEntry,
    #[error("its recording can't be read")]
    Unreadable,
    #[error("{0}")]
    Gap(&'static str),
    #[error("{0}")]
    Heap(Failure),
    #[error("the state it started from is not stored, and a turn before it was not repeated, or did something else")]
    NotReached,
    /// What led to its heap does something else.
    #[error("the heap it started from can't be rebuilt: {0}: {1}")]
    Before(String, String),
}

/// A run that can be repeated, if its heap exists.
pub struct RecordedRun {
    pub entry: JournalEntry,
    inputs: RecordedInputs,
    form: Option<ScriptForm>,
}

impl RecordedRun {
    /// Whether the run was acknowledged before its heap was stored: the state may be one that can't be.
    pub fn leads_to_state(&self) -> bool {
        self.entry.output_heap.is_some_and(|heap| heap.is_state())
    }
}

/// Repeats runs of one owner on this engine.
pub struct Replayer<'a> {
    pub stores: &'a Stores,
    pub engine: &'a Engine,
    pub principal: &'a Principal,
    pub holder: BudgetHolder,
    /// Of a run that needs the replays first, and the memory that it has. Without, each replay waits for a slot of its own.
    pub slot: Option<(&'a Slot, u32)>,
    /// Held by requests of callers: source and heap are in memory while a replay waits for its slot.
    pub _permit: Option<OwnerPermit>,
}

impl<'a> Replayer<'a> {
    /// For a request of a caller. Those of one owner wait for each other.
    pub async fn new(stores: &'a Stores, engine: &'a Engine, principal: &'a Principal, holder: BudgetHolder) -> Self {
        let _permit = Some(stores.replaying.acquire(holder.clone()).await);
        Self { stores, engine, principal, holder, slot: None, _permit }
    }

    /// For a run that needs the replays first, if it has a slot: it does not wait for the others, which may wait for slots.
    pub async fn in_slot(
        stores: &'a Stores,
        engine: &'a Engine,
        principal: &'a Principal,
        holder: BudgetHolder,
        slot: Option<(&'a Slot, u32)>,
    ) -> Self {
        match slot {
            Some(_) => Self { stores, engine, principal, holder, slot, _permit: None },
            None => Self::new(stores, engine, principal, holder).await,
        }
    }

    pub async fn recorded(&self, execution: &ExecutionId) -> Result<Result<RecordedRun, NotRecorded>, ServiceError> {
        let entry = self.stores.records.journal_entry(self.principal, execution).await?;
        Ok(entry.ok_or(NotRecorded::NoEntry).and_then(|entry| {
            let inputs = RecordedInputs::from_bytes(entry.inputs.clone()).ok_or(NotRecorded::Unreadable)?;
            let form = match entry.form.clone() {
                Some(bytes) => Some(ScriptForm::from_bytes(bytes).ok_or(NotRecorded::Unreadable)?),
                None => None,
            };
            let gap = inputs.gaps().next();
            gap.map_or(Ok(RecordedRun { entry, inputs, form }), |gap| Err(NotRecorded::Gap(gap.describe())))
        }))
    }

    /// A heap, or the heap of a state, for a run with this cap. One that the owner has deleted is gone, even if another owner has the same.
    pub async fn restore(&self, key: HeapKey, heap_mb: u32) -> Result<HeapImage, Failure> {
        let stored = self.stores.records.stored_heaps(vec![key]).await.map_err(|error| Failure::Store(error.to_string()))?;
        let Some(key) = stored.first().copied().flatten() else { return Err(Failure::StateLost) };
        if !self.stores.heaps().is_visible(self.principal, key).await.map_err(|error| Failure::Store(error.to_string()))? {
            return Err(Failure::HeapNotFound { key });
        }
        self.heaps().for_cap(heap_mb).restore(key).await
    }

    pub fn heaps(&self) -> HeapCache {
        let heaps = HeapCache::new(self.stores.heaps.clone(), self.engine.info().clone(), self.stores.heap_keys.clone());
        heaps.recorded_in(self.stores.records.clone()).for_owner(self.principal)
    }

    pub async fn run(&self, recorded: &RecordedRun, kind: Kind) -> Result<Replayed, ServiceError> {
        let RecordedRun { entry, inputs, form } = recorded;
        // The run came to its end within its limit. How long that takes depends on the engine and on what else the machine does.
        let mut limits = Limits { timeout_secs: limits::TIMEOUT_SECS_MAX, ..entry.limits };
        if let Kind::Live(worker) = &kind {
            // What completed with less memory does the same with more.
            limits.heap_mb = worker.heap_mb();
        }
        let job = Job {
            code: self.engine.source(&self.holder, entry.code.to_string())?,
            kind,
            limits,
            headers: Vec::new(),
            replay: Some(Replay { recorded: Recorded { seed: entry.seed, inputs: inputs.clone() }, form: form.clone() }),
            holder: self.holder.clone(),
        };
        let mut replay = match self.slot {
            Some((_, heap_mb)) if entry.limits.heap_mb > heap_mb => {
                let needed = entry.limits.heap_mb;
                return Err(ServiceError::BadInput(format!(
                    "the session's state has to be rebuilt, which needs {needed} MB: repeat the call with `heap_memory_max_mb` of {needed}"
                )));
            }
            Some((slot, _)) => slot.submit_before(job),
            None => self.engine.hold(&self.holder, limits.heap_mb)?.place().with_slot().await.submit(job),
        };
        let mut output = Sha256::new();
        loop {
            match replay.next_event().await {
                Some(Event::Output(bytes)) => output.update(&bytes),
                Some(Event::Started { .. } | Event::OutputDropped | Event::Recorded(..)) => {}
                Some(Event::Ended(outcome)) => return Replayed::new(outcome, output),
                None => return Err(ServiceError::shutting_down()),
            }
        }
    }
}

/// What a replay did.
pub struct Replayed {
    pub status: Status,
    pub error: Option<String>,
    pub heap: Option<HeapImage>,
    /// Of a replay on a live worker.
    pub turn: Option<LiveTurn>,
    output_sha256: [u8; 32],
    result_sha256: [u8; 32],
}

impl Replayed {
    /// Fails if the replay did not come to its own end, because it was stopped or the server failed it: that says nothing about the run.
    fn new(mut outcome: Outcome, output: Sha256) -> Result<Self, ServiceError> {
        let (heap, turn, is_its_own_end) = match &mut outcome {
            Outcome::Completed { heap, turn, .. } => (heap.take(), turn.take(), true),
            // The run came to its end, so its code does not let the worker be killed.
            Outcome::Failed(failure) if failure.is_kill() => (None, None, false),
            Outcome::Failed(failure) => (None, None, failure.code().fault() == Fault::Code),
            Outcome::TimedOut { .. } | Outcome::Cancelled => (None, None, false),
        };
        let end = ExecutionOutcome::from(outcome);
        if !is_its_own_end {
            let why = end.error().unwrap_or_else(|| "it was cancelled".into());
            return Err(ServiceError::Unavailable(format!("a run could not be repeated to its end: {why}. Try again")));
        }
        let (status, error) = (end.status(), end.error());
        let result = match end {
            ExecutionOutcome::Completed { result, .. } => result,
            _ => error.clone().unwrap_or_default(),
        };
        Ok(Self { status, error, heap, turn, output_sha256: output.finalize().into(), result_sha256: Sha256::digest(result).into() })
    }

    /// The same, of a run that fails in the end.
    pub fn failed(self, failure: &Failure) -> Self {
        let error = failure.to_string();
        Self { status: Status::Failed, result_sha256: Sha256::digest(&error).into(), error: Some(error), heap: None, turn: None, ..self }
    }

    /// What differs from a run that ended with this status.
    pub fn differences(&self, status: Status, entry: &JournalEntry) -> Vec<&'static str> {
        let compared = [
            ("status", self.status == status),
            ("result", self.result_sha256 == entry.result_sha256),
            ("output", self.output_sha256 == entry.output_sha256),
        ];
        compared.into_iter().filter(|(_, is_same)| !is_same).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapstead_types::Stage;

    /// Regression: a worker that was killed during a resume was taken for a difference, and all turns since were undone.
    #[test]
    fn a_worker_that_is_killed_says_nothing_about_the_run() {
        let replayed = |signal| {
            let crashed = Failure::WorkerCrashed { stage: Stage::Running, signal: Some(signal) };
            Replayed::new(Outcome::Failed(crashed), Sha256::new()).map(|replayed| replayed.status).ok()
        };
        assert_eq!((replayed(9), replayed(11)), (None, Some(Status::Failed)), "a crash of V8 is a difference");
    }
}
