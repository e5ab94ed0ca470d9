//! The engine's interface: submit a job, follow its events, cancel it.

use crate::answers::{AnswerRoom, Answers};
use crate::cpu_shares::CpuShares;
use crate::job_driver;
use crate::live::{CloneCount, LiveTurn, LiveWorker};
use crate::scheduler::{self, Bounds, Load, Permit, Scheduler};
use crate::zygote::ZygoteError;
use crate::zygote_process::Started;
use crate::zygotes::Zygotes;
use crate::{Config, HeapImage, Refused, SourceText, v8_version};
use heapstead_types::limits::worker_mb_max;
use heapstead_types::{BudgetHolder, EngineId, EngineMismatch, Failure, Limits};
use heapstead_wire::control::{OptionalLayer, StatefulJit};
use heapstead_wire::{RecordedInputs, SEED_BYTES, ScriptForm};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::Instant;

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
    pub code: SourceText,
    pub kind: Kind,
    pub limits: Limits,
    /// `X-MCP-*` headers, which code reads as `mcp.headers`.
    pub headers: Vec<(String, String)>,
    /// Of an earlier run, which this one repeats.
    pub replay: Option<Replay>,
    /// Under whom it is scheduled and counted.
    pub holder: BudgetHolder,
}

/// What has to be known to repeat a run, besides its code, its limits and the heap that it started from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Of all randomness in the run.
    pub seed: [u8; SEED_BYTES],
    pub inputs: RecordedInputs,
}

/// What is repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    pub recorded: Recorded,
    /// The code of the job is the JavaScript that ran, in this form. None: it is the source.
    pub form: Option<ScriptForm>,
}

/// What a stateful run has read from outside, and what V8 has compiled, if it has compiled anything.
#[derive(Debug)]
pub struct Recording {
    pub recorded: Recorded,
    pub javascript: Option<Javascript>,
    pub room: RecordingRoom,
}

/// The JavaScript that ran, and how it was made from the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Javascript {
    /// Empty if the form says that it is the source.
    pub text: String,
    /// None if it is too long.
    pub form: Option<ScriptForm>,
}

impl Javascript {
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.form.as_ref().map_or(0, |form| form.as_bytes().len())
    }
}

/// Holds the memory of a long recording. Kept until it is stored.
#[derive(Debug, Default)]
pub struct RecordingRoom {
    pub(crate) _room: Option<Arc<AnswerRoom>>,
}

#[derive(Debug, Clone)]
pub enum Kind {
    /// Starts from this heap, or from the base heap, and produces a new heap.
    Stateful(Option<HeapImage>),
    /// Starts from the base heap and produces no heap. Has `WebAssembly`.
    Stateless,
    /// Continues from the last committed run of this worker, whose cap it has, and produces a turn to be committed.
    Live(LiveWorker),
}

#[derive(Debug)]
pub enum Event {
    /// The worker was sent its requests: the time limit counts from here. Sent again in the rare case that the worker died before it read them.
    Started {
        /// Of all randomness in the run.
        seed: [u8; SEED_BYTES],
        at: Instant,
    },
    /// Console output as it was written.
    Output(Vec<u8>),
    /// Output reached its cap: further output is dropped. Sent at most once.
    OutputDropped,
    /// Sent before the end of a stateful run that completed, or failed by itself; not of a replay.
    Recorded(Recording),
    /// The last event.
    Ended(Outcome),
}

/// How a run ended. Each run has exactly one outcome.
#[derive(Debug)]
pub enum Outcome {
    Completed {
        result: String,
        /// None for stateless runs and runs on a live worker.
        heap: Option<HeapImage>,
        /// Of a run on a live worker.
        turn: Option<LiveTurn>,
        /// Holds the slot, the memory of what the worker left and the room of a long answer, until all that is stored.
        permit: Permit,
    },
    Failed(Failure),
    TimedOut {
        timeout_secs: u32,
    },
    Cancelled,
}

impl Outcome {
    /// The outcome of a worker that has ended: a completed run keeps its permit for what the worker left.
    pub(crate) fn with_permit(mut self, mut held: Permit) -> Self {
        if let Self::Completed { result, heap, permit, .. } = &mut self {
            held.worker_ended(result.len() as u64 + heap.as_ref().map_or(0, HeapImage::length));
            *permit = held.holding(permit.take_answer());
        }
        self
    }
}

