//! An execution from its acceptance to its one end: recorded, run, its heap stored, and only then told.

use crate::crash_point;
use crate::end::{Begun, End};
use crate::executions::blocking;
use crate::live::{Live, Stop};
use crate::origin::{self, Origin};
use crate::output_text::OutputText;
use crate::service::Service;
use crate::{Caller, ServiceError};
use heapstead_engine::{Event, Job, Kind, Outcome, Place};
use heapstead_store::metadata::{ExecutionEnd, NewExecution, NewLogEntry};
use heapstead_store::outputs::{Extent, OutputWriter};
use heapstead_store::{MetadataError, Tags};
use heapstead_types::{Failure, HeapKey, Limits, SessionName, limits};
use jiff::Timestamp;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::{OwnedRwLockReadGuard, oneshot};

/// A run to be made, found good in all its parts.
#[derive(Debug, Clone)]
pub struct RunRequest {
    pub code: String,
    pub origin: Origin,
    pub limits: Limits,
    /// Set on the heap that the run leaves.
    pub tags: Option<Tags>,
    /// The session whose log it goes into.
    pub session: Option<SessionName>,
}

/// What the store gets at least: a busy disk is no reason to fail a run that may compute for a second only.
const STORE_SECS_MIN: u32 = 5;
/// Between two attempts to store an end that the database did not take.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

impl Service {
    /// Accepts a run. When this returns its id is never forgotten; a refusal leaves nothing behind.
    pub async fn run(&self, caller: &Caller, request: RunRequest) -> Result<Arc<Live>, ServiceError> {
        limits::code(&request.code)?;
        if self.running.closing.load(Relaxed) {
            return Err(ServiceError::Unavailable("the server is shutting down".into()));
        }
        let place = self.running.engine.reserve(caller.lane, request.limits.heap_mb)?;
        let live = Arc::new(Live::new(Begun::now(), caller.principal.clone()));
        self.0.live.insert(live.clone());
        let (accepted, acceptance) = oneshot::channel();
        let execution =
            Execution { service: self.clone(), live: live.clone(), headers: caller.headers.clone(), lane: caller.lane, request };
        tokio::spawn(execution.drive(place, accepted));
        acceptance.await.unwrap_or_else(|_| Err(ServiceError::Unavailable("the execution was lost".into())))?;
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
    warnings: Vec<String>,
    output: Extent,
    /// What the log of its session gets, and the bytes of its heap.
    completed: Option<Completed>,
}

struct Completed {
    heap: HeapKey,
    heap_bytes: u64,
    javascript: Option<String>,
    /// Held until the record names the heap, so that nobody collects it before.
    _storing: OwnedRwLockReadGuard<()>,
}

impl Execution {
    async fn drive(self, place: Place, accepted: oneshot::Sender<Result<(), ServiceError>>) {
        // The code may start while the record is being written: it can touch nothing, and nobody hears of it before.
        let begin = async {
            let begun = self.begin().await;
            let refused = begun.is_err();
            let _ = accepted.send(begun);
            if refused { Err(()) } else { Ok(()) }
        };
        let run = async { Ok(self.execute(place).await) };
        let ended = tokio::try_join!(begin, run);
        let (service, id) = (self.service.clone(), self.live.id().clone());
        if let Ok(((), ended)) = ended {
            self.record(ended).await;
        }
        service.0.live.remove(&id);
    }

    async fn begin(&self) -> Result<(), ServiceError> {
        let new = NewExecution {
            id: self.live.id().clone(),
            principal: self.live.principal.clone(),
            session: self.request.session.clone(),
            started_at: self.live.begun.started_at,
            input_heap: self.request.origin.key(),
        };
        Ok(self.service.0.metadata.begin_execution(new).await?)
    }

    async fn execute(&self, place: Place) -> Ended {
        let mut warnings = Vec::new();
        let mut writer = self.service.0.outputs.writer(self.live.id());
        let (end, completed) = self.run(place, &mut warnings, &mut writer).await;
        // What could be read already stays, whatever becomes of the rest.
        let seen = writer.extent();
        let written = if writer.is_empty() { Ok(Extent::default()) } else { blocking(move || Ok(writer.finish()?)).await };
        match written {
            Ok(output) => Ended { end, warnings, output, completed },
            Err(error) => {
                let end = End::Failed(Failure::Store(error.to_string()));
                Ended { end, warnings, output: seen, completed: None }
            }
        }
    }

