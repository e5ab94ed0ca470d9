//! The import of catalog entities into a heap: a script of the catalogs is run on it, the result is stored, and recorded in the journal, so that it
//! can be repeated as a turn can.

use super::continuity::{Continuity, Wave};
use super::head::SessionHead;
use super::preparation::{Preparation, PrepareError, PreparedSession};
use crate::ServiceError;
use crate::executions::{ExecutionOutcome, RunEnd, RunRecorder};
use heapstead_catalog::{EntitySymbols, script, warnings};
use heapstead_engine::{Event, Execution, HeapImage, Job, Kind, Outcome, SourceText};
use heapstead_store::records::{Binding, ExecuteSession, NewHeap, NewHeapEngine, NewImport};
use heapstead_types::{ExecutionId, Failure, HeapKey, SharedText};

/// What is imported, into what, and what that means for the session.
pub(super) struct Import<'a> {
    pub into: SessionHead,
    pub entities: &'a [EntitySymbols],
    /// The execute session from then on.
    pub execute: ExecuteSession,
    /// Why the one before was lost.
    pub replaces: Option<String>,
    pub continuity: Continuity,
    pub wave: Wave,
}

/// What a script has produced.
struct Imported {
    heap: HeapImage,
    warnings: Vec<String>,
    record: Option<NewImport>,
}

impl Preparation<'_> {
    /// Imports entities into a heap and stores the result.
    pub(super) async fn expose(&self, import: Import<'_>) -> Result<PreparedSession, PrepareError> {
        let Import { mut into, entities, execute, replaces, continuity, wave } = import;
        let notice = self.notice(&execute, continuity, wave);
        let (undone_from, mut warned) = (into.undone_from, std::mem::take(&mut into.warnings));
        let binding =
            |head, import| Binding { logical: self.logical.id, execute, replaces, head, import, undone_from, pending_notice: None };
        if entities.is_empty() {
            // There is nothing in it to store.
            let binding = Some(binding(None, None));
            return Ok(PreparedSession { heap: into.heap, key: None, binding, notice, warnings: warned, reservation: None });
        }
        let Imported { heap, warnings, record } = self.run_script(into, script(self.catalogs(), entities)?).await?;
        warned.extend(warnings);
        let bytes = heap.length();
        let reservation = self.service.heaps().reserve_for(self.principal, heap.key(), bytes).await?;
        let (key, reservation) = self.heaps().store_reserved(heap.clone(), reservation).await?;
        let engine = NewHeapEngine::Produced(self.heaps().engine_id().clone());
        let head = NewHeap { key, bytes, engine, reservation: Some(reservation.id().clone()) };
        Ok(PreparedSession {
            heap: Some(heap),
            key: Some(key),
            binding: Some(binding(Some(head), record)),
            notice,
            warnings: warned,
            reservation: Some(reservation),
        })
    }

    async fn run_script(&self, into: SessionHead, code: String) -> Result<Imported, PrepareError> {
        let (limits, code) = (self.service.policy().limits, SourceText::from(code));
        let job = |base| Job {
            code: code.clone(),
            kind: Kind::Stateful(base),
            limits,
            headers: Vec::new(),
            replay: None,
            holder: self.holder.clone(),
        };
        let from = into.key;
        let execution = match self.slot {
            Some((slot, _)) => slot.submit_before(job(into.heap)),
            None => {
                let place = self.service.engine().reserve(&self.holder, limits.heap_mb).map_err(ServiceError::from)?;
                // Restored again when it has its slot: what waits holds no heap, unless that is stored nowhere.
                let (rebuilt, stored) = into.heap.map_or((None, None), |heap| match into.is_in_memory_only {
                    true => (Some(heap), None),
                    false => (None, Some(heap.key())),
                });
                let slot = place.with_slot().await;
                let base = match stored {
                    Some(key) => Some(self.heaps().restore(key).await?),
                    None => rebuilt,
                };
                slot.submit(job(base))
            }
        };
        self.follow(execution, from, SharedText::new(code)).await
    }

    async fn follow(&self, mut execution: Execution, from: Option<HeapKey>, code: SharedText) -> Result<Imported, PrepareError> {
        let mut recorder = RunRecorder::default();
        recorder.starts_from(from);
        let outcome = loop {
            match execution.next_event().await {
                Some(Event::Output(bytes)) => recorder.output(&bytes),
                Some(Event::Recorded(recording)) => recorder.recorded(recording),
                Some(Event::Started { seed, .. }) => recorder.started(seed),
                Some(Event::OutputDropped) => {}
                Some(Event::Ended(outcome)) => break outcome,
                None => break Outcome::Failed(Failure::NoWorker("the engine is shut down".into())),
            }
        };
        match outcome {
            Outcome::Completed { result, heap: Some(heap), .. } => {
                let end = RunEnd {
                    source: code,
                    limits: self.service.policy().limits,
                    engine: self.service.runtime.heaps.engine_id(),
                    session: Some(self.logical.session),
                    is_import: true,
                    heap: Some(heap.key()),
                    result: &result,
                    gap: None,
                };
                let record = recorder.entry(end).map(|entry| NewImport { id: ExecutionId::random(), entry });
                let warned = warnings(&result).unwrap_or_default();
                Ok(Imported { heap, warnings: warned.into_iter().map(|warning| warning.text).collect(), record })
            }
            Outcome::Failed(failure) => Err(PrepareError::Exposure(failure)),
            other => {
                let why = ExecutionOutcome::from(other).error().unwrap_or_else(|| "it returned no heap".into());
                Err(PrepareError::Exposure(Failure::NoWorker(why)))
            }
        }
    }
}
