//! An execution from its acceptance to its one end: recorded, run, its heap stored, and only then told.

use crate::end::{Begun, End};
use crate::executions::{await_elsewhere, blocking};
use crate::heap_access::HeapAccess;
use crate::live::{Live, Stop};
use crate::logical::{OnStale, Prepared, Wish};
use crate::origin::{self, Origin, StartsFrom};
use crate::output_text::OutputText;
use crate::record::ExecutionRecord;
use crate::service::Service;
use crate::turns::{InLine, MyTurn};
use crate::{Caller, ServiceError};
use crate::{crash_point, sessions, sweep};
use heapstead_engine::{Event, HeapImage, Held, Job, Kind, Outcome, Place};
use heapstead_store::metadata::{Beginning, ExecutionEnd, Finding, InSession, NewExecution, NewLogEntry};
use heapstead_store::outputs::{Extent, OutputWriter};
use heapstead_store::{MetadataError, Tags};
use heapstead_types::{ExecutionId, Failure, HeapKey, Limits, SessionId, limits};
use jiff::Timestamp;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::{OwnedRwLockReadGuard, oneshot};
use tokio::time::Instant;

/// A run to be made, found good in all its parts.
#[derive(Debug, Clone)]
pub struct RunRequest {
    pub code: String,
    pub from: StartsFrom,
    pub limits: Limits,
    /// Set on the heap that the run leaves.
    pub tags: Option<Tags>,
    /// The session that it runs in, or whose log it goes into.
    pub session: Option<InSession>,
    /// What to do when what that session was bound to is gone.
    pub on_stale: OnStale,
}

/// What the store gets at least: a busy disk is no reason to fail a run that may compute for a second only.
const STORE_SECS_MIN: u32 = 5;
/// And when the code took nearly all of its time: a run that ended within its limit does not fail for want of a moment to store its heap.
const STORE_LEFT_MIN: Duration = Duration::from_secs(1);
/// For a store that gives up at the deadline to say why.
const STORE_GRACE: Duration = Duration::from_millis(250);
/// Between two attempts to store an end that the database did not take.
pub const RETRY_PAUSE: Duration = Duration::from_millis(500);

impl Service {
    /// Accepts a run. When this returns its id is never forgotten; a refusal leaves nothing behind.
    pub async fn run(&self, caller: &Caller, request: RunRequest) -> Result<Arc<Live>, ServiceError> {
        limits::code(&request.code)?;
        if self.running.closing.load(Relaxed) {
            return Err(ServiceError::Unavailable("the server is shutting down".into()));
        }
        self.refuse_missing(caller, request.from).await?;
        self.refuse_stale(caller, &request).await?;
        let held = self.running.engine.hold(request.limits.heap_mb)?;
        let opened = request.session.as_ref().and_then(InSession::opened);
        let connection = caller.connection.as_ref().map(|connection| connection.id.as_str());
        let live = Arc::new(Live::new(Begun::now(), caller.principal.clone()).in_session(opened).on_connection(connection));
        self.0.live.insert(live.clone());
        self.follow_if_wanted(&live);
        let (accepted, acceptance) = oneshot::channel();
        let execution =
            Execution { service: self.clone(), live: live.clone(), headers: caller.headers.clone(), lane: caller.lane, request };
        match execution.opened() {
            Some(session) => drop(tokio::spawn(execution.drive_in_turn(session, held, accepted))),
            None => drop(tokio::spawn(execution.drive(held, accepted))),
        }
        acceptance.await.unwrap_or_else(|_| Err(ServiceError::Unavailable("the execution was lost".into())))?;
        if let Some(call) = &caller.call {
            call.hand_over(live.clone());
        }
        crash_point::pass("accepted");
        Ok(live)
    }
}

struct Execution {
    service: Service,
    live: Arc<Live>,
    headers: Vec<(String, String)>,
    lane: heapstead_engine::Lane,
    request: RunRequest,
}

