//! One execution from its acceptance to its end: recorded, run, its heap stored, its end committed, and only then reported.

mod ahead;
mod begin;
mod end;
mod follow;
mod live_start;
mod rebuild;

use super::journal::RunRecorder;
use super::outcome::{ExecutionOutcome, ExecutionStart};
use super::request::RunRequest;
use super::running::RunningExecution;
use super::start_point::{self, InputHeap, StartPoint};
use super::turn_across_servers::wait_for_turn;
use super::turn_queue::{QueuedTurn, TurnGuard};
use crate::crash_point;
use crate::error::blocking;
use crate::heaps::{HeapCache, HeapReservation};
use crate::live::LiveTurnHold;
use crate::sessions::{Continuity, KnownHead, PreparationRequest, PreparedSession, Reason};
use crate::{Caller, Service, ServiceError};
use ahead::RanAhead;
use begin::{Begun, Room, slot_mb};
use follow::RunOutput;
use heapstead_engine::{HeapImage, LiveTurn, Outcome, Permit, ReservedPlace, Slot};
use heapstead_store::outputs::Extent;
use heapstead_store::records::{Accepted, NewExecution, RunSession, TurnId};
use heapstead_types::{BudgetHolder, ErrorCode, Failure, HeapKey, SessionId};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Minimum time for storing the heap, even if the code used its whole limit.
const STORE_LEFT_MIN: Duration = Duration::from_secs(1);

/// Accepts a run and starts driving it.
pub async fn accept(service: &Service, caller: &Caller, request: RunRequest) -> Result<Arc<RunningExecution>, ServiceError> {
    service.refuse_while_closing()?;
    let is_visible = service.heaps().refuse_missing(caller, request.start).await?;
    service.refuse_stale(caller, &request).await?;
    let opened = request.session.opened();
    let held = service.runtime.engine.hold(&caller.budget_holder(), slot_mb(service, &request))?;
    let session = opened.map(|session| session.id);
    let connection = caller.connection.as_ref().map(|connection| connection.id.as_str());
    let running = Arc::new(RunningExecution::new(ExecutionStart::now(), caller.principal.clone(), session, connection));
    service.stores.running.insert(running.clone());
    service.events().follow_if_wanted(&running);
    let (accepted, acceptance) = oneshot::channel();
    let session_expiry = service.policy().expiry(running.start.started_at);
    let driver = Driver {
        run_session: request.run_session(session_expiry),
        service: service.clone(),
        running: running.clone(),
        headers: caller.headers.clone(),
        holder: caller.budget_holder(),
        request,
        is_visible,
    };
    match session {
        Some(session) => drop(tokio::spawn(driver.drive_in_turn(session, held, accepted))),
        None => drop(tokio::spawn(driver.drive(held, accepted))),
    }
    acceptance.await.unwrap_or_else(|_| Err(ServiceError::Unavailable("the execution was lost".into())))?;
    if let Some(call) = &caller.call {
        call.hand_over(running.clone());
    }
    if let Some(session) = session {
        service.runtime.live.refreshed(session, session_expiry);
    }
    if let Some(entered) = caller.entered.as_ref().filter(|entered| session == Some(entered.id())) {
        entered.refreshed_by_run(session_expiry);
    }
    crash_point::pass("accepted");
    Ok(running)
}

struct Driver {
    service: Service,
    running: Arc<RunningExecution>,
    headers: Vec<(String, String)>,
    holder: BudgetHolder,
    request: RunRequest,
    /// Whether the heap that the caller named is known to be its own.
    is_visible: bool,
    run_session: Option<RunSession>,
}

/// A run that has ended and is not recorded yet.
struct Ended {
    outcome: ExecutionOutcome,
    output: Extent,
    completed: Option<Completed>,
    recorder: RunRecorder,
    /// What was prepared in its logical session before it ran.
    prepared: Option<PreparedSession>,
    /// The worker that it ran on, if its session is live.
    live: Option<LiveTurnHold>,
    /// Held until the end is recorded, so that the next turn sees the new head.
    turn: Option<TurnGuard>,
}

