//! The engine's interface: submit a job, follow its events, cancel it.

use crate::job_driver;
use crate::scheduler::{self, Load, Permit, Scheduler};
use crate::zygote::{Zygote, ZygoteError};
use crate::{Config, HeapImage, Lane, Refused, v8_version};
use heapstead_types::{EngineId, EngineMismatch, Failure, Limits};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};

/// Events buffered between a run and its reader; when the buffer is full, the run waits.
const EVENTS_MAX: usize = 16;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Zygote(#[from] ZygoteError),
}

/// What this engine can load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineInfo {
    pub id: EngineId,
    /// Digests of its first n native names, for n = 0, 1, 2, …
    pub natives: Vec<u32>,
}

impl EngineInfo {
    /// Whether a heap that `heap` wrote can be restored here.
    pub fn check(&self, heap: &EngineId) -> Result<(), EngineMismatch> {
        self.id.check(heap, |count| self.natives.get(count as usize).copied())
    }

    /// Whether a snapshot without an engine id may be loaded here. A snapshot of another V8 version never loads.
    pub fn check_payload(&self, payload: &[u8]) -> Result<(), EngineMismatch> {
        match v8_version::read(payload) {
            Some(version) if version == self.id.v8 => Ok(()),
            Some(version) => Err(EngineMismatch { heap: format!("v8-{version}"), engine: self.id.to_string() }),
            None => Err(EngineMismatch { heap: "of no known V8 version".into(), engine: self.id.to_string() }),
        }
    }
}

/// One run.
#[derive(Debug, Clone)]
pub struct Job {
    pub code: String,
    pub kind: Kind,
    pub limits: Limits,
    /// `X-MCP-*` headers, which code reads as `mcp.headers`.
    pub headers: Vec<(String, String)>,
    pub lane: Lane,
}

#[derive(Debug, Clone)]
pub enum Kind {
    /// Starts from this heap, or from the base heap, and produces a new heap.
    Stateful(Option<HeapImage>),
    /// Starts from the base heap and produces no heap. Has `WebAssembly`.
    Stateless,
}

#[derive(Debug)]
pub enum Event {
    /// The worker was sent its requests: the time limit counts from here. Sent again in the rare case that the worker died before it read them.
    Started,
    /// Console output as it was written.
    Output(Vec<u8>),
    /// Output reached its cap: further output is dropped. Sent at most once.
    OutputDropped,
    /// The last event.
    Ended(Outcome),
}

/// How a run ended. Each run has exactly one outcome.
#[derive(Debug)]
pub enum Outcome {
    Completed {
        result: String,
        /// None for stateless runs.
        heap: Option<HeapImage>,
        /// The JavaScript that ran, if types were stripped from the source.
        javascript: Option<String>,
    },
    Failed(Failure),
    TimedOut {
        timeout_secs: u32,
    },
    Cancelled,
}

/// A run that was accepted.
pub struct Execution {
    events: mpsc::Receiver<Event>,
    canceller: Canceller,
}

#[derive(Clone)]
pub struct Canceller(mpsc::Sender<oneshot::Sender<()>>);

impl Canceller {
    /// Cancels the run. Returns true if this ended it, and its worker is dead then; false if it had already ended.
    pub async fn cancel(&self) -> bool {
        let (done, cancelled) = oneshot::channel();
        self.0.send(done).await.is_ok() && cancelled.await.is_ok()
    }
}

impl Execution {
    pub async fn next_event(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Waits for the end and collects the output.
    pub async fn finish(mut self) -> (Vec<u8>, Outcome) {
        let mut output = Vec::new();
        loop {
            match self.next_event().await {
                Some(Event::Output(text)) => output.extend_from_slice(&text),
                Some(Event::Started | Event::OutputDropped) => {}
                Some(Event::Ended(outcome)) => return (output, outcome),
                None => return (output, Outcome::Failed(Failure::NoWorker("the engine is shut down".into()))),
            }
        }
    }
}

#[derive(Clone)]
pub struct Engine {
    zygote: Zygote,
    scheduler: Scheduler,
    info: EngineInfo,
    generation: String,
    /// Locked during [`Engine::run_unqueued`].
    unqueued: Arc<Mutex<()>>,
}

impl Engine {
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let base_heap = config.artifacts.base_heap.clone();
        let scheduler = Scheduler::new(config.concurrent_max, config.memory_mb_max, config.queued_max);
        let (zygote, info) = Zygote::start(config).await?;
        // The zygote has loaded this file. If it can't be read now, the generation differs, which is safe.
        let base = std::fs::read(base_heap).map(|heap| hex::encode(Sha256::digest(heap))).unwrap_or_default();
        let generation = format!("{}/base-{base}", info.id);
        Ok(Self { zygote, scheduler, info, generation, unqueued: Arc::default() })
    }

    pub fn info(&self) -> &EngineInfo {
        &self.info
    }

    pub fn load(&self) -> Load {
        self.scheduler.load()
    }

    /// Queues a job, or refuses it. Dropping the execution cancels it.
    pub fn submit(&self, job: Job) -> Result<Execution, Refused> {
        Ok(self.reserve(job.lane, job.limits.heap_mb)?.submit(job))
    }

    /// Runs a job without waiting for a slot, for health checks: a busy engine is healthy. One job at a time.
    pub async fn run_unqueued(&self, job: Job) -> (Vec<u8>, Outcome) {
        let _one_at_a_time = self.unqueued.lock().await;
        let (start, permit) = oneshot::channel();
        // Can't fail, because this function holds the receiver.
        let _ = start.send(Permit::uncounted());
        Place { permit, zygote: self.zygote.clone() }.submit(job).finish().await
    }

    /// Reserves a place for a job that has to wait for something else first. It counts towards the bound of the queue, and blocks no other job.
    pub fn hold(&self, heap_mb: u32) -> Result<ReservedPlace, Refused> {
        Ok(ReservedPlace { held: self.scheduler.hold(heap_mb)?, zygote: self.zygote.clone() })
    }

    /// Identifies what a fresh heap depends on: this engine and its base heap.
    pub fn generation(&self) -> &str {
        &self.generation
    }

    /// Reserves a place in the queue for a job that is still being prepared, or refuses it.
    pub fn reserve(&self, lane: Lane, heap_mb: u32) -> Result<Place, Refused> {
        Ok(Place { permit: self.scheduler.enter(lane, heap_mb)?, zygote: self.zygote.clone() })
    }
}

/// The place of a job that is not in the queue yet. Dropping it releases it.
pub struct ReservedPlace {
    held: scheduler::ReservedPlace,
    zygote: Zygote,
}

impl ReservedPlace {
    pub fn place(self, lane: Lane) -> Place {
        Place { permit: self.held.enter(lane), zygote: self.zygote }
    }

    /// Queues a job that has to end before the one that the place is for. A full queue does not refuse it.
    pub fn submit_before(&self, job: Job) -> Execution {
        let permit = self.held.enter_before(job.lane, job.limits.heap_mb);
        Place { permit, zygote: self.zygote.clone() }.submit(job)
    }
}

/// A place in the queue, later a slot. Dropping it releases it.
pub struct Place {
    permit: oneshot::Receiver<Permit>,
    zygote: Zygote,
}

impl Place {
    /// Runs the job that the place was reserved for. Dropping the execution cancels it.
    pub fn submit(self, job: Job) -> Execution {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let (cancel, cancels) = mpsc::channel(1);
        tokio::spawn(job_driver::drive(self.zygote, job, self.permit, sender, cancels));
        Execution { events, canceller: Canceller(cancel) }
    }
}