/// What a run came to before it was recorded.
struct Ended {
    end: End,
    output: Extent,
    /// What the log of its session gets, and the bytes of its heap.
    completed: Option<Completed>,
    /// What was done about its logical session before it ran.
    session: Option<Prepared>,
    _turn: Option<MyTurn>,
}

/// What a run begins with.
struct Start {
    heap: Option<HeapImage>,
    input_heap: Option<HeapKey>,
    session: Option<Prepared>,
}

struct Completed {
    input_heap: Option<HeapKey>,
    heap: HeapKey,
    heap_bytes: u64,
    javascript: Option<String>,
    /// Held until the record names the heap, so that nobody collects it before.
    _storing: OwnedRwLockReadGuard<()>,
}

impl Execution {
    async fn drive(self, held: Held, accepted: oneshot::Sender<Result<(), ServiceError>>) {
        // The code may start while the record is being written: it can touch nothing, and nobody hears of it before.
        let begin = async {
            let begun = self.begin().await;
            let refused = begun.is_err();
            let _ = accepted.send(begun);
            if refused { Err(()) } else { Ok(()) }
        };
        let run = async { Ok(self.execute(held, None).await) };
        let ended = tokio::try_join!(begin, run);
        let (service, id) = (self.service.clone(), self.live.id().clone());
        if let Ok(((), ended)) = ended {
            self.record(ended).await;
        }
        service.0.live.remove(&id);
    }

    /// As `drive`, in a session: after everything that was accepted into it before.
    async fn drive_in_turn(self, session: SessionId, held: Held, accepted: oneshot::Sender<Result<(), ServiceError>>) {
        let (service, id) = (self.service.clone(), self.live.id().clone());
        let accepting = service.running.turns.accept(session).await;
        let begun = self.begin().await;
        let in_line = begun.is_ok().then(|| accepting.line_up());
        let _ = accepted.send(begun);
        if let Some(in_line) = in_line {
            let ended = self.execute(held, Some((session, in_line))).await;
            self.record(ended).await;
        }
        service.0.live.remove(&id);
    }

    /// The session with a head that it runs in.
    fn opened(&self) -> Option<SessionId> {
        match &self.request.session {
            Some(InSession::Opened { id, .. }) => Some(*id),
            _ => None,
        }
    }

    async fn begin(&self) -> Result<(), ServiceError> {
        let new = NewExecution {
            id: self.live.id().clone(),
            principal: self.live.principal.clone(),
            session: self.request.session.clone(),
            started_at: self.live.begun.started_at,
            input_heap: self.request.from.key(),
            internal: false,
        };
        let running_max = self.service.policy().quotas.running_max;
        match self.service.0.metadata.begin_execution(new, running_max).await? {
            Beginning::Begun => Ok(()),
            Beginning::SessionEnded => Err(ServiceError::SessionEnded(self.opened().map(|id| id.to_string()).unwrap_or_default())),
            Beginning::TooMany => Err(ServiceError::Busy(format!(
                "you have {} executions running, which is as many as an owner may have: wait for one to end",
                running_max.unwrap_or_default()
            ))),
        }
    }

    async fn execute(&self, held: Held, in_line: Option<(SessionId, InLine)>) -> Ended {
        let mut writer = self.service.0.outputs.writer(self.live.id());
        // Held until the end is recorded, or the next one would not see what this one leaves.
        let (turn, head) = match in_line {
            None => (None, Ok(None)),
            Some((session, in_line)) => match self.my_turn(session, in_line).await {
                Ok((turn, head)) => (Some(turn), Ok(head)),
                Err(end) => (None, Err(end)),
            },
        };
        let mut session = None;
        let (end, completed) = match head {
            Ok(head) => self.run(held, head, &mut session, &mut writer).await,
            Err(end) => (end, None),
        };
        // What could be read already stays, whatever becomes of the rest.
        let seen = writer.extent();
        let written = if writer.is_empty() { Ok(Extent::default()) } else { blocking(move || Ok(writer.finish()?)).await };
        match written {
            Ok(output) => Ended { end, output, completed, session, _turn: turn },
            Err(error) => {
                // A run that was stopped or failed by itself ended as it did; one that completed did not.
                let end = if completed.is_some() { End::Failed(Failure::Store(error.to_string())) } else { end };
                Ended { end, output: seen, completed: None, session, _turn: turn }
            }
        }
    }

