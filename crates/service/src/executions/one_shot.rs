//! One-shot runs: the caller follows the run to its end, as on a terminal. Only the heap is stored, no record.

use super::outcome::{ExecutionOutcome, ExecutionStart, FinishedRun};
use super::output_text::OutputText;
use super::start_point::{self, InputHeap};
use crate::heaps::HeapCache;
use heapstead_engine::{Canceller, Engine, Event, Execution, Job, Kind, Outcome};
use heapstead_types::{BudgetHolder, Failure, Limits};
use jiff::Timestamp;

pub struct OneShotRequest {
    pub code: String,
    pub mode: OneShotMode,
    pub limits: Limits,
}

pub enum OneShotMode {
    /// No heap is restored or stored.
    Stateless,
    /// Starts from a heap or a fresh one, and stores a new heap.
    Stateful { heaps: HeapCache, input: InputHeap },
}

/// A run that was accepted. Dropping it cancels it.
pub struct OneShot {
    start_info: ExecutionStart,
    state: State,
    output: OutputText,
    heaps: Option<HeapCache>,
}

enum State {
    Following(Execution),
    Ended(Outcome),
}

impl OneShot {
    /// Restores the heap and starts. If the heap can't be used, the run has failed already.
    pub async fn begin(engine: &Engine, request: OneShotRequest) -> Self {
        let mut start_info = ExecutionStart::now();
        let output = OutputText::new(&request.limits);
        let state = match start(engine, &request, &mut start_info.warnings).await {
            Ok(execution) => State::Following(execution),
            Err(failure) => State::Ended(Outcome::Failed(failure)),
        };
        let heaps = match request.mode {
            OneShotMode::Stateless => None,
            OneShotMode::Stateful { heaps, .. } => Some(heaps),
        };
        Self { start_info, state, output, heaps }
    }

    /// Stops the run from elsewhere; none if it has ended.
    pub fn canceller(&self) -> Option<Canceller> {
        match &self.state {
            State::Following(execution) => Some(execution.canceller()),
            State::Ended(_) => None,
        }
    }

    /// The next piece of console output; none when the code has ended.
    pub async fn next_output(&mut self) -> Option<Vec<u8>> {
        let State::Following(execution) = &mut self.state else { return None };
        let outcome = loop {
            match execution.next_event().await {
                Some(Event::Started { .. }) => self.start_info.started_at = Timestamp::now(),
                Some(Event::Output(text)) => return Some(self.output.written(text)),
                // A run without a record has no journal.
                Some(Event::Recorded(..)) => {}
                Some(Event::OutputDropped) => return Some(self.output.dropped()),
                Some(Event::Ended(outcome)) => break outcome,
                None => break Outcome::Failed(Failure::NoWorker("the engine is shut down".into())),
            }
        };
        self.state = State::Ended(outcome);
        None
    }

    /// Waits for the end, and stores the heap.
    pub async fn finish(mut self) -> FinishedRun {
        let outcome = loop {
            match self.state {
                State::Ended(outcome) => break outcome,
                State::Following(_) => drop(self.next_output().await),
            }
        };
        let end = match outcome {
            Outcome::Completed { result, heap: Some(heap), .. } if let Some(heaps) = &self.heaps => match heaps.store(heap).await {
                Ok(heap) => ExecutionOutcome::Completed { result, heap: Some(heap) },
                Err(failure) => ExecutionOutcome::Failed(failure),
            },
            other => other.into(),
        };
        self.start_info.ended(end)
    }
}

async fn start(engine: &Engine, request: &OneShotRequest, warnings: &mut Vec<String>) -> Result<Execution, Failure> {
    let kind = match &request.mode {
        OneShotMode::Stateless => Kind::Stateless,
        OneShotMode::Stateful { heaps, input } => Kind::Stateful(start_point::restore(heaps, *input, warnings).await?),
    };
    let job = Job {
        code: request.code.as_str().into(),
        kind,
        limits: request.limits,
        headers: Vec::new(),
        replay: None,
        holder: BudgetHolder::default(),
    };
    engine.submit(job).map_err(|refused| Failure::NoWorker(refused.to_string()))
}
