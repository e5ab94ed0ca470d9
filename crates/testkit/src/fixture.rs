//! An engine for tests, with a heap whose content is known: the canary.

use crate::{MemoryWatch, Process};
use heapstead_engine::{
    Artifacts, ArtifactsError, Config, Engine, Event, HeapImage, Job, Kind, LiveTurn, LiveWorker, Outcome, Refused, Spares, StartError,
};
use heapstead_types::limits::HEAP_MB_DEFAULT;
use heapstead_types::{BudgetHolder, Failure, Limits, Status};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The code that creates the heap of the canary and of every session.
pub const SETUP: &str = "let canary = 41; let log = ['start'];";
/// Pre-forked workers with the default cap. Runs with another cap get a new fork.
pub const SPARES: Spares = Spares { count: 2, heap_mb: HEAP_MB_DEFAULT };
/// Concurrent runs: enough to keep all cores busy, too few to starve other processes.
const AT_ONCE_MAX: usize = 4;
/// How long after its time limit the fixture waits for a run to end.
const OVERDUE_MAX: Duration = Duration::from_secs(20);

#[derive(Debug, thiserror::Error)]
pub enum FixtureError {
    #[error(transparent)]
    Artifacts(#[from] ArtifactsError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the setup code of the canary ended as {0:?}")]
    Setup(Status),
    #[error("the engine refused the job: {0}")]
    Refused(#[from] Refused),
    #[error("a run had not ended {} s after its limit", OVERDUE_MAX.as_secs())]
    Endless,
    #[error("the live worker: {0}")]
    Live(Failure),
    #[error("expected one zygote among the children of this process, found {0}")]
    Zygotes(usize),
}

/// A run for the fixture to execute.
#[derive(Debug, Clone)]
pub struct Run {
    pub code: String,
    pub kind: Kind,
    pub limits: Limits,
    pub headers: Vec<(String, String)>,
}

impl Run {
    pub fn new(code: impl Into<String>, kind: Kind, limits: Limits) -> Self {
        Self { code: code.into(), kind, limits, headers: Vec::new() }
    }
}

/// Everything that was observed of one run.
#[derive(Debug)]
pub struct ObservedRun {
    pub status: Status,
    pub result: Option<String>,
    pub failure: Option<Failure>,
    pub heap: Option<HeapImage>,
    /// Of a completed turn of a live session, to be committed.
    pub turn: Option<LiveTurn>,
    pub output: Vec<u8>,
    /// Number of `OutputDropped` events.
    pub drops: usize,
    pub wall: Duration,
    /// Peak memory of its worker.
    pub peak_bytes: u64,
}

pub struct Fixture {
    engine: Engine,
    known: HeapImage,
}

impl Fixture {
    pub async fn start() -> Result<Self, FixtureError> {
        let engine = Engine::start(Config { spares: SPARES, ..Config::new(Artifacts::find()?) }).await?;
        let seen = follow(&engine, Run::new(SETUP, Kind::Stateful(None), Limits::default())).await?;
        let known = seen.heap.ok_or(FixtureError::Setup(seen.status))?;
        Ok(Self { engine, known })
    }

    /// The heap that [`SETUP`] created.
    pub fn known_heap(&self) -> HeapImage {
        self.known.clone()
    }

    /// A live worker with this cap, on the base heap.
    pub async fn open_live(&self, heap_mb: u32) -> Result<LiveWorker, FixtureError> {
        self.engine.open_live(&BudgetHolder::default(), None, heap_mb).await.map_err(FixtureError::Live)
    }

    pub fn zygote(&self) -> Result<Process, FixtureError> {
        let children = Process::of(std::process::id()).map(|this| this.children()).unwrap_or_default();
        let zygotes: Vec<Process> = children.into_iter().filter(|child| child.command_line().iter().any(|word| word == "zygote")).collect();
        match zygotes[..] {
            [zygote] => Ok(zygote),
            _ => Err(FixtureError::Zygotes(zygotes.len())),
        }
    }

    /// Executes one run and watches the memory of its worker. No other run may be in progress.
    pub async fn run(&self, run: Run) -> Result<ObservedRun, FixtureError> {
        let watch = MemoryWatch::start(self.zygote()?);
        let mut seen = follow(&self.engine, run).await?;
        seen.peak_bytes = watch.finish();
        Ok(seen)
    }

    /// Executes the same run many times, a few concurrently.
    pub async fn run_many(&self, run: &Run, count: usize) -> Result<Vec<ObservedRun>, FixtureError> {
        let mut all = Vec::with_capacity(count);
        while all.len() < count {
            let mut batch = JoinSet::new();
            for _ in 0..AT_ONCE_MAX.min(count - all.len()) {
                let (engine, run) = (self.engine.clone(), run.clone());
                batch.spawn(async move { follow(&engine, run).await });
            }
            for seen in batch.join_all().await {
                all.push(seen?);
            }
        }
        Ok(all)
    }
}

async fn follow(engine: &Engine, run: Run) -> Result<ObservedRun, FixtureError> {
    let Run { code, kind, limits, headers } = run;
    let limit = Duration::from_secs(limits.timeout_secs.into());
    let begun = Instant::now();
    let mut execution = engine.submit(Job { code: code.into(), kind, limits, headers, replay: None, holder: BudgetHolder::default() })?;
    let (mut output, mut drops) = (Vec::new(), 0);
    let ended = async {
        loop {
            match execution.next_event().await {
                Some(Event::Started { .. } | Event::Recorded(..)) => {}
                Some(Event::Output(text)) => output.extend_from_slice(&text),
                Some(Event::OutputDropped) => drops += 1,
                Some(Event::Ended(outcome)) => return Ok(outcome),
                None => return Err(FixtureError::Endless),
            }
        }
    };
    let outcome = tokio::time::timeout(limit + OVERDUE_MAX, ended).await.map_err(|_| FixtureError::Endless)??;
    let wall = begun.elapsed();
    let (status, result, failure, heap, turn) = match outcome {
        Outcome::Completed { result, heap, turn, .. } => (Status::Completed, Some(result), None, heap, turn),
        Outcome::Failed(failure) => (Status::Failed, None, Some(failure), None, None),
        Outcome::TimedOut { .. } => (Status::TimedOut, None, None, None, None),
        Outcome::Cancelled => (Status::Cancelled, None, None, None, None),
    };
    Ok(ObservedRun { status, result, failure, heap, turn, output, drops, wall, peak_bytes: 0 })
}
