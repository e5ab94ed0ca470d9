//! Shared helpers for the tests of confinement, misbehaviour and death: a private engine, runs and their outcomes, and `/proc`.
#![allow(dead_code, reason = "each test file needs its own part of this")]

pub mod environments;
pub mod processes;

use heapstead_engine::{Artifacts, Config, Engine, Event, Execution, Job, Kind, Outcome, SourceText, Spares};
use heapstead_types::{BudgetHolder, Failure, Limits};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Timeout that only a hang reaches, even on a busy machine.
pub const HANG: Duration = Duration::from_secs(120);

const PROBES: &str = "libheapstead_probes.so";

/// The engine's files as shipped.
pub fn production() -> Artifacts {
    let mut parts = Artifacts::find().unwrap_or_else(|error| panic!("{error}"));
    parts.base_heap = unique_spelling(parts.base_heap);
    parts
}

/// The same files with the probes instead of the worker.
pub fn probes() -> Artifacts {
    let mut parts = production();
    parts.worker.set_file_name(PROBES);
    assert!(parts.worker.exists(), "{} is missing: run `make build`", parts.worker.display());
    parts
}

/// Returns a unique spelling of a path, so that a zygote can be identified by its command line.
fn unique_spelling(path: PathBuf) -> PathBuf {
    static SPELLINGS: AtomicUsize = AtomicUsize::new(0);
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return path };
    let mut spelled = folder.as_os_str().to_owned();
    spelled.push("/.".repeat(SPELLINGS.fetch_add(1, Ordering::Relaxed)));
    PathBuf::from(spelled).join(name)
}

/// No pre-forked workers, so that every worker belongs to a run.
pub fn config(parts: Artifacts) -> Config {
    let config = Config::new(parts);
    Config { spares: Spares { count: 0, ..config.spares }, ..config }
}

pub async fn start(parts: Artifacts) -> Engine {
    start_with(config(parts)).await
}

pub async fn start_with(config: Config) -> Engine {
    Engine::start(config).await.unwrap_or_else(|error| panic!("{error}"))
}

/// A small run: the minimum heap, two seconds.
pub fn job(code: impl Into<String>, kind: Kind) -> Job {
    let limits = Limits { heap_mb: 8, timeout_secs: 2, output_bytes_max: 2 << 20 };
    Job { code: SourceText::from(code.into()), kind, limits, headers: vec![], replay: None, holder: BudgetHolder::default() }
}

pub fn submit(engine: &Engine, job: Job) -> Execution {
    engine.submit(job).unwrap_or_else(|refused| panic!("{refused}"))
}

/// Waits until the code of a run has started, which it signals by printing.
pub async fn begun(execution: &mut Execution) {
    let started = execution.next_event().await;
    assert!(matches!(started, Some(Event::Started { .. })), "{started:?}");
    let event = execution.next_event().await;
    assert!(matches!(event, Some(Event::Output(_))), "{event:?}");
}

/// Returns the events and the outcome of a run. Panics if it does not end exactly once.
pub async fn end_of(mut execution: Execution) -> (Vec<Event>, Outcome) {
    let follow = async {
        let mut events = Vec::new();
        while let Some(event) = execution.next_event().await {
            events.push(event);
        }
        events
    };
    let mut events = tokio::time::timeout(HANG, follow).await.expect("an end");
    let Some(Event::Ended(outcome)) = events.pop() else { panic!("the last event is not `Ended`") };
    assert!(!events.iter().any(|event| matches!(event, Event::Ended(_))), "more than one end");
    (events, outcome)
}

/// Runs a job to its end.
pub async fn run(engine: &Engine, job: Job) -> Outcome {
    end_of(submit(engine, job)).await.1
}

/// A short form of an outcome for tables.
pub fn brief(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Completed { result, .. } => result.clone(),
        Outcome::Failed(Failure::WorkerCrashed { signal: Some(libc::SIGSYS), .. }) => "SIGSYS".into(),
        Outcome::Failed(failure) => failure.to_string(),
        Outcome::TimedOut { .. } => "timed out".into(),
        Outcome::Cancelled => "cancelled".into(),
    }
}
