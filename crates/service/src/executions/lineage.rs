//! Rebuilds a state that is not stored, or that this engine can't load, by repeating the runs that led to it: from the newest heap before it that
//! can be loaded, or from a fresh one. Each replay is compared with its run; at a difference, what is verified so far is the result.

use super::replay::{NotRecorded, RecordedRun, Replayed, Replayer};
use crate::ServiceError;
use crate::live::UnstoredTurn;
use heapstead_engine::{HeapImage, Kind, LiveWorker, RunNumber};
use heapstead_store::records::{JournalLink, RebuiltHeap};
use heapstead_types::{ErrorCode, ExecutionId, Failure, HeapKey, SessionId, Status};
use jiff::Timestamp;
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// The runs that lead to a heap or state.
pub struct Lineage {
    /// What the first of them starts from; none for a fresh heap.
    pub(super) base: Option<KnownState>,
    /// The first of them starts from the state that was known before, instead.
    pub(super) is_since_known: bool,
    /// In their order.
    pub(super) runs: Vec<Step>,
    /// The largest cap of the runs.
    pub heap_mb: u32,
}

/// A run or an import, and the heap or state that it led to.
pub(super) struct Step {
    pub(super) execution: ExecutionId,
    is_import: bool,
    pub(super) after: HeapKey,
}

impl Step {
    /// In words.
    pub(super) fn what(&self) -> String {
        what(&self.execution, self.is_import)
    }
}

fn what(execution: &ExecutionId, is_import: bool) -> String {
    match is_import {
        true => "an import of catalog entities".into(),
        false => format!("execution `{execution}`"),
    }
}

/// A heap or state as the journal names it, and as this engine loads it.
#[derive(Clone)]
pub struct KnownState {
    pub recorded: HeapKey,
    pub image: HeapImage,
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
    base: Option<KnownState>,
    /// As the journal names the state.
    pub state: Option<HeapKey>,
    /// By the numbers that the runs have on the worker.
    pub repeated: HashMap<RunNumber, UnstoredTurn>,
    pub verified: Option<ExecutionId>,
    pub diverged: Option<Divergence>,
}

impl RebuiltLive {
    pub async fn heap(&self) -> Result<Option<HeapImage>, Failure> {
        match self.worker.snapshot().await? {
            Some((heap, _)) => Ok(Some(heap)),
            None => Ok(self.base.as_ref().map(|base| base.image.clone())),
        }
    }
}

/// The state after the last run that was verified.
pub struct Rebuilt {
    pub heap: Option<HeapImage>,
    /// As the journal names it.
    pub state: Option<HeapKey>,
    /// None if not even the first run was verified.
    pub verified: Option<ExecutionId>,
    pub diverged: Option<Divergence>,
}

/// The first run or import that did something else when it was repeated, or can't be repeated.
pub struct Divergence {
    pub execution: ExecutionId,
    pub is_import: bool,
    pub why: String,
    /// The runs and imports after it.
    pub after: Vec<ExecutionId>,
}

impl Divergence {
    /// Of the first of these steps.
    fn of(steps: impl IntoIterator<Item = Step>, why: String) -> Option<Self> {
        let mut steps = steps.into_iter();
        let Step { execution, is_import, .. } = steps.next()?;
        Some(Self { execution, is_import, why, after: steps.map(|step| step.execution).collect() })
    }

    /// What differed, in words.
    pub fn what(&self) -> String {
        what(&self.execution, self.is_import)
    }
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
    /// The runs and imports that lead to a heap or state.
    pub async fn lineage(&self, heap: HeapKey) -> Result<Result<Lineage, NoProducer>, ServiceError> {
        self.lineage_since(heap, None).await
    }

