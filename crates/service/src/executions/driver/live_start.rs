//! Runs in a session whose heap is in memory: the worker to run on, and what of the run has to be stored before it is acknowledged.

use super::{Begun, Driver, Room, Start, StoredHeap};
use crate::ServiceError;
use crate::executions::journal::RunRecorder;
use crate::executions::outcome::ExecutionOutcome;
use crate::executions::request::Durability;
use crate::executions::start_point::{InputHeap, StartPoint};
use crate::live::{LiveTurnHold, UnstoredTail, UnstoredTurn};
use heapstead_engine::{HeapImage, Kind, LiveTurn, LiveWorker, ReservedPlace, RunNumber, Slot};
use heapstead_store::records::{RunSession, Tail};
use heapstead_types::{Failure, HeapKey, SessionId, random_bytes};
use std::collections::HashMap;
use tokio::time::Instant;

impl Driver {
    /// The session, if the run continues from its head and the head is in memory, or shall be.
    pub(super) async fn live_session(&self, head: Option<HeapKey>) -> Result<Option<SessionId>, ServiceError> {
        let Some(id) = self.run_session.as_ref().and_then(RunSession::opened) else { return Ok(None) };
        if !matches!(self.request.start, StartPoint::Head { .. }) {
            return Ok(None);
        }
        let is_wanted = match self.request.durability {
            Durability::Journal => true,
            // A heap that is not stored is in the memory of a worker, or is replayed. A session does not become live for a run that stores its heap
            // anyway: to restore one takes about as long as a clone, and no memory between runs.
            Durability::Snapshot => self.service.runtime.live.has(id, head) || self.service.is_unstored(head).await?,
        };
        Ok((is_wanted && self.service.can_be_live()).then_some(id))
    }

    /// Starts the code on the worker of a live session that waits for its next turn, if there is a slot for it now. Whether the worker has the
    /// session's head is known once the run is accepted.
    pub(super) fn begin_ahead(&self, session: SessionId, held: ReservedPlace) -> Room {
        let is_logical = self.run_session.as_ref().and_then(RunSession::logical).is_some();
        let starts_from_head = matches!(self.request.start, StartPoint::Head { .. });
        if is_logical || !starts_from_head || self.request.durability != Durability::Journal {
            return Room::Reserved(held);
        }
        let policy = &self.service.policy().live;
        let Some(hold) = self.service.runtime.live.take_idle(session, self.request.limits.heap_mb, policy) else {
            return Room::Reserved(held);
        };
        match held.place().slot_now() {
            Ok(slot) => {
                let (execution, state) = (slot.submit(self.job(Kind::Live(hold.worker.clone()))), hold.state());
                Room::Begun(Box::new(Begun { execution, from: state, input_heap: state, live: Some(hold) }))
            }
            Err(place) => {
                hold.unchanged();
                Room::Queued(place)
            }
        }
    }

    /// Takes the session's worker, or opens one: from the newest stored heap, with the turns after it repeated.
    pub(super) async fn start_live(
        &self,
        slot: &Slot,
        session: SessionId,
        head: Option<HeapKey>,
        warnings: &mut Vec<String>,
    ) -> Result<Start, Failure> {
        self.wait_for_checkpoint(session, head).await?;
        let (live, heap_mb) = (&self.service.runtime.live, self.request.limits.heap_mb);
        warnings.extend(live.unreported_failure(session));
        let hold = match live.take(session, head) {
            Some(hold) if hold.worker.seems_alive() => Some(hold),
            _ => None,
        };
        // A turn state was in memory before; a heap is restored for the first time.
        let is_resumed = hold.is_none() && head.is_some_and(|head| head.is_state());
        let heap = match hold {
            Some(hold) if hold.worker.heap_mb() == heap_mb => {
                return Ok(Start { live: Some(hold), input_heap: head, ..Start::default() });
            }
            // A run with another cap needs another worker. What it starts from is stored, so that it has no tail.
            Some(hold) if let Ok(Some((heap, _))) = hold.worker.snapshot().await => {
                if let Some(state) = head.filter(HeapKey::is_state) {
                    let stored = self.service.store_checkpoint(&self.running.principal, state, heap.clone()).await;
                    stored.map_err(|error| Failure::Store(error.to_string()))?;
                }
                Some(heap)
            }
            _ => match self.load(self.request.start.input_heap(head), warnings).await? {
                Ok(heap) => heap,
                Err((head, failure)) => {
                    self.service.make_room(&self.holder, 1);
                    let start = self.rebuild_live(slot, session, head, failure, warnings).await?;
                    return self.with_bounded_tail(session, start).await;
                }
            },
        };
        self.service.make_room(&self.holder, 1);
        let worker = self.service.runtime.engine.open_live(&self.holder, heap.as_ref(), heap_mb).await?;
        let state = head.filter(|_| heap.is_some());
        let start = self.live_with(session, state, HashMap::new(), worker);
        Ok(if is_resumed { start.resumed() } else { start })
    }