/// A run that was accepted.
pub struct Execution {
    events: mpsc::Receiver<Event>,
    /// Those that were waited for and not taken yet.
    awaited: VecDeque<Event>,
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
        match self.awaited.pop_front() {
            Some(event) => Some(event),
            None => self.events.recv().await,
        }
    }

    /// Waits for the end, at most so long. Returns all events if the run has ended by then, and had few. They can still be taken.
    pub async fn ended_within(&mut self, wait: Duration) -> Option<&VecDeque<Event>> {
        let deadline = Instant::now() + wait;
        while self.awaited.len() < EVENTS_MAX {
            self.awaited.push_back(tokio::time::timeout_at(deadline, self.events.recv()).await.ok()??);
            if let Some(Event::Ended(_)) = self.awaited.back() {
                return Some(&self.awaited);
            }
        }
        None
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
                Some(Event::Started { .. } | Event::OutputDropped | Event::Recorded(..)) => {}
                Some(Event::Ended(outcome)) => return (output, outcome),
                None => return (output, Outcome::Failed(Failure::NoWorker("the engine is shut down".into()))),
            }
        }
    }
}

/// Where jobs get their workers.
#[derive(Clone)]
pub(crate) struct Workers {
    pub zygotes: Zygotes,
    pub cpu: CpuShares,
    pub answers: Answers,
}

#[derive(Clone)]
pub struct Engine {
    workers: Workers,
    scheduler: Scheduler,
    info: EngineInfo,
    layers: Arc<[OptionalLayer]>,
    stateful_jit: StatefulJit,
    live: Result<(), String>,
    generation: String,
    /// Locked during [`Engine::run_unqueued`].
    unqueued: Arc<Mutex<()>>,
}

impl Engine {
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let base_heap = config.artifacts.base_heap.clone();
        let scheduler = Scheduler::new(Bounds {
            slots: config.concurrent_max,
            memory_mb: config.memory_mb_max,
            queued: config.queued_max,
            source_bytes: config.source_bytes_max,
            sharing: config.sharing,
            usual_heap_mb: config.spares.heap_mb,
            worker_mb: worker_mb_max,
        });
        let answers = Answers::new(config.answer_bytes_max, config.sharing);
        let (zygotes, Started { info, layers, stateful_jit, live }) = Zygotes::start(config).await?;
        for OptionalLayer { name, outcome } in &layers {
            if let Err(why) = outcome {
                tracing::warn!(layer = name, why, "a layer of confinement is missing; the others are in effect");
            }
        }
        if let StatefulJit::Unavailable { why } = &stateful_jit {
            tracing::warn!(why, "stateful code is interpreted");
        }
        if let Err(why) = &live {
            tracing::warn!(why, "sessions can't be live: every turn restores a heap");
        }
        // The zygote has loaded this file. If it can't be read now, the generation differs, which is safe.
        let base = std::fs::read(base_heap).map(|heap| hex::encode(Sha256::digest(heap))).unwrap_or_default();
        let generation = format!("{}/base-{base}", info.id);
        let workers = Workers { zygotes, cpu: CpuShares::default(), answers };
        Ok(Self { workers, scheduler, info, layers: layers.into(), stateful_jit, live, generation, unqueued: Arc::default() })
    }

    pub fn info(&self) -> &EngineInfo {
        &self.info
    }

    /// The layers of confinement that not every kernel has. All others are in effect.
    pub fn layers(&self) -> &[OptionalLayer] {
        &self.layers
    }

    /// Whether V8 optimises stateful code.
    pub fn stateful_jit(&self) -> &StatefulJit {
        &self.stateful_jit
    }

    /// Whether workers can be live, or why not.
    pub fn live(&self) -> &Result<(), String> {
        &self.live
    }

    /// A live worker that starts from this heap, or from the base heap. Its memory is not counted here.
    pub async fn open_live(&self, holder: &BudgetHolder, heap: Option<&HeapImage>, heap_mb: u32) -> Result<LiveWorker, Failure> {
        let zygote = self.workers.zygotes.lease(holder).await.map_err(Failure::NoWorker)?;
        let clones = Arc::new(CloneCount::default());
        let worker = zygote.zygote().fork_live(heap_mb, clones.clone()).await.map_err(Failure::NoWorker)?;
        LiveWorker::open(zygote, worker, clones, heap, heap_mb).await
    }

    /// Of all owners.
    pub fn load(&self) -> Load {
        self.scheduler.load()
    }

    pub fn load_of(&self, holder: &BudgetHolder) -> Load {
        self.scheduler.load_of(holder)
    }

    /// Counts the source of a run as long as it exists, or refuses it.
    pub fn source(&self, holder: &BudgetHolder, text: String) -> Result<SourceText, Refused> {
        let charge = self.scheduler.charge_source(holder, text.len())?;
        Ok(SourceText::counted(text, charge))
    }

    /// Queues a job, or refuses it. Dropping the execution cancels it.
    pub fn submit(&self, job: Job) -> Result<Execution, Refused> {
        Ok(self.reserve(&job.holder, job.limits.heap_mb)?.submit(job))
    }

    /// Runs a job without waiting for a slot, for health checks: a busy engine is healthy. One job at a time.
    pub async fn run_unqueued(&self, job: Job) -> (Vec<u8>, Outcome) {
        let _one_at_a_time = self.unqueued.lock().await;
        let workers = Workers { zygotes: self.workers.zygotes.shared_only(), ..self.workers.clone() };
        Place { permit: ready(Permit::uncounted()), workers }.submit(job).finish().await
    }

    /// Reserves a place for a job that has to wait for something else first. It counts towards the bound of the queue, and blocks no other job.
    pub fn hold(&self, holder: &BudgetHolder, heap_mb: u32) -> Result<ReservedPlace, Refused> {
        Ok(ReservedPlace { held: self.scheduler.hold(holder, heap_mb)?, workers: self.workers.clone() })
    }

    /// Identifies what a fresh heap depends on: this engine and its base heap.
    pub fn generation(&self) -> &str {
        &self.generation
    }

    /// Reserves a place in the queue for a job that is still being prepared, or refuses it.
    pub fn reserve(&self, holder: &BudgetHolder, heap_mb: u32) -> Result<Place, Refused> {
        Ok(Place { permit: self.scheduler.enter(holder, heap_mb)?, workers: self.workers.clone() })
    }
}

