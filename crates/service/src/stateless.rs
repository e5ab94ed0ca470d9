//! Stateless mode: code in, output out, nothing kept.

use crate::meter::{Meter, may_watch};
use crate::output_text::OutputText;
use crate::{Caller, End, Health, Metrics, ServiceError};
use heapstead_engine::{Engine, Event, Job, Kind};
use heapstead_types::{Limits, Principal, Status, limits};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest a caller waits, queueing included.
const WAIT_MAX: Duration = Duration::from_secs(300);

#[derive(Clone)]
pub struct Stateless {
    engine: Engine,
    limits: Limits,
    meter: Arc<Meter>,
}

/// Everything the code wrote, and what stopped it if something did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StatelessAnswer {
    pub output: String,
    /// Why it failed, timed out or was cancelled. Absent when it completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
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
    pub fn new(output: String, error: Option<String>) -> Self {
        Self { output, error, truncated: None, output_bytes: None, rest: None }
    }
}

impl Stateless {
    pub fn new(engine: Engine, limits: Limits) -> Self {
        Self { engine, limits, meter: Arc::default() }
    }

    /// For runs that say nothing else.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Runs code to its end. Leaving this future stops it.
    pub async fn run(&self, caller: &Caller, code: String, limits: Limits) -> Result<StatelessAnswer, ServiceError> {
        limits::code(&code)?;
        let job = Job { code, kind: Kind::Stateless, limits, headers: caller.headers.clone(), lane: caller.lane };
        let mut execution = self.engine.submit(job)?;
        let (accepted, mut began) = (Instant::now(), None);
        let mut text = OutputText::new(&limits);
        let mut output = Vec::new();
        let end = tokio::time::timeout(WAIT_MAX, async {
            loop {
                match execution.next_event().await {
                    Some(Event::Started) => {
                        self.meter.queue.note(accepted.elapsed());
                        began = Some(Instant::now());
                    }
                    Some(Event::Output(bytes)) => output.extend(text.written(bytes)),
                    Some(Event::OutputDropped) => output.extend(text.dropped()),
                    Some(Event::Ended(outcome)) => {
                        let end = End::from(outcome);
                        self.meter.ended(end.status());
                        if let Some(began) = began {
                            self.meter.run.note(began.elapsed());
                        }
                        return end.error();
                    }
                    None => return Some("the engine is shut down".to_owned()),
                }
            }
        })
        .await;
        if end.is_err() {
            self.meter.ended(Status::Cancelled);
        }
        let error = end.unwrap_or_else(|_| Some("Execution did not complete within polling timeout".to_owned()));
        Ok(StatelessAnswer::new(String::from_utf8_lossy(&output).into_owned(), error))
    }

    pub async fn health(&self) -> Health {
        Health::stateless(&self.engine).await
    }

    pub fn metrics(&self, principal: &Principal) -> Result<Metrics, ServiceError> {
        may_watch(principal)?;
        Ok(self.meter.view(self.engine.load()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapstead_engine::{Artifacts, Config};

    /// An engine without a slot: whatever is asked of it waits.
    #[tokio::test]
    async fn a_caller_waits_for_300_s_and_is_told_then() {
        let artifacts = Artifacts::find().expect("the engine's parts");
        let engine = Engine::start(Config { concurrent_max: 0, ..Config::new(artifacts) }).await.expect("an engine");
        let stateless = Stateless::new(engine.clone(), Limits::default());
        // From here on time passes as soon as nothing else happens.
        tokio::time::pause();
        let began = tokio::time::Instant::now();
        let answer = stateless.run(&Caller::default(), "1".into(), Limits::default()).await.expect("accepted");
        let error = Some("Execution did not complete within polling timeout".to_owned());
        assert_eq!(answer, StatelessAnswer::new(String::new(), error));
        let waited = began.elapsed();
        assert!(waited >= WAIT_MAX && waited < WAIT_MAX + Duration::from_secs(1), "{waited:?}");
    }
}