    /// As `lineage`; it goes back no further than to a state that has been rebuilt already.
    pub(super) async fn lineage_since(&self, heap: HeapKey, known: Option<HeapKey>) -> Result<Result<Lineage, NoProducer>, ServiceError> {
        let (mut runs, mut seen, mut wanted, mut heap_mb) = (Vec::new(), HashSet::new(), heap, 0);
        let mut last_failure = None;
        let (base, is_since_known) = 'back: loop {
            let no_producer = |heap, failure: &Option<Failure>| Ok(Err(NoProducer { heap, failure: failure.clone() }));
            let links = self.stores.records.links(self.principal, wanted).await?;
            let Some(last_mb) = links.last().map(|link| link.heap_mb) else { return no_producer(wanted, &last_failure) };
            for JournalLink { execution, is_import, input_heap, heap_mb: cap_mb } in links {
                // If the first run that produced a heap was deleted, later ones may lead in a circle.
                if !seen.insert(execution.clone()) {
                    return no_producer(wanted, &last_failure);
                }
                runs.push(Step { execution, is_import, after: wanted });
                heap_mb = heap_mb.max(cap_mb);
                let Some(input) = input_heap else { break 'back (None, false) };
                if known == Some(input) {
                    break 'back (None, true);
                }
                wanted = input;
            }
            match self.restore(wanted, last_mb).await {
                Ok(image) => break (Some(KnownState { recorded: wanted, image }), false),
                Err(failure) => last_failure = Some(failure),
            }
        };
        runs.reverse();
        Ok(Ok(Lineage { base, is_since_known, runs, heap_mb }))
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

    /// On a live worker if this machine allows them, whether or not sessions are live: a state between two runs may be one that can't be stored.
    /// Fails if the last one can't.
    pub async fn rebuild(&self, lineage: Lineage) -> Result<Rebuilt, ServiceError> {
        if self.engine.live().is_err() {
            return self.rebuild_heap_by_heap(lineage).await;
        }
        let heap_mb = lineage.heap_mb;
        let rebuilt = self.rebuild_live(lineage, heap_mb).await?;
        let heap = rebuilt.heap().await.map_err(|failure| ServiceError::conflict(failure.code(), failure.to_string()))?;
        Ok(Rebuilt { heap, state: rebuilt.state, verified: rebuilt.verified, diverged: rebuilt.diverged })
    }

    /// Each run on a worker of its own.
    async fn rebuild_heap_by_heap(&self, lineage: Lineage) -> Result<Rebuilt, ServiceError> {
        let (state, heap) = lineage.base.map(|base| (base.recorded, base.image)).unzip();
        let mut rebuilt = Rebuilt { heap, state, verified: None, diverged: None };
        let mut steps = lineage.runs.into_iter();
        while let Some(step) = steps.next() {
            match self.repeat(&step.execution, Kind::Stateful(rebuilt.heap.clone())).await? {
                Ok(Replayed { heap: Some(heap), .. }) => {
                    (rebuilt.heap, rebuilt.state, rebuilt.verified) = (Some(heap), Some(step.after), Some(step.execution));
                }
                Ok(_) => return Err(ServiceError::Unavailable("a replay returned no heap".into())),
                Err(why) => {
                    rebuilt.diverged = Divergence::of(std::iter::once(step).chain(steps), why);
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
            let base = lineage.base.as_ref().map(|base| &base.image);
            let opened = self.engine.open_live(&self.holder, base, heap_mb).await;
            let worker = opened.map_err(|failure| ServiceError::Unavailable(failure.to_string()))?;
            let (base, state) = (lineage.base.clone(), lineage.base.as_ref().map(|base| base.recorded));
            let mut rebuilt = RebuiltLive { worker, base, state, repeated: HashMap::new(), verified: None, diverged };
            match self.repeat_in(&mut rebuilt, &lineage.runs).await? {
                None => return Ok(rebuilt),
                // A worker is of no use after a turn that differs: the turns before it are repeated in another one.
                Some((step, why)) => {
                    diverged = Divergence::of(lineage.runs.split_off(step), why);
                }
            }
        }
    }

    /// Returns the first run that differs, and why.
    async fn repeat_in(&self, rebuilt: &mut RebuiltLive, runs: &[Step]) -> Result<Option<(usize, String)>, ServiceError> {
        let mut recorded = None;
        for (index, step) in runs.iter().enumerate() {
            let began = Instant::now();
            let current = match recorded.take() {
                Some(read) => read,
                None => self.recorded(&step.execution).await?,
            };
            // The recording of the next run is read meanwhile.
            let next = async {
                match runs.get(index + 1) {
                    Some(next) => self.recorded(&next.execution).await.map(Some),
                    None => Ok(None),
                }
            };
            let repeated = self.repeat_recorded(current, Kind::Live(rebuilt.worker.clone()));
            let (repeated, next) = tokio::try_join!(repeated, next)?;
            match repeated {
                Ok(Replayed { turn: Some(turn), .. }) => {
                    rebuilt.repeated.insert(turn.run(), UnstoredTurn::new(step.after, began.elapsed()));
                    turn.commit_replay().await.map_err(|failure| ServiceError::Unavailable(failure.to_string()))?;
                    (rebuilt.state, rebuilt.verified) = (Some(step.after), Some(step.execution.clone()));
                }
                Ok(_) => return Err(ServiceError::Unavailable("a replay returned no state".into())),
                Err(why) => return Ok(Some((index, why))),
            }
            recorded = next;
        }
        Ok(None)
    }

    /// Repeats a run that has completed. The inner error says why it can't be repeated, or what differs.
    pub(super) async fn repeat(&self, execution: &ExecutionId, kind: Kind) -> Result<Result<Replayed, String>, ServiceError> {
        let recorded = self.recorded(execution).await?;
        self.repeat_recorded(recorded, kind).await
    }

    async fn repeat_recorded(
        &self,
        recorded: Result<RecordedRun, NotRecorded>,
        kind: Kind,
    ) -> Result<Result<Replayed, String>, ServiceError> {
        let recorded = match recorded {
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