impl Ended {
    fn not_started(outcome: ExecutionOutcome) -> Self {
        let (output, recorder) = (Extent::default(), RunRecorder::default());
        Self { outcome, output, completed: None, recorder, prepared: None, live: None, turn: None }
    }
}

/// What a run starts with.
#[derive(Default)]
struct Start {
    heap: Option<HeapImage>,
    /// Runs on this worker, which has the heap.
    live: Option<LiveTurnHold>,
    input_heap: Option<HeapKey>,
    prepared: Option<PreparedSession>,
}

impl Start {
    /// On a state that was not in memory any more.
    fn resumed(self) -> Self {
        Self { prepared: Some(PreparedSession::without_symbols(self.input_heap, Continuity::RESUMED)), ..self }
    }

    /// In a logical session that was prepared before.
    fn after(mut self, mut prepared: PreparedSession, warnings: &mut Vec<String>) -> Self {
        warnings.append(&mut prepared.warnings);
        if let Some(rebuilt) = self.prepared.take() {
            prepared.notice.continuity = prepared.notice.continuity.and_then(rebuilt.notice.continuity);
            prepared.key = rebuilt.key;
        }
        self.prepared = Some(prepared);
        self
    }
}

struct Completed {
    input_heap: Option<HeapKey>,
    /// The head of the session, if the caller named another heap.
    instead_of: Option<Option<HeapKey>>,
    /// The heap, or the state if its heap is not stored yet.
    heap: HeapKey,
    stored: Option<StoredHeap>,
    /// Of a run on a live worker.
    turn: Option<LiveTurn>,
    /// Held until the end is recorded: what is being stored takes memory of this process.
    permit: Option<Permit>,
}

struct StoredHeap {
    bytes: u64,
    /// Of the heap, until a record names it.
    reservation: HeapReservation,
}

/// A place in the queue of a session, and the session's head if nothing is ahead.
struct Queued {
    session: SessionId,
    in_line: QueuedTurn,
    head: Option<Option<HeapKey>>,
}

impl Driver {
    async fn drive(self, held: ReservedPlace, accepted: oneshot::Sender<Result<(), ServiceError>>) {
        // The code may start while the record is being written: it has no effects, and nothing of it is reported before.
        let record = async {
            let recorded = self.record_acceptance().await.map(drop);
            let is_refused = recorded.is_err();
            let _ = accepted.send(recorded);
            if is_refused { Err(()) } else { Ok(()) }
        };
        let run = async { Ok(self.execute(Room::Reserved(held), None).await) };
        let ended = tokio::try_join!(record, run);
        let (service, id) = (self.service.clone(), self.running.id().clone());
        if let Ok(((), ended)) = ended {
            self.record_end(ended).await;
        }
        service.stores.running.remove(&id);
    }

    /// As `drive`, in an opened session: after everything accepted into it before.
    async fn drive_in_turn(self, session: SessionId, held: ReservedPlace, accepted: oneshot::Sender<Result<(), ServiceError>>) {
        let (service, id) = (self.service.clone(), self.running.id().clone());
        let accepting = service.stores.turns.accept(session).await;
        // On the worker of a live session the code starts before anything is recorded.
        let room = if accepting.is_first() { self.begin_ahead(session, held) } else { Room::Reserved(held) };
        let (room, recorded) = match room {
            Room::Begun(begun) => match self.record_ahead(begun).await {
                RanAhead::Recorded(ended) => {
                    let _ = accepted.send(Ok(()));
                    self.settle(*ended).await;
                    return service.stores.running.remove(&id);
                }
                RanAhead::Accepted(room, recorded) => (room, recorded),
            },
            room => (room, self.record_acceptance().await),
        };
        match recorded {
            Ok(head) => {
                let queued = Queued { session, in_line: accepting.line_up(), head };
                let _ = accepted.send(Ok(()));
                let ended = self.execute(room, Some(queued)).await;
                self.record_end(ended).await;
            }
            Err(error) => {
                room.abandon();
                let _ = accepted.send(Err(error));
            }
        }
        service.stores.running.remove(&id);
    }