    async fn run(&self, place: Place, warnings: &mut Vec<String>, writer: &mut OutputWriter) -> (End, Option<Completed>) {
        let heap = tokio::select! {
            biased;
            stop = self.live.stopped() => return (stop.end(), None),
            restored = self.in_time(origin::restore(&self.service.running.heaps, self.request.origin, warnings)) => match restored {
                Ok(heap) => heap,
                Err(failure) => return (End::Failed(failure), None),
            },
        };
        let (result, heap, javascript) = match self.follow(place, Kind::Stateful(heap), writer).await {
            Ok(Outcome::Completed { result, heap: Some(heap), javascript }) => (result, heap, javascript),
            Ok(Outcome::Completed { heap: None, .. }) => {
                return (End::Failed(Failure::WorkerMisbehaved("it left no heap".into())), None);
            }
            Ok(Outcome::Failed(failure)) | Err(failure) => return (End::Failed(failure), None),
            Ok(Outcome::TimedOut { timeout_secs }) => return (End::TimedOut { timeout_secs }, None),
            Ok(Outcome::Cancelled) => return (End::Cancelled, None),
        };
        let heap_bytes = heap.length();
        let keep = async {
            let storing = self.service.0.storing.clone().read_owned().await;
            Ok((self.service.running.heaps.keep(heap).await?, storing))
        };
        tokio::select! {
            biased;
            stop = self.live.stopped() => (stop.end(), None),
            kept = self.in_time(keep) => match kept {
                Ok((heap, storing)) => {
                    crash_point::pass("heap-stored");
                    (End::Completed { result, heap: Some(heap) }, Some(Completed { heap, heap_bytes, javascript, _storing: storing }))
                }
                Err(failure) => (End::Failed(failure), None),
            },
        }
    }

    /// What the store does, in the time that the run has: a store that hangs must not hold it up for longer.
    async fn in_time<T>(&self, stored: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let secs = self.request.limits.timeout_secs.max(STORE_SECS_MIN);
        let late = || Failure::Store(format!("the heap store did not answer within {secs} s"));
        tokio::time::timeout(Duration::from_secs(secs.into()), stored).await.unwrap_or_else(|_| Err(late()))
    }

    /// Runs the code, and takes in its output as it comes.
    async fn follow(&self, place: Place, kind: Kind, writer: &mut OutputWriter) -> Result<Outcome, Failure> {
        let mut text = OutputText::new(&self.request.limits);
        let job =
            Job { code: self.request.code.clone(), kind, limits: self.request.limits, headers: self.headers.clone(), lane: self.lane };
        let mut execution = place.submit(job);
        let canceller = execution.canceller();
        let mut asked = None;
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
            let bytes = match event {
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
        let begun = Begun { warnings: ended.warnings, ..self.live.begun.clone() };
        let record = begun.clone().ended_at(&ended.end, completed_at);
        let log = match (&ended.completed, &self.request.session) {
            (Some(completed), Some(session)) => Some(NewLogEntry {
                session: session.clone(),
                input_heap: self.request.origin.key(),
                output_heap: completed.heap,
                code: completed.javascript.clone().unwrap_or_else(|| self.request.code.clone()),
                timestamp: completed_at,
                execution_id: self.live.id().clone(),
            }),
            _ => None,
        };
        let mut end = ExecutionEnd {
            status: record.status,
            completed_at,
            result: record.result.clone(),
            error: record.error.clone(),
            warnings: record.warnings.clone(),
            output: ended.output,
            tags: ended.completed.is_some().then(|| self.request.tags.clone()).flatten(),
            heap: ended.completed.as_ref().map(|completed| (completed.heap, completed.heap_bytes)),
            log,
        };
        crash_point::pass("before-commit");
        let stored = metadata.end_execution(self.live.id().clone(), end.clone()).await;
        crash_point::pass("committed");
        drop(ended.completed);
        let error = match stored {
            Ok(true) => return self.live.end(record, ended.output),
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
        end = ExecutionEnd { status: record.status, result: None, error: record.error.clone(), heap: None, tags: None, log: None, ..end };
        self.live.end(record, ended.output);
        while metadata.end_execution(self.live.id().clone(), end.clone()).await.is_err() {
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}
