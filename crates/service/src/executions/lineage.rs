//! Rebuilds a heap that this engine can't load, by repeating the runs that led to it: from the newest heap before it that can be loaded, or from
//! a fresh one. Each replay is compared with its run; at a difference, what is verified so far is the result.

use super::replay::Replayer;
use crate::ServiceError;
use heapstead_engine::HeapImage;
use heapstead_store::records::{NewHeap, NewHeapEngine, RebuiltHeap};
use heapstead_types::{ErrorCode, ExecutionId, HeapKey, SessionId, Status};
use jiff::Timestamp;
use std::collections::HashSet;

/// The runs that lead to a heap.
pub struct Lineage {
    /// The heap that the first of them starts from; none for a fresh one.
    base: Option<HeapImage>,
    /// In their order.
    runs: Vec<ExecutionId>,
}

impl Lineage {
    /// The number of runs.
    pub fn runs(&self) -> usize {
        self.runs.len()
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
#[error("no run is recorded that produced heap {0}")]
pub struct NoProducer(HeapKey);

impl Replayer<'_> {
    pub async fn lineage(&self, heap: HeapKey) -> Result<Result<Lineage, NoProducer>, ServiceError> {
        let (mut runs, mut seen, mut wanted) = (Vec::new(), HashSet::new(), heap);
        let base = loop {
            let records = &self.stores.records;
            let Some(execution) = records.producer(self.principal, wanted).await? else { return Ok(Err(NoProducer(wanted))) };
            let Some(entry) = records.journal_entry(self.principal, &execution).await? else { return Ok(Err(NoProducer(wanted))) };
            // If the first run that produced a heap was deleted, later ones may lead in a circle.
            if !seen.insert(execution.clone()) {
                return Ok(Err(NoProducer(wanted)));
            }
            runs.push(execution);
            let Some(input) = entry.input_heap else { break None };
            match self.restore(input, entry.limits.heap_mb).await {
                Ok(image) => break Some(image),
                Err(_) => wanted = input,
            }
        };
        runs.reverse();
        Ok(Ok(Lineage { base, runs }))
    }

    /// Stores a rebuilt heap with the run that was repeated last; in a session, as its head.
    pub async fn keep(&self, execution: ExecutionId, image: HeapImage, session: Option<SessionId>) -> Result<HeapKey, ServiceError> {
        let (key, bytes) = (image.key(), image.length());
        let reservation = self.stores.heaps().reserve_for(self.principal, key, bytes).await?;
        let stored = self.heaps().store_reserved(image, reservation).await;
        let (key, reservation) = stored.map_err(|failure| ServiceError::Unavailable(failure.to_string()))?;
        let engine = NewHeapEngine::Produced(self.engine.info().id.clone());
        let heap = NewHeap { key, bytes, engine, reservation: Some(reservation.id().clone()) };
        let rebuilt = RebuiltHeap { execution, heap, session, at: Timestamp::now() };
        if !self.stores.records.add_rebuilt(self.principal, rebuilt).await? {
            return Err(ServiceError::conflict(ErrorCode::NotRecorded, "the run or the session has been deleted meanwhile"));
        }
        reservation.recorded();
        Ok(key)
    }

    pub async fn rebuild(&self, lineage: Lineage) -> Result<Rebuilt, ServiceError> {
        let mut rebuilt = Rebuilt { heap: lineage.base, verified: None, diverged: None };
        for execution in lineage.runs {
            let why = match self.recorded(&execution).await? {
                Err(why) => why.to_string(),
                Ok(recorded) => {
                    let replayed = self.run(&recorded, rebuilt.heap.clone()).await?;
                    // What leads to a heap has completed.
                    let differs = replayed.differences(Status::Completed, &recorded.entry);
                    if differs.is_empty() && replayed.heap.is_some() {
                        (rebuilt.heap, rebuilt.verified) = (replayed.heap, Some(execution));
                        continue;
                    }
                    let error = replayed.error.map(|error| format!(": {error}")).unwrap_or_default();
                    format!("its {} differs{error}", differs.join(" and its "))
                }
            };
            rebuilt.diverged = Some(Divergence { execution, why });
            break;
        }
        Ok(rebuilt)
    }
}