/// The place of a job that is not in the queue yet. Dropping it releases it.
pub struct ReservedPlace {
    held: scheduler::ReservedPlace,
    workers: Workers,
}

impl ReservedPlace {
    pub fn place(self) -> Place {
        Place { permit: self.held.enter(), workers: self.workers }
    }
}

/// A place in the queue, later a slot. Dropping it releases it.
pub struct Place {
    permit: oneshot::Receiver<Permit>,
    workers: Workers,
}

impl Place {
    /// Waits for the slot, for a job whose preparation takes memory: what waits in the queue should take none.
    pub async fn with_slot(self) -> Slot {
        let permit = match self.permit.await {
            Ok(granted) => ready(granted),
            Err(_) => oneshot::channel().1,
        };
        Slot(Self { permit, workers: self.workers })
    }

    /// Its slot, if it need not wait for it.
    pub fn slot_now(mut self) -> Result<Slot, Self> {
        match self.permit.try_recv() {
            Ok(permit) => Ok(Slot(Self { permit: ready(permit), workers: self.workers })),
            Err(_) => Err(self),
        }
    }

    /// Runs the job that the place was reserved for. Dropping the execution cancels it.
    pub fn submit(self, job: Job) -> Execution {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let (cancel, cancels) = mpsc::channel(1);
        tokio::spawn(job_driver::drive(self.workers, job, self.permit, sender, cancels));
        Execution { events, awaited: VecDeque::new(), canceller: Canceller(cancel) }
    }
}

/// A place that has its slot. Dropping it releases it.
pub struct Slot(Place);

impl Slot {
    pub fn submit(self, job: Job) -> Execution {
        self.0.submit(job)
    }

    /// Runs a job that has to end before the one that the slot is for. Its worker must not need more memory than the slot was reserved with.
    pub fn submit_before(&self, job: Job) -> Execution {
        Place { permit: ready(Permit::uncounted()), workers: self.0.workers.clone() }.submit(job)
    }
}

/// A permit that need not be waited for.
fn ready(permit: Permit) -> oneshot::Receiver<Permit> {
    let (start, granted) = oneshot::channel();
    // Can't fail, because this function holds the receiver.
    let _ = start.send(permit);
    granted
}