    /// Its turn in the session, and the head that it finds then.
    async fn my_turn(&self, session: SessionId, in_line: InLine) -> Result<(MyTurn, Option<HeapKey>), End> {
        tokio::select! {
            biased;
            stop = self.live.stopped() => Err(stop.end()),
            turn = come_to_turn(&self.service, &self.live, session, in_line) => match turn {
                Ok(turn) => Ok(turn),
                // It has ended meanwhile, and with it what waits in it.
                Err(ServiceError::NotFound { .. }) => Err(End::Cancelled),
                Err(error) => Err(End::Failed(Failure::Store(error.to_string()))),
            },
        }
    }

    async fn run(
        &self,
        held: Held,
        head: Option<HeapKey>,
        session: &mut Option<Prepared>,
        writer: &mut OutputWriter,
    ) -> (End, Option<Completed>) {
        // Outside of a session nothing but the heap has to be waited for, so it stands in the queue already.
        let place = match self.opened() {
            Some(_) => Err(held),
            None => Ok(held.place(self.lane)),
        };
        let mut warnings = Vec::new();
        let mut began = Instant::now();
        let deadline = self.store_deadline(began);
        let heaps = self.service.running.heaps.until(deadline.into_std());
        let Start { heap, input_heap, session: prepared } = tokio::select! {
            biased;
            stop = self.live.stopped() => return (stop.end(), None),
            start = in_time(deadline, self.start(&heaps, head, &mut warnings)) => match start {
                Ok(start) => start,
                Err(failure) => return (End::Failed(failure), None),
            },
        };
        *session = prepared;
        self.live.warn(warnings);
        let place = place.unwrap_or_else(|held| held.place(self.lane));
        let (result, heap, javascript) = match self.follow(place, Kind::Stateful(heap), writer, &mut began).await {
            Ok(Outcome::Completed { result, heap: Some(heap), javascript }) => (result, heap, javascript),
            Ok(Outcome::Completed { heap: None, .. }) => {
                return (End::Failed(Failure::WorkerMisbehaved("it left no heap".into())), None);
            }
            Ok(Outcome::Failed(failure)) | Err(failure) => return (End::Failed(failure), None),
            Ok(Outcome::TimedOut { timeout_secs }) => return (End::TimedOut { timeout_secs }, None),
            Ok(Outcome::Cancelled) => return (End::Cancelled, None),
        };
        let heap_bytes = heap.length();
        if let Err(error) = self.service.check_quota(&self.live.principal, heap_bytes).await {
            return (End::Failed(Failure::Store(error.to_string())), None);
        }
        let deadline = self.store_deadline(began);
        let heaps = self.service.running.heaps.until(deadline.into_std());
        let meter = &self.service.running.meter;
        let keep = async {
            let begun = Instant::now();
            let storing = self.service.0.storing.clone().read_owned().await;
            let kept = heaps.keep(heap).await?;
            meter.snapshot.note(begun.elapsed());
            Ok((kept, storing))
        };
        tokio::select! {
            biased;
            stop = self.live.stopped() => (stop.end(), None),
            kept = in_time(deadline, keep) => match kept {
                Ok((heap, storing)) => {
                    crash_point::pass("heap-stored");
                    (End::Completed { result, heap: Some(heap) }, Some(Completed { input_heap, heap, heap_bytes, javascript, _storing: storing }))
                }
                Err(failure) => (End::Failed(failure), None),
            },
        }
    }