    /// A start on a worker that has this state, and has had the others after its runs.
    pub(super) fn live_with(
        &self,
        session: SessionId,
        state: Option<HeapKey>,
        unstored: HashMap<RunNumber, UnstoredTurn>,
        worker: LiveWorker,
    ) -> Start {
        let owner = (&self.running.principal, &self.holder);
        let hold = self.service.runtime.live.add(owner, (session, self.request.session.opened()), state, unstored, worker);
        Start { live: Some(hold), input_heap: state, ..Start::default() }
    }

    /// If many turns have no heap yet, waits until one has. Refuses the turn if checkpoints keep failing.
    async fn wait_for_checkpoint(&self, session: SessionId, head: Option<HeapKey>) -> Result<(), Failure> {
        let live = &self.service.runtime.live;
        let policy = &self.service.policy().live;
        if !live.tail(session, head).is_full(policy) {
            return Ok(());
        }
        self.service.checkpoint(session);
        self.service.runtime.checkpoints.idle(session).await;
        let Tail { checkpoint, turns } = self.stored_tail(head).await?;
        live.shorten_tail(session, head, turns);
        let tail = live.tail(session, head);
        match &tail.failure {
            Some(why) if tail.is_full(policy) => Err(Failure::Unprepared(full_tail_text(&tail, turns, checkpoint, why))),
            _ => Ok(()),
        }
    }

    /// How far the head is ahead of the newest stored heap.
    async fn stored_tail(&self, head: Option<HeapKey>) -> Result<Tail, Failure> {
        let Some(head) = head else { return Ok(Tail::default()) };
        let tails = self.service.stores.records.tails(vec![head]).await.map_err(|error| Failure::Store(error.to_string()))?;
        Ok(tails.into_iter().next().unwrap_or_default())
    }

    /// If a session was resumed with a full tail, stores its heap before the next turn. Refuses the turn if that fails.
    async fn with_bounded_tail(&self, session: SessionId, start: Start) -> Result<Start, Failure> {
        let (live, head) = (&self.service.runtime.live, start.input_heap);
        let tail = live.tail(session, head);
        let (Some(hold), Some(state)) = (&start.live, head.filter(HeapKey::is_state)) else { return Ok(start) };
        if !tail.is_full(&self.service.policy().live) {
            return Ok(start);
        }
        let stored = match hold.worker.snapshot().await {
            Ok(Some((heap, _))) => {
                let stored = self.service.store_checkpoint(&self.running.principal, state, heap).await;
                stored.map(|_| ()).map_err(|error| error.to_string())
            }
            Ok(None) => return Ok(start),
            Err(failure) => Err(failure.to_string()),
        };
        match stored {
            Ok(()) => {
                live.shorten_tail(session, head, 0);
                Ok(start)
            }
            Err(why) => {
                let Tail { checkpoint, turns } = self.stored_tail(head).await?;
                start.live.into_iter().for_each(LiveTurnHold::unchanged);
                Err(Failure::Unprepared(full_tail_text(&tail, turns, checkpoint, &why)))
            }
        }
    }

    /// What a completed turn leaves: a state whose heap is stored later, or a stored heap if the caller wants one or the turn can't be repeated.
    pub(super) async fn keep_turn(
        &self,
        mut turn: LiveTurn,
        recorder: &RunRecorder,
        began: Instant,
    ) -> Result<(HeapKey, Option<StoredHeap>, Option<LiveTurn>), ExecutionOutcome> {
        let recorded = recorder.is_complete();
        if recorded.is_ok() && self.request.durability == Durability::Journal {
            return Ok((HeapKey::of_state(random_bytes()), None, Some(turn)));
        }
        let heap: HeapImage = turn.snapshot().await.map_err(ExecutionOutcome::Failed)?;
        let (key, stored) = self.store(heap, began).await?;
        if let Err(why) = recorded {
            let mut warnings = self.running.known_start().warnings;
            warnings.push(format!("the heap was stored before the answer, because the run can't be repeated: {why}"));
            self.running.warn(warnings);
        }
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

/// Why a turn is refused whose session has too many turns without a heap, and what to do: only a return to a stored heap is sure to help.
fn full_tail_text(tail: &UnstoredTail, turns: u64, checkpoint: Option<HeapKey>, why: &str) -> String {
    let (which, have, them) = match turns {
        1 => ("last turn".to_owned(), "has", "it"),
        _ => (format!("last {turns} turns"), "have", "them"),
    };
    let (heap, by_name) = match checkpoint {
        Some(key) => ("the newest stored heap", format!(", or continue from it (`heap`: `{key}`)")),
        None => ("a fresh heap", ", or continue from one (`heap`: an empty text)".to_owned()),
    };
    format!(
        "the {which} of the session, {secs} s of run time, {have} no stored heap, and the newest state can't be stored: {why}. To return to {heap}, \
         undo {them} (`session_undo` with `turns`: {turns}){by_name}. Fewer turns are enough if the state before them can be stored. The operator \
         can raise `--journal-tail-turns` and `--journal-tail-secs`",
        secs = tail.ran.as_secs()
    )
}

impl crate::Service {
    async fn is_unstored(&self, head: Option<HeapKey>) -> Result<bool, ServiceError> {
        let Some(head) = head else { return Ok(false) };
        Ok(self.stores.records.stored_heaps(vec![head]).await?.first().is_some_and(Option::is_none))
    }
}
