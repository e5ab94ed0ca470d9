//! Stateless mode: code in, output out, nothing stored.

use super::limits_or;
use super::outcome::ExecutionOutcome;
use super::output_text::OutputText;
use crate::budget::{Budget, Exhausted};
use crate::monitoring::{Meter, check_may_watch};
use crate::{Caller, Health, Metrics, RunParameters, ServiceError};
use heapstead_engine::{Engine, Event, Job, Kind};
use heapstead_types::{ErrorCode, LimitMaxima, Limits, Principal, Status, limits};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest a caller waits, queueing included.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Total size of the outputs of runs that have not been answered yet.
pub const OUTPUTS_BYTES_MAX: u64 = 256 << 20;
/// The error after that, in the words that clients of this mode expect.
const LATE: &str = "Execution did not complete within polling timeout";

#[derive(Clone)]
pub struct Stateless {
    engine: Engine,
    limits: Limits,
    maxima: LimitMaxima,
    meter: Arc<Meter>,
    wait_max: Duration,
    outputs: Arc<Budget>,
}

/// Everything the code wrote, and why it did not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StatelessAnswer {
    pub output: String,
    /// Why it failed, timed out or was cancelled. Absent if it completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Stable code of the error. Absent if it completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub error_code: Option<ErrorCode>,
    /// True when `output` is only the beginning, because a message can't hold all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// Bytes of the whole output, when it is truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// How to get the rest, when it is truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
}

impl StatelessAnswer {
    pub fn new(output: String, error: Option<(ErrorCode, String)>) -> Self {
        let (error_code, error) = error.unzip();
        Self { output, error, error_code, truncated: None, output_bytes: None, rest: None }
    }
}

impl Stateless {
    pub fn new(engine: Engine, limits: Limits, maxima: LimitMaxima) -> Self {
        Self { engine, limits, maxima, meter: Arc::default(), wait_max: WAIT_MAX, outputs: Budget::new(OUTPUTS_BYTES_MAX) }
    }

    pub fn maxima(&self) -> LimitMaxima {
        self.maxima
    }

    /// Runs code to its end. Of the parameters, those about heaps and sessions have no effect. Dropping this future stops the run.
    pub async fn run(&self, caller: &Caller, parameters: RunParameters) -> Result<StatelessAnswer, ServiceError> {
        limits::code(&parameters.code)?;
        let limits = limits_or(self.limits, self.maxima, parameters.heap_memory_max_mb, parameters.execution_timeout_secs)?;
        let holder = caller.budget_holder();
        let code = self.engine.source(&holder, parameters.code)?;
        let job = Job { code, kind: Kind::Stateless, limits, headers: caller.headers.clone(), replay: None, holder };
        let mut execution = self.engine.submit(job)?;
        let (accepted, mut began) = (Instant::now(), None);
        let mut text = OutputText::new(&limits);
        let mut memory = self.outputs.portion(caller.budget_holder());
        let mut output = Vec::new();
        let end = tokio::time::timeout(self.wait_max, async {
            loop {
                match execution.next_event().await {
                    Some(Event::Started { .. }) => {
                        self.meter.queue.record(accepted.elapsed());
                        began = Some(Instant::now());
                    }
                    Some(Event::Output(bytes)) => {
                        // Dropping the execution stops it.
                        memory.resize((output.len() + bytes.len()) as u64).map_err(no_memory)?;
                        output.extend(text.written(bytes));
                    }
                    Some(Event::OutputDropped) => output.extend(text.dropped()),
                    // Only stateful runs are recorded.
                    Some(Event::Recorded(..)) => {}
                    Some(Event::Ended(outcome)) => {
                        let end = ExecutionOutcome::from(outcome);
                        self.meter.ended(end.status());
                        if let Some(began) = began {
                            self.meter.run.record(began.elapsed());
                        }
                        return Ok::<_, ServiceError>(end.error_code().zip(end.error()));
                    }
                    None => return Ok(Some((ErrorCode::WorkerUnavailable, "the engine is shut down".to_owned()))),
                }
            }
        })
        .await;
        if !matches!(end, Ok(Ok(_))) {
            self.meter.ended(Status::Cancelled);
        }
        let error = end.unwrap_or_else(|_| Ok(Some((ErrorCode::TimedOut, LATE.to_owned()))))?;
        // Its text is valid, so this copies nothing.
        let output = String::from_utf8(output).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok(StatelessAnswer::new(output, error))
    }

    /// Whether code can be run.
    pub async fn is_ready(&self) -> bool {
        Health::engine_works(&self.engine, &self.meter).await
    }

    pub async fn health(&self, caller: &Caller) -> Health {
        Health::stateless(&self.engine, &self.meter, caller).await
    }

    pub fn metrics(&self, principal: &Principal) -> Result<Metrics, ServiceError> {
        check_may_watch(principal)?;
        Ok(self.meter.view(self.engine.load()))
    }
}

fn no_memory(exhausted: Exhausted) -> ServiceError {
    let text = match exhausted {
        Exhausted::ByHolder => {
            "the output of your runs takes as much memory as is left for other owners: run fewer at a time, or print less"
        }
        Exhausted::ByAll => "the memory for output is used up: try again later, or print less",
    };
    ServiceError::busy(ErrorCode::Busy, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapstead_engine::{Artifacts, Config};

    /// An engine without slots: every run waits.
    #[tokio::test]
    async fn a_caller_gets_an_error_after_the_longest_wait() {
        let artifacts = Artifacts::find().expect("the engine's parts");
        let engine = Engine::start(Config { concurrent_max: 0, ..Config::new(artifacts) }).await.expect("an engine");
        let wait_max = Duration::from_millis(200);
        let stateless = Stateless { wait_max, ..Stateless::new(engine.clone(), Limits::default(), LimitMaxima::default()) };
        let began = Instant::now();
        let parameters = RunParameters { code: "1".into(), ..RunParameters::default() };
        let answer = stateless.run(&Caller::default(), parameters).await.expect("accepted");
        let error = Some((ErrorCode::TimedOut, LATE.to_owned()));
        assert_eq!(answer, StatelessAnswer::new(String::new(), error));
        assert!(began.elapsed() >= wait_max, "{:?}", began.elapsed());
        assert_eq!(WAIT_MAX, Duration::from_secs(300));
    }

    #[tokio::test]
    async fn a_run_whose_output_has_no_room_is_refused() {
        let artifacts = Artifacts::find().expect("the engine's parts");
        let engine = Engine::start(Config::new(artifacts)).await.expect("an engine");
        let outputs = Budget::new(100 << 10);
        let stateless = Stateless { outputs: outputs.clone(), ..Stateless::new(engine, Limits::default(), LimitMaxima::default()) };
        let run = |bytes: usize| {
            let parameters = RunParameters { code: format!("console.log('x'.repeat({bytes}))"), ..RunParameters::default() };
            let stateless = stateless.clone();
            async move { stateless.run(&Caller::default(), parameters).await }
        };
        assert_eq!(run(10_000).await.expect("answered").output.len(), 10_001);
        let refused = run(1 << 20).await.expect_err("refused");
        assert_eq!((refused.code(), outputs.taken_by(&Caller::default().budget_holder())), (ErrorCode::Busy, 0), "{refused}");
    }
}
