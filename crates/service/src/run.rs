//! One run that its caller follows from beginning to end, on a terminal say: nothing is recorded but the heap it leaves.

use crate::end::{Begun, End, Finished};
use crate::heap_access::HeapAccess;
use crate::origin::{self, Origin};
use crate::output_text::OutputText;
use heapstead_engine::{Canceller, Engine, Event, Execution, Job, Kind, Lane, Outcome};
use heapstead_types::{Failure, Limits};
use jiff::Timestamp;

pub struct Request {
    pub code: String,
    pub mode: Mode,
    pub limits: Limits,
}

pub enum Mode {
    /// From nothing to nothing.
    Stateless,
    /// From a heap, or a fresh one, to a new heap.
    Stateful { heaps: HeapAccess, origin: Origin },
}

/// A run that was accepted. Dropping it cancels it.
pub struct Run {
    begun: Begun,
    state: State,
    output: OutputText,
    heaps: Option<HeapAccess>,
}

enum State {
    Following(Execution),
    Ended(Outcome),
}

impl Run {
    /// Restores the heap that is asked for, and starts. A heap that can't be used makes a run that has failed already.
    pub async fn begin(engine: &Engine, request: Request) -> Self {
        let mut begun = Begun::now();
        let output = OutputText::new(&request.limits);
        let state = match start(engine, &request, &mut begun.warnings).await {
            Ok(execution) => State::Following(execution),
            Err(failure) => State::Ended(Outcome::Failed(failure)),
        };
        let heaps = match request.mode {
            Mode::Stateless => None,
            Mode::Stateful { heaps, .. } => Some(heaps),
        };
        Self { begun, state, output, heaps }
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
        let outcome = loop {
            match execution.next_event().await {
                Some(Event::Started) => self.begun.started_at = Timestamp::now(),
                Some(Event::Output(text)) => return Some(self.output.written(text)),
                Some(Event::OutputDropped) => return Some(self.output.dropped()),
                Some(Event::Ended(outcome)) => break outcome,
                None => break Outcome::Failed(Failure::NoWorker("the engine is shut down".into())),
            }
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
            Outcome::Completed { result, heap: Some(heap), .. } if let Some(heaps) = &self.heaps => match heaps.keep(heap).await {
                Ok(heap) => End::Completed { result, heap: Some(heap) },
                Err(failure) => End::Failed(failure),
            },
            other => other.into(),
        };
        self.begun.ended(end)
    }
}

async fn start(engine: &Engine, request: &Request, warnings: &mut Vec<String>) -> Result<Execution, Failure> {
    let kind = match &request.mode {
        Mode::Stateless => Kind::Stateless,
        Mode::Stateful { heaps, origin } => Kind::Stateful(origin::restore(heaps, *origin, warnings).await?),
    };
    let job = Job { code: request.code.clone(), kind, limits: request.limits, headers: Vec::new(), lane: Lane::default() };
    engine.submit(job).map_err(|refused| Failure::NoWorker(refused.to_string()))
}
