//! One run: finds its heap, follows it, keeps what it left. `completed` only when that is stored.

use super::end::{Begun, End, Finished};
use super::output::Output;
use heapstead_engine::{Canceller, Engine, Event, Execution, HeapImage, Job, Kind, Lane, Outcome};
use heapstead_store::{HeapStore, HeapStoreError};
use heapstead_types::{EngineId, Failure, HeapKey, Limits};
use std::sync::Arc;

pub struct Request {
    pub code: String,
    pub mode: Mode,
    pub limits: Limits,
}

pub enum Mode {
    /// From nothing to nothing.
    Stateless,
    /// From a heap, or a fresh one, to a new heap.
    Stateful { heaps: Arc<dyn HeapStore>, origin: Origin },
}

/// Where a run goes on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Fresh,
    Heap { key: HeapKey, on_missing: OnMissingHeap },
}

/// What becomes of a run whose heap is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissingHeap {
    /// It begins with a fresh heap, and a warning says so.
    Fresh,
    /// It fails, and nothing runs.
    Fail,
}

/// A run that was accepted. Dropping it cancels it.
pub struct Run {
    begun: Begun,
    state: State,
    output: Output,
    engine: EngineId,
    heaps: Option<Arc<dyn HeapStore>>,
}

enum State {
    Following(Execution),
    Ended(Outcome),
}

impl Run {
    /// Restores the heap that is asked for, and starts. A heap that can't be used makes a run that has failed already.
    pub async fn begin(engine: &Engine, request: Request) -> Self {
        let mut begun = Begun::now();
        let output = Output::new(&request.limits);
        let state = match start(engine, &request, &mut begun.warnings).await {
            Ok(execution) => State::Following(execution),
            Err(failure) => State::Ended(Outcome::Failed(failure)),
        };
        let heaps = match request.mode {
            Mode::Stateless => None,
            Mode::Stateful { heaps, .. } => Some(heaps),
        };
        Self { begun, state, output, engine: engine.info().id.clone(), heaps }
    }

    /// What stops it from elsewhere; none when it has ended already.
    pub fn canceller(&self) -> Option<Canceller> {
        match &self.state {
            State::Following(execution) => Some(execution.canceller()),
            State::Ended(_) => None,
        }
    }

    /// The next piece of console output, as soon as it is written; none when the code has ended.
    pub async fn next_output(&mut self) -> Option<Vec<u8>> {
        let State::Following(execution) = &mut self.state else { return None };
        let outcome = match execution.next_event().await {
            Some(Event::Output(text)) => return Some(self.output.written(text)),
            Some(Event::OutputDropped) => return Some(self.output.dropped()),
            Some(Event::Ended(outcome)) => outcome,
            None => Outcome::Failed(Failure::NoWorker("the engine is shut down".into())),
        };
        self.state = State::Ended(outcome);
        None
    }

    /// Waits for the end, and stores the heap.
    pub async fn finish(mut self) -> Finished {
        let outcome = loop {
            match self.state {
                State::Ended(outcome) => break outcome,
                State::Following(_) => drop(self.next_output().await),
            }
        };
        let end = match outcome {
            Outcome::Completed { result, heap, .. } => match keep(heap, self.heaps, self.engine).await {
                Ok(heap) => End::Completed { result, heap },
                Err(failure) => End::Failed(failure),
            },
            Outcome::Failed(failure) => End::Failed(failure),
            Outcome::TimedOut { timeout_secs } => End::TimedOut { timeout_secs },
            Outcome::Cancelled => End::Cancelled,
        };
        self.begun.ended(end)
    }
}

async fn start(engine: &Engine, request: &Request, warnings: &mut Vec<String>) -> Result<Execution, Failure> {
    let kind = match &request.mode {
        Mode::Stateless => Kind::Stateless,
        Mode::Stateful { origin: Origin::Fresh, .. } => Kind::Stateful(None),
        Mode::Stateful { heaps, origin: Origin::Heap { key, on_missing } } => {
            match (restore(engine, heaps.clone(), *key).await, on_missing) {
                (Ok(heap), _) => Kind::Stateful(Some(heap)),
                (Err(missing @ Failure::HeapNotFound { .. }), OnMissingHeap::Fresh) => {
                    warnings.push(format!("{missing}: the run began with a fresh heap"));
                    Kind::Stateful(None)
                }
                (Err(failure), _) => return Err(failure),
            }
        }
    };
    let job = Job { code: request.code.clone(), kind, limits: request.limits, headers: Vec::new(), lane: Lane::default() };
    engine.submit(job).map_err(|refused| Failure::NoWorker(refused.to_string()))
}

/// The heap, verified by the store, and written by an engine that this one can follow. One whose engine is not known is tried.
async fn restore(engine: &Engine, heaps: Arc<dyn HeapStore>, key: HeapKey) -> Result<HeapImage, Failure> {
    let info = engine.info().clone();
    blocking(move || {
        let heap = heaps.get(&key).map_err(store_failure)?;
        if let Some(writer) = heap.engine() {
            info.check(writer).map_err(|mismatch| Failure::HeapOfAnotherEngine { key, mismatch })?;
        }
        HeapImage::from_payload(heap.payload()).map_err(|error| Failure::NoWorker(format!("memory for the heap: {error}")))
    })
    .await
}

async fn keep(heap: Option<HeapImage>, heaps: Option<Arc<dyn HeapStore>>, engine: EngineId) -> Result<Option<HeapKey>, Failure> {
    let (Some(heap), Some(heaps)) = (heap, heaps) else { return Ok(None) };
    blocking(move || {
        let payload = heap.payload().map_err(|error| Failure::Store(format!("the new heap can't be read back: {error}")))?;
        heaps.put(&payload, &engine).map(Some).map_err(store_failure)
    })
    .await
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Failure::Store(error.to_string())))
}

fn store_failure(error: HeapStoreError) -> Failure {
    match error {
        HeapStoreError::NotFound { key } => Failure::HeapNotFound { key },
        HeapStoreError::Damaged { key, defect } => Failure::HeapDamaged { key, why: defect.to_string() },
        other => Failure::Store(other.to_string()),
    }
}