    /// The heap to begin with, and what has to be done about its logical session first.
    async fn start(&self, heaps: &HeapAccess, head: Option<HeapKey>, warnings: &mut Vec<String>) -> Result<Start, Failure> {
        let origin = self.request.from.origin(head);
        let Some(InSession::Opened { logical: Some(id), .. }) = &self.request.session else {
            return Ok(Start { heap: self.restore(heaps, origin, warnings).await?, input_heap: origin.key(), session: None });
        };
        let instead = match self.request.from {
            StartsFrom::Given(origin) => Some(self.restore(heaps, origin, warnings).await?),
            StartsFrom::Head { .. } => None,
        };
        let store = |error: MetadataError| Failure::Store(error.to_string());
        let logical = self.service.0.metadata.logical(&self.live.principal, *id).await.map_err(store)?;
        let logical = logical.ok_or_else(|| Failure::Unprepared("the session is gone".into()))?;
        let wish = Wish { picks: Vec::new(), on_stale: self.request.on_stale, instead };
        let mut prepared = self.service.prepare(&self.live.principal, &logical, heaps, wish).await?;
        warnings.append(&mut prepared.warnings);
        let input_heap = self.request.from.key().or(prepared.key);
        Ok(Start { heap: prepared.heap.take(), input_heap, session: Some(prepared) })
    }

    /// The heap to begin with. One that its caller names has to be its own; a session's head is.
    async fn restore(&self, heaps: &HeapAccess, origin: Origin, warnings: &mut Vec<String>) -> Result<Option<HeapImage>, Failure> {
        if let StartsFrom::Given(Origin::Heap { key, on_missing }) = self.request.from
            && !self.service.sees_heap(&self.live.principal, key).await.map_err(|error| Failure::Store(error.to_string()))?
        {
            return origin::missing(key, on_missing, warnings);
        }
        origin::restore(heaps, origin, warnings).await
    }

    /// Until when the store may take, for a run that began then.
    fn store_deadline(&self, began: Instant) -> Instant {
        let secs = self.request.limits.timeout_secs.max(STORE_SECS_MIN);
        (began + Duration::from_secs(secs.into())).max(Instant::now() + STORE_LEFT_MIN)
    }

    /// Runs the code, notes when it began, and takes in its output as it comes.
    async fn follow(&self, place: Place, kind: Kind, writer: &mut OutputWriter, began: &mut Instant) -> Result<Outcome, Failure> {
        let mut text = OutputText::new(&self.request.limits);
        let job =
            Job { code: self.request.code.clone(), kind, limits: self.request.limits, headers: self.headers.clone(), lane: self.lane };
        let mut execution = place.submit(job);
        let canceller = execution.canceller();
        let meter = &self.service.running.meter;
        let (mut asked, mut started) = (None, false);
        loop {
            let event = tokio::select! {
                biased;
                stop = self.live.stopped(), if asked.is_none() => {
                    asked = Some(stop);
                    // The outcome says whether this came in time.
                    canceller.cancel().await;
                    continue;
                }
                event = execution.next_event() => event,
            };
            if let Some(Event::Ended(_)) = &event
                && started
            {
                meter.run.note(began.elapsed());
            }
            let bytes = match event {
                Some(Event::Started) => {
                    *began = Instant::now();
                    started = true;
                    meter.queue.note(Timestamp::now().duration_since(self.live.begun.started_at).unsigned_abs());
                    self.live.start();
                    continue;
                }
                Some(Event::Output(bytes)) => text.written(bytes),
                Some(Event::OutputDropped) => text.dropped(),
                Some(Event::Ended(Outcome::Cancelled)) if asked == Some(Stop::Shutdown) => return Err(Failure::ServerStopped),
                Some(Event::Ended(outcome)) => return Ok(outcome),
                None => return Err(Failure::NoWorker("the engine is shut down".into())),
            };
            // Dropping the execution on the way out stops it.
            writer.append(bytes).map_err(|error| Failure::Store(error.to_string()))?;
            self.live.wrote(writer.extent());
        }
    }