    /// Records the execution as running. Returns the session's head if it is in a session and nothing is ahead of it.
    async fn record_acceptance(&self) -> Result<Option<Option<HeapKey>>, ServiceError> {
        let running_max = self.service.policy().quotas.running_max;
        self.check_accepted(self.service.stores.records.accept_execution(self.new_execution(), running_max).await?)
    }

    fn new_execution(&self) -> NewExecution {
        NewExecution {
            id: self.running.id().clone(),
            principal: self.running.principal.clone(),
            session: self.run_session.clone(),
            started_at: self.running.start.started_at,
            input_heap: self.request.start.key(),
        }
    }

    fn check_accepted(&self, accepted: Accepted) -> Result<Option<Option<HeapKey>>, ServiceError> {
        match accepted {
            Accepted::Alone => Ok(None),
            Accepted::InSession { head } => Ok(head),
            Accepted::SessionEnded => Err(ServiceError::SessionEnded(self.run_session.as_ref().map(RunSession::name).unwrap_or_default())),
            Accepted::TooMany => Err(ServiceError::busy(
                ErrorCode::TooManyExecutions,
                format!(
                    "you have {} executions running, which is as many as an owner may have: wait for one to end",
                    self.service.policy().quotas.running_max.unwrap_or_default()
                ),
            )),
        }
    }

    async fn execute(&self, room: Room, queued: Option<Queued>) -> Ended {
        let (turn, head) = match queued {
            None => (None, Ok(None)),
            Some(queued) => match self.wait_for_turn(queued).await {
                Ok((turn, head)) => (Some(turn), Ok(head)),
                Err(outcome) => (None, Err(outcome)),
            },
        };
        let mut ended = match head {
            Ok(head) => self.run_from(room, head, Some(&self.running)).await,
            Err(outcome) => {
                room.abandon();
                Ended::not_started(outcome)
            }
        };
        ended.turn = turn;
        ended
    }

    /// Runs the code from this head, and writes its output. `shown_in` is where callers see the output before the end.
    async fn run_from(&self, room: Room, head: Option<HeapKey>, shown_in: Option<&RunningExecution>) -> Ended {
        let mut output = RunOutput { writer: self.service.stores.outputs.writer(self.running.id()), shown_in };
        let (mut prepared, mut recorder, mut live) = (None, RunRecorder::default(), None);
        let (outcome, completed) = self.run(room, head, (&mut prepared, &mut live), &mut recorder, &mut output).await;
        let writer = output.writer;
        // Output that callers could read already stays, even if the rest can't be written.
        let readable = writer.extent();
        let written = if writer.is_empty() { Ok(Extent::default()) } else { blocking(move || Ok(writer.finish()?)).await };
        match written {
            Ok(output) => Ended { outcome, output, completed, recorder, prepared, live, turn: None },
            Err(error) => {
                // A run that failed or was stopped keeps its outcome; one that completed did not.
                let is_completed = completed.is_some();
                let outcome = if is_completed { ExecutionOutcome::Failed(Failure::Store(error.to_string())) } else { outcome };
                Ended { outcome, output: readable, completed: None, recorder, prepared, live, turn: None }
            }
        }
    }

    /// Waits for the turn in the session. Returns the head at that time.
    async fn wait_for_turn(&self, queued: Queued) -> Result<(TurnGuard, Option<HeapKey>), ExecutionOutcome> {
        let Queued { session, in_line, head } = queued;
        let turn_id = TurnId::of_execution(self.running.id());
        let my_turn = async {
            match head {
                Some(head) => Ok((in_line.my_turn().await, head)),
                None => wait_for_turn(&self.service.stores, &turn_id, session, in_line).await,
            }
        };
        tokio::select! {
            biased;
            stop = self.running.stop_requested() => Err(stop.outcome()),
            turn = my_turn => match turn {
                Ok(turn) => Ok(turn),
                // The session has ended meanwhile, and with it everything that waits in it.
                Err(ServiceError::NotFound { .. }) => Err(ExecutionOutcome::Cancelled),
                Err(error) => Err(ExecutionOutcome::Failed(Failure::Store(error.to_string()))),
            },
        }
    }

