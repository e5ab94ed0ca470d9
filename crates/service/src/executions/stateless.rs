//! Stateless mode: code in, output out, nothing stored.

use super::limits_or;
use super::outcome::ExecutionOutcome;
use super::output_text::OutputText;
use crate::monitoring::{Meter, check_may_watch};
use crate::{Caller, Health, Metrics, RunParameters, ServiceError};
use heapstead_engine::{Engine, Event, Job, Kind};
use heapstead_types::{ErrorCode, Limits, Principal, Status, limits};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest a caller waits, queueing included.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// The error after that, in the words that clients of this mode expect.
const LATE: &str = "Execution did not complete within polling timeout";

#[derive(Clone)]
pub struct Stateless {
    engine: Engine,
    limits: Limits,
    meter: Arc<Meter>,
    wait_max: Duration,
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
    pub fn new(engine: Engine, limits: Limits) -> Self {
        Self { engine, limits, meter: Arc::default(), wait_max: WAIT_MAX }
    }

    /// Runs code to its end. Of the parameters, those about heaps and sessions have no effect. Dropping this future stops the run.
    pub async fn run(&self, caller: &Caller, parameters: RunParameters) -> Result<StatelessAnswer, ServiceError> {
        limits::code(&parameters.code)?;
        let limits = limits_or(self.limits, parameters.heap_memory_max_mb, parameters.execution_timeout_secs)?;
        let job = Job { code: parameters.code, kind: Kind::Stateless, limits, headers: caller.headers.clone(), lane: caller.lane };
        let mut execution = self.engine.submit(job)?;
        let (accepted, mut began) = (Instant::now(), None);
        let mut text = OutputText::new(&limits);
        let mut output = Vec::new();
        let end = tokio::time::timeout(self.wait_max, async {
            loop {
                match execution.next_event().await {
                    Some(Event::Started) => {
                        self.meter.queue.record(accepted.elapsed());
                        began = Some(Instant::now());
                    }
                    Some(Event::Output(bytes)) => output.extend(text.written(bytes)),
                    Some(Event::OutputDropped) => output.extend(text.dropped()),
                    Some(Event::Ended(outcome)) => {
                        let end = ExecutionOutcome::from(outcome);
                        self.meter.ended(end.status());
                        if let Some(began) = began {
                            self.meter.run.record(began.elapsed());
                        }
                        return end.error_code().zip(end.error());
                    }
                    None => return Some((ErrorCode::WorkerUnavailable, "the engine is shut down".to_owned())),
                }
            }
        })
        .await;
        if end.is_err() {
            self.meter.ended(Status::Cancelled);
        }
        let error = end.unwrap_or_else(|_| Some((ErrorCode::TimedOut, LATE.to_owned())));
        Ok(StatelessAnswer::new(String::from_utf8_lossy(&output).into_owned(), error))
    }

    pub async fn health(&self) -> Health {
        Health::stateless(&self.engine).await
    }

    pub fn metrics(&self, principal: &Principal) -> Result<Metrics, ServiceError> {
        check_may_watch(principal)?;
        Ok(self.meter.view(self.engine.load()))
    }
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
        let stateless = Stateless { wait_max, ..Stateless::new(engine.clone(), Limits::default()) };
        let began = Instant::now();
        let parameters = RunParameters { code: "1".into(), ..RunParameters::default() };
        let answer = stateless.run(&Caller::default(), parameters).await.expect("accepted");
        let error = Some((ErrorCode::TimedOut, LATE.to_owned()));
        assert_eq!(answer, StatelessAnswer::new(String::new(), error));
        assert!(began.elapsed() >= wait_max, "{:?}", began.elapsed());
        assert_eq!(WAIT_MAX, Duration::from_secs(300));
    }
}