    /// Stores the end, and tells it once it would survive a crash.
    async fn record(self, ended: Ended) {
        let metadata = &self.service.0.metadata;
        let completed_at = Timestamp::now();
        let begun = self.live.told();
        let session = ended.session;
        let told = session.as_ref().map(|session| session.told.clone()).filter(|told| !told.continuity.is_unbroken());
        let record = ExecutionRecord { told, ..begun.clone().ended_at(&ended.end, completed_at) };
        let log = match (&ended.completed, &self.request.session) {
            (Some(completed), Some(session)) => Some(NewLogEntry {
                session: session.clone(),
                input_heap: completed.input_heap,
                output_heap: completed.heap,
                code: completed.javascript.clone().unwrap_or_else(|| self.request.code.clone()),
                timestamp: completed_at,
                execution_id: self.live.id().clone(),
            }),
            _ => None,
        };
        let mut end = ExecutionEnd {
            status: record.status,
            started_at: Some(begun.started_at),
            completed_at,
            result: record.result.clone(),
            error: record.error.clone(),
            warnings: record.warnings.clone(),
            output: ended.output,
            tags: ended.completed.is_some().then(|| self.request.tags.clone()).flatten(),
            heap: ended.completed.as_ref().map(|completed| (completed.heap, completed.heap_bytes)),
            log,
            keeps: match &self.request.session {
                Some(InSession::Opened { logical: Some(logical), .. }) => Some((*logical, self.service.kept_until(completed_at))),
                _ => None,
            },
            bind: session.as_ref().and_then(|session| session.bind.clone()),
            continuity: record
                .told
                .as_ref()
                .map(|told| Finding { json: serde_json::to_string(told).unwrap_or_default(), is_told: self.live.promise() }),
        };
        crash_point::pass("before-commit");
        let stored = metadata.end_execution(self.live.id().clone(), end.clone()).await;
        crash_point::pass("committed");
        drop((ended.completed, session));
        let error = match stored {
            Ok(true) => {
                self.service.running.meter.ended(record.status);
                return self.live.end(record, ended.output);
            }
            // Another process took this one for dead. What it wrote stands.
            Ok(false) => {
                MetadataError::Unavailable { path: metadata.folder().into(), why: "the execution was ended from elsewhere".into() }
            }
            Err(error) => error,
        };
        // It has not happened then. Saying so needs no record: without one it fails too, when the next process finds it.
        tracing::error!(id = %self.live.id(), %error, "the end of an execution can't be stored");
        let failed = End::Failed(Failure::Store(error.to_string()));
        let record = begun.ended_at(&failed, completed_at);
        self.service.running.meter.ended(record.status);
        end = ExecutionEnd {
            status: record.status,
            result: None,
            error: record.error.clone(),
            heap: None,
            tags: None,
            log: None,
            bind: None,
            continuity: None,
            ..end
        };
        self.live.end(record, ended.output);
        while metadata.end_execution(self.live.id().clone(), end.clone()).await.is_err() {
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

/// Waits until everything that was accepted into the session before has ended, here and in other processes, and sees what that left.
pub async fn come_to_turn(
    service: &Service,
    live: &Live,
    session: SessionId,
    in_line: InLine,
) -> Result<(MyTurn, Option<HeapKey>), ServiceError> {
    let turn = in_line.my_turn().await;
    loop {
        let now = service.0.metadata.turn(session, live.id()).await?;
        let now = now.ok_or_else(|| sessions::unknown(&session.to_string()))?;
        match now.before {
            Some((id, process)) => wait_for(service, &id, &process).await,
            None => return Ok((turn, now.head)),
        }
    }
}

/// A run that was accepted before, and is not of this process, or it would have had its turn.
async fn wait_for(service: &Service, id: &ExecutionId, process: &str) {
    if service.0.metadata.lives(process) {
        await_elsewhere(service, id, process).await;
    } else if let Err(error) = sweep::fail_orphan(service, id).await {
        tracing::warn!(%error, "a run of a process that died can't be ended");
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// What the store does, in the time that the run has: a store that hangs must not hold it up for longer.
async fn in_time<T>(deadline: Instant, stored: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let late = || Failure::Store("the heap store did not answer in the time that was left for the run".into());
    tokio::time::timeout_at(deadline + STORE_GRACE, stored).await.unwrap_or_else(|_| Err(late()))
}