    async fn run(
        &self,
        room: Room,
        head: Option<HeapKey>,
        (prepared, live): (&mut Option<PreparedSession>, &mut Option<LiveTurnHold>),
        recorder: &mut RunRecorder,
        output: &mut RunOutput<'_>,
    ) -> (ExecutionOutcome, Option<Completed>) {
        let mut begun = match room {
            Room::Begun(begun) if begun.live.as_ref().is_some_and(|live| live.state() == head) => *begun,
            room => match self.begin(room, head, prepared).await {
                Ok(begun) => begun,
                Err(outcome) => return (outcome, None),
            },
        };
        let (mut began, mut is_again) = (Instant::now(), false);
        let (followed, input_heap) = loop {
            let Begun { execution, live: hold, from, input_heap } = begun;
            *live = hold;
            recorder.starts_from(from);
            match self.follow(execution, recorder, output, &mut began).await {
                // The worker of the session had died, and no code has run: the session is resumed.
                Ok(Outcome::Failed(Failure::NoWorker(_))) if live.is_some() && !is_again => (*live, is_again) = (None, true),
                followed => break (followed, input_heap),
            }
            begun = match self.begin(Room::Again, head, prepared).await {
                Ok(begun) => begun,
                Err(outcome) => return (outcome, None),
            };
        };
        let (result, heap, turn, permit) = match followed {
            Ok(Outcome::Completed { result, heap, turn, permit }) => (result, heap, turn, permit),
            Ok(outcome) => return (outcome.into(), None),
            Err(failure) => return (ExecutionOutcome::Failed(failure), None),
        };
        let kept = match (heap, turn) {
            (Some(heap), _) => self.store(heap, began).await.map(|(key, stored)| (key, Some(stored), None)),
            (None, Some(turn)) => self.keep_turn(turn, recorder, began).await,
            (None, None) => Err(ExecutionOutcome::Failed(Failure::WorkerMisbehaved("it returned no heap".into()))),
        };
        match kept {
            Ok((heap, stored, turn)) => {
                crash_point::pass("heap-stored");
                let shown = stored.is_some().then_some(heap);
                let is_given = matches!(self.request.start, StartPoint::Given(_));
                let instead_of = is_given.then_some(head).filter(|_| self.run_session.as_ref().and_then(RunSession::opened).is_some());
                let completed = Completed { input_heap, instead_of, heap, stored, turn, permit: Some(permit) };
                (ExecutionOutcome::Completed { result, heap: shown }, Some(completed))
            }
            Err(outcome) => (outcome, None),
        }
    }

    /// Reserves room for the heap of a run and stores it, in the time that is left for it.
    async fn store(&self, heap: HeapImage, began: Instant) -> Result<(HeapKey, StoredHeap), ExecutionOutcome> {
        let (heaps, heap_bytes) = (self.heaps(began), heap.length());
        let store = async {
            let begun = Instant::now();
            let reserved = self.service.heaps().reserve_for(&self.running.principal, heap.key(), heap_bytes).await;
            let reservation = reserved.map_err(|error| match error.code() {
                ErrorCode::HeapQuotaExceeded | ErrorCode::StorageQuotaExceeded => Failure::HeapQuota(error.to_string()),
                _ => Failure::Store(error.to_string()),
            })?;
            crash_point::pass("heap-reserved");
            let (key, reservation) = heaps.store_reserved(heap, reservation).await?;
            self.service.runtime.meter.snapshot.record(begun.elapsed());
            Ok((key, StoredHeap { bytes: heap_bytes, reservation }))
        };
        tokio::select! {
            biased;
            stop = self.running.stop_requested() => Err(stop.outcome()),
            stored = store => stored.map_err(ExecutionOutcome::Failed),
        }
    }

