//! Rebuilds a state that is not stored, or that this engine can't load, by repeating the runs that led to it: from the newest heap before it that
//! can be loaded, or from a fresh one. Each replay is compared with its run; at a difference, what is verified so far is the result.

use super::replay::{NotRecorded, Replayed, Replayer};
use crate::ServiceError;
use crate::live::UnstoredTurn;
use heapstead_engine::{HeapImage, Kind, LiveWorker, RunNumber};
use heapstead_store::records::RebuiltHeap;
use heapstead_types::{ErrorCode, ExecutionId, Failure, HeapKey, SessionId, Status};
use jiff::Timestamp;
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// The runs that lead to a heap or state.
pub struct Lineage {
    /// The heap that the first of them starts from; none for a fresh one.
    base: Option<HeapImage>,
    /// In their order.
    runs: Vec<Step>,
    /// The largest cap of the runs.
    pub heap_mb: u32,
}

/// A run, and the heap or state that it led to.
struct Step {
    execution: ExecutionId,
    after: HeapKey,
}

impl Lineage {
    /// The number of runs.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }
}

/// As [`Rebuilt`], in the memory of a worker.
pub struct RebuiltLive {
    pub worker: LiveWorker,
    base: Option<HeapImage>,
    /// By the numbers that the runs have on the worker.
    pub repeated: HashMap<RunNumber, UnstoredTurn>,
    pub verified: Option<ExecutionId>,
    /// The heap or state that the journal names for what the worker has. None for a fresh one.
    pub state: Option<HeapKey>,
    pub diverged: Option<Divergence>,
}

impl RebuiltLive {
    pub async fn heap(&self) -> Result<Option<HeapImage>, Failure> {
        match self.worker.snapshot().await? {
            Some((heap, _)) => Ok(Some(heap)),
            None => Ok(self.base.clone()),
        }
    }
}

/// The state after the last run that was verified.
pub struct Rebuilt {
    pub heap: Option<HeapImage>,
    /// None if not even the first run was verified.
    pub verified: Option<ExecutionId>,
    pub diverged: Option<Divergence>,
}

/// The first run that did something else when it was repeated, or can't be repeated.
pub struct Divergence {
    pub execution: ExecutionId,
    pub why: String,
}

/// Nothing is known of how a heap came about.
#[derive(Debug, thiserror::Error)]
#[error("no run is recorded that produced heap {heap}")]
pub struct NoProducer {
    heap: HeapKey,
    /// Why it can't be loaded, if it was tried.
    pub failure: Option<Failure>,
}

