//! Runs in a session whose heap is in memory: the worker to run on, and what of the run has to be stored before it is acknowledged.

use super::{Driver, Start, StoredHeap};
use crate::executions::journal::RunRecorder;
use crate::executions::outcome::ExecutionOutcome;
use crate::executions::request::Durability;
use crate::executions::start_point::{InputHeap, StartPoint};
use crate::{ServiceError, live};
use heapstead_engine::{HeapImage, LiveTurn, Slot};
use heapstead_store::records::RunSession;
use heapstead_types::{Failure, HeapKey, SessionId, random_bytes};
use tokio::time::Instant;

impl Driver {
    /// The session, if the run continues from its head and the head is in memory, or shall be.
    pub(super) async fn live_session(&self, head: Option<HeapKey>) -> Result<Option<SessionId>, ServiceError> {
        let Some(RunSession::Opened { id, logical: None, .. }) = &self.run_session else { return Ok(None) };
        if !matches!(self.request.start, StartPoint::Head { .. }) {
            return Ok(None);
        }
        let is_available = live::availability(&self.service.runtime.engine, &self.service.policy().live).is_ok();
        let is_wanted = match self.request.durability {
            Durability::Journal => true,
            // A heap that is not stored is restored by the worker that has it, or is replayed.
            Durability::Snapshot => self.service.is_unstored(head).await?,
        };
        Ok((is_available && is_wanted).then_some(*id))
    }

    /// Takes the session's worker, or opens one: from the newest stored heap, with the turns after it repeated.
    pub(super) async fn start_live(
        &self,
        slot: &Slot,
        session: SessionId,
        head: Option<HeapKey>,
        warnings: &mut Vec<String>,
    ) -> Result<Start, Failure> {
        self.wait_for_checkpoint(session).await?;
        let (live, heap_mb) = (&self.service.runtime.live, self.request.limits.heap_mb);
        let hold = match live.take(session, head) {
            Some(hold) if hold.worker.is_alive().await => Some(hold),
            _ => None,
        };
        let start = match hold {
            Some(hold) if hold.worker.heap_mb() == heap_mb => {
                return Ok(Start { heap: None, live: Some(hold), input_heap: head, prepared: None });
            }
            // A run with another cap needs another worker.
            Some(hold) if let Ok(Some((heap, _))) = hold.worker.snapshot().await => {
                Start { heap: Some(heap), live: None, input_heap: head, prepared: None }
            }
            _ => self.restore_or_rebuild(slot, self.request.start.input_heap(head), warnings).await?,
        };
        live.make_room(&self.holder, self.service.policy().live.per_owner_max);
        let worker = self.service.runtime.engine.open_live(&self.holder, start.heap.as_ref(), heap_mb).await?;
        let state = if start.prepared.is_some() { start.input_heap } else { head.filter(|_| start.heap.is_some()) };
        let hold = live.add((&self.running.principal, &self.holder), session, state, worker);
        Ok(Start { heap: None, live: Some(hold), input_heap: state, ..start })
    }

    /// If many turns have no heap yet, waits until one has. Refuses the turn if checkpoints keep failing.
    async fn wait_for_checkpoint(&self, session: SessionId) -> Result<(), Failure> {
        let (live, checkpoints) = (&self.service.runtime.live, &self.service.runtime.checkpoints);
        let turns_max = self.service.policy().live.tail_turns_max;
        if live.tail(session) < turns_max {
            return Ok(());
        }
        self.service.checkpoint(session);
        checkpoints.idle(session).await;
        match (live.tail(session) < turns_max, checkpoints.failure(session)) {
            (false, Some(why)) => Err(Failure::Unprepared(format!(
                "the last {turns_max} turns of the session have no checkpoint, because none can be written: {why}. Undo what can't be saved, \
                 or raise `--journal-tail-turns`"
            ))),
            _ => Ok(()),
        }
    }

    /// What a completed turn leaves: a state whose heap is stored later, or a stored heap if the caller wants one or the turn can't be repeated.
    pub(super) async fn keep_turn(
        &self,
        mut turn: LiveTurn,
        recorder: &RunRecorder,
        began: Instant,
    ) -> Result<(HeapKey, Option<StoredHeap>, Option<LiveTurn>), ExecutionOutcome> {
        match (recorder.is_complete(), self.request.durability) {
            (Ok(()), Durability::Journal) => return Ok((HeapKey::of_state(random_bytes()), None, Some(turn))),
            (Ok(()), Durability::Snapshot) => {}
            (Err(why), _) => {
                let mut warnings = self.running.known_start().warnings;
                warnings.push(format!("the heap was stored before the answer, because the run can't be repeated: {why}"));
                self.running.warn(warnings);
            }
        }
        let heap: HeapImage = turn.snapshot().await.map_err(ExecutionOutcome::Failed)?;
        let (key, stored) = self.store(heap, began).await?;
        Ok((key, Some(stored), Some(turn)))
    }

    /// The stored heap behind the heap or state to start from. None if it is not stored.
    pub(super) async fn stored(&self, input: InputHeap) -> Result<Option<InputHeap>, Failure> {
        // What a caller names is a heap.
        let (InputHeap::Heap { key, on_missing }, StartPoint::Head { .. }) = (input, self.request.start) else { return Ok(Some(input)) };
        let stored = self.service.stores.records.stored_heaps(vec![key]).await.map_err(|error| Failure::Store(error.to_string()))?;
        Ok(stored.first().copied().flatten().map(|key| InputHeap::Heap { key, on_missing }))
    }
}

impl crate::Service {
    async fn is_unstored(&self, head: Option<HeapKey>) -> Result<bool, ServiceError> {
        let Some(head) = head else { return Ok(false) };
        Ok(self.stores.records.stored_heaps(vec![head]).await?.first().is_some_and(Option::is_none))
    }
}