    /// Restores the heap to start with, and prepares the logical session.
    async fn start(&self, slot: &Slot, head: Option<HeapKey>, warnings: &mut Vec<String>) -> Result<Start, Failure> {
        let heaps = &self.heaps(Instant::now());
        let input = self.request.start.input_heap(head);
        let live = self.live_session(head).await.map_err(|error| Failure::Store(error.to_string()))?;
        let Some(logical) = self.run_session.as_ref().and_then(RunSession::logical) else {
            return match live {
                Some(session) => self.start_live(slot, session, head, warnings).await,
                None => self.restore_or_rebuild(slot, input, warnings).await,
            };
        };
        let instead = match self.request.start {
            StartPoint::Given(input) => Some(self.restore(heaps, input, warnings).await?),
            StartPoint::Head { .. } => None,
        };
        let principal = &self.running.principal;
        let found = self.service.stores.records.logical_session(principal, logical).await;
        let found = found.map_err(|error| Failure::Store(error.to_string()))?;
        let logical = found.ok_or_else(|| Failure::Unprepared("the session is gone".into()))?;
        let request = PreparationRequest {
            on_stale: self.request.on_stale,
            instead,
            holder: self.holder.clone(),
            head: if live.is_some() { KnownHead::NotNeeded } else { KnownHead::Needed },
            ..PreparationRequest::default()
        };
        let slot_given = Some((slot, self.slot_mb()));
        let mut prepared = self.service.prepare(principal, &logical, slot_given, request.clone()).await?;
        if let Some(session) = live.filter(|_| prepared.binding.is_none()) {
            let mut rebuilding = Vec::new();
            match self.start_live(slot, session, prepared.key, &mut rebuilding).await {
                Ok(start) => {
                    warnings.append(&mut rebuilding);
                    return Ok(start.after(prepared, warnings));
                }
                Err(failure) if Reason::of(&failure).is_some() => {}
                Err(failure) => return Err(failure),
            }
            let request = PreparationRequest { head: KnownHead::Needed, ..request };
            prepared = self.service.prepare(principal, &logical, slot_given, request).await?;
        }
        warnings.append(&mut prepared.warnings);
        let input_heap = self.request.start.key().or(prepared.key);
        Ok(Start { heap: prepared.heap.take(), input_heap, prepared: Some(prepared), ..Start::default() })
    }

    async fn restore_or_rebuild(&self, slot: &Slot, input: InputHeap, warnings: &mut Vec<String>) -> Result<Start, Failure> {
        match self.load(input, warnings).await? {
            Ok(heap) => {
                let start = Start { heap, input_heap: input.key(), ..Start::default() };
                let is_resumed = start.heap.is_some() && start.input_heap.is_some_and(|head| head.is_state());
                Ok(if is_resumed { start.resumed() } else { start })
            }
            Err((head, failure)) => self.rebuild(slot, head, failure, warnings).await,
        }
    }

    /// Restores the heap to start from. The inner error is a head that is not stored, or not by this engine: it can be rebuilt.
    async fn load(&self, input: InputHeap, warnings: &mut Vec<String>) -> Result<Result<Option<HeapImage>, (HeapKey, Failure)>, Failure> {
        let restored = match self.stored(input).await? {
            Some(stored) => self.restore(&self.heaps(Instant::now()), stored, warnings).await,
            None => Err(Failure::StateLost),
        };
        match (restored, self.request.start, input.key()) {
            (Err(failure @ (Failure::HeapOfAnotherEngine { .. } | Failure::StateLost)), StartPoint::Head { .. }, Some(head)) => {
                Ok(Err((head, failure)))
            }
            (restored, ..) => restored.map(Ok),
        }
    }

    /// Restores a heap. One that the caller named has to be its own; a session's head is.
    async fn restore(&self, heaps: &HeapCache, input: InputHeap, warnings: &mut Vec<String>) -> Result<Option<HeapImage>, Failure> {
        if let StartPoint::Given(InputHeap::Heap { key, on_missing }) = self.request.start
            && !self.is_visible
        {
            let is_visible = self.service.heaps().is_visible(&self.running.principal, key).await;
            if !is_visible.map_err(|error| Failure::Store(error.to_string()))? {
                return start_point::missing(key, on_missing, warnings);
            }
        }
        start_point::restore(heaps, input, warnings).await
    }

    /// The heap store, bounded by the time that it may take for a run that began then.
    fn heaps(&self, began: Instant) -> HeapCache {
        let deadline = began + HeapCache::time_max(&self.request.limits);
        let heaps = self.service.runtime.heaps.for_owner(&self.running.principal);
        heaps.until(deadline.max(Instant::now() + STORE_LEFT_MIN).into_std()).for_cap(self.request.limits.heap_mb)
    }
}