impl Replayer<'_> {
    pub async fn lineage(&self, heap: HeapKey) -> Result<Result<Lineage, NoProducer>, ServiceError> {
        let (mut runs, mut seen, mut wanted, mut heap_mb) = (Vec::new(), HashSet::new(), heap, 0);
        let mut last_failure = None;
        let base = loop {
            let no_producer = |failure: &Option<Failure>| Ok(Err(NoProducer { heap: wanted, failure: failure.clone() }));
            let records = &self.stores.records;
            let Some(execution) = records.producer(self.principal, wanted).await? else { return no_producer(&last_failure) };
            let Some(entry) = records.journal_entry(self.principal, &execution).await? else { return no_producer(&last_failure) };
            // If the first run that produced a heap was deleted, later ones may lead in a circle.
            if !seen.insert(execution.clone()) {
                return no_producer(&last_failure);
            }
            runs.push(Step { execution, after: wanted });
            heap_mb = heap_mb.max(entry.limits.heap_mb);
            let Some(input) = entry.input_heap else { break None };
            match self.restore(input, entry.limits.heap_mb).await {
                Ok(image) => break Some(image),
                Err(failure) => (wanted, last_failure) = (input, Some(failure)),
            }
        };
        runs.reverse();
        Ok(Ok(Lineage { base, runs, heap_mb }))
    }

    /// A heap or state to start from: as it is stored, otherwise by repeating the runs that led to it.
    pub async fn restore_or_rebuild(&self, key: HeapKey, heap_mb: u32) -> Result<Result<HeapImage, NotRecorded>, ServiceError> {
        let failure = match self.restore(key, heap_mb).await {
            Ok(heap) => return Ok(Ok(heap)),
            Err(failure @ (Failure::StateLost | Failure::HeapOfAnotherEngine { .. })) => failure,
            Err(failure) => return Ok(Err(NotRecorded::Heap(failure))),
        };
        let Ok(lineage) = self.lineage(key).await? else { return Ok(Err(NotRecorded::Heap(failure))) };
        Ok(match self.rebuild(lineage).await? {
            Rebuilt { heap: Some(heap), diverged: None, .. } => Ok(heap),
            _ => Err(NotRecorded::Heap(failure)),
        })
    }

    /// Stores a rebuilt heap with the run that was repeated last; in a session, as its head.
    pub async fn keep(&self, execution: ExecutionId, image: HeapImage, session: Option<SessionId>) -> Result<HeapKey, ServiceError> {
        let (heap, reservation) = self.stores.heaps().store_produced(&self.heaps(), self.principal, image).await?;
        let key = heap.key;
        let rebuilt = RebuiltHeap { execution, heap, session, at: Timestamp::now() };
        if !self.stores.records.add_rebuilt(self.principal, rebuilt).await? {
            return Err(ServiceError::conflict(ErrorCode::NotRecorded, "the run or the session has been deleted meanwhile"));
        }
        reservation.recorded();
        Ok(key)
    }

    /// Each run on a worker of its own.
    pub async fn rebuild(&self, lineage: Lineage) -> Result<Rebuilt, ServiceError> {
        let mut rebuilt = Rebuilt { heap: lineage.base, verified: None, diverged: None };
        for Step { execution, .. } in lineage.runs {
            match self.repeat(&execution, Kind::Stateful(rebuilt.heap.clone())).await? {
                Ok(Replayed { heap: Some(heap), .. }) => (rebuilt.heap, rebuilt.verified) = (Some(heap), Some(execution)),
                Ok(_) => return Err(ServiceError::Unavailable("a replay returned no heap".into())),
                Err(why) => {
                    rebuilt.diverged = Some(Divergence { execution, why });
                    break;
                }
            }
        }
        Ok(rebuilt)
    }

    /// All runs on one live worker, without a snapshot in between.
    pub async fn rebuild_live(&self, mut lineage: Lineage, heap_mb: u32) -> Result<RebuiltLive, ServiceError> {
        let mut diverged = None;
        loop {
            let opened = self.engine.open_live(&self.holder, lineage.base.as_ref(), heap_mb).await;
            let worker = opened.map_err(|failure| ServiceError::Unavailable(failure.to_string()))?;
            let (base, state) = (lineage.base.clone(), lineage.base.as_ref().map(HeapImage::key));
            let mut rebuilt = RebuiltLive { worker, base, repeated: HashMap::new(), verified: None, state, diverged };
            match self.repeat_in(&mut rebuilt, &lineage.runs).await? {
                None => return Ok(rebuilt),
                // A worker is of no use after a turn that differs: the turns before it are repeated in another one.
                Some((step, why)) => {
                    let rest = lineage.runs.split_off(step);
                    diverged = rest.into_iter().next().map(|step| Divergence { execution: step.execution, why });
                }
            }
        }
    }

    /// Returns the first run that differs, and why.
    async fn repeat_in(&self, rebuilt: &mut RebuiltLive, runs: &[Step]) -> Result<Option<(usize, String)>, ServiceError> {
        for (index, step) in runs.iter().enumerate() {
            let began = Instant::now();
            match self.repeat(&step.execution, Kind::Live(rebuilt.worker.clone())).await? {
                Ok(Replayed { turn: Some(turn), .. }) => {
                    rebuilt.repeated.insert(turn.run(), UnstoredTurn::new(step.after, began.elapsed()));
                    turn.commit_replay().await.map_err(|failure| ServiceError::Unavailable(failure.to_string()))?;
                    (rebuilt.verified, rebuilt.state) = (Some(step.execution.clone()), Some(step.after));
                }
                Ok(_) => return Err(ServiceError::Unavailable("a replay returned no state".into())),
                Err(why) => return Ok(Some((index, why))),
            }
        }
        Ok(None)
    }

    /// Repeats a run that has completed. The inner error says why it can't be repeated, or what differs.
    async fn repeat(&self, execution: &ExecutionId, kind: Kind) -> Result<Result<Replayed, String>, ServiceError> {
        let recorded = match self.recorded(execution).await? {
            Ok(recorded) => recorded,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let replayed = self.run(&recorded, kind).await?;
        let differs = replayed.differences(Status::Completed, &recorded.entry);
        if differs.is_empty() {
            return Ok(Ok(replayed));
        }
        let error = replayed.error.map(|error| format!(": {error}")).unwrap_or_default();
        Ok(Err(format!("its {} differs{error}", differs.join(" and its "))))
    }
}
