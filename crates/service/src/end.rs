//! How a run ended, and the record that tells it.

use crate::record::{ExecutionRecord, iso_8601};
use heapstead_engine::Outcome;
use heapstead_types::{ExecutionId, Failure, HeapKey, Status, limits};
use jiff::Timestamp;
use rustix::rand::{GetRandomFlags, getrandom};

/// One of these per run. A heap is in it only once it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Completed { result: String, heap: Option<HeapKey> },
    Failed(Failure),
    TimedOut { timeout_secs: u32 },
    Cancelled,
}

impl From<Outcome> for End {
    /// How a run ended whose heap, if it left one, is not kept.
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed { result, .. } => Self::Completed { result, heap: None },
            Outcome::Failed(failure) => Self::Failed(failure),
            Outcome::TimedOut { timeout_secs } => Self::TimedOut { timeout_secs },
            Outcome::Cancelled => Self::Cancelled,
        }
    }
}

impl End {
    pub fn status(&self) -> Status {
        match self {
            Self::Completed { .. } => Status::Completed,
            Self::Failed(_) => Status::Failed,
            Self::TimedOut { .. } => Status::TimedOut,
            Self::Cancelled => Status::Cancelled,
        }
    }

    pub fn error(&self) -> Option<String> {
        match self {
            Self::Completed { .. } => None,
            Self::Failed(failure) => Some(failure.to_string()),
            Self::TimedOut { timeout_secs } => Some(format!(
                "the run took longer than its limit of {timeout_secs} s: do less in one run, or raise `execution_timeout_secs` (at most {} s)",
                limits::TIMEOUT_SECS_MAX
            )),
            Self::Cancelled => Some("the run was cancelled".into()),
        }
    }
}

/// A run from its acceptance on: what its record says before it has ended.
#[derive(Debug, Clone)]
pub struct Begun {
    pub execution_id: ExecutionId,
    pub started_at: Timestamp,
    pub warnings: Vec<String>,
}

impl Begun {
    pub fn now() -> Self {
        Self { execution_id: new_id(), started_at: Timestamp::now(), warnings: Vec::new() }
    }

    /// The record of a run that goes on.
    pub fn running(self) -> ExecutionRecord {
        ExecutionRecord {
            execution_id: self.execution_id,
            status: Status::Running,
            result: None,
            heap: None,
            error: None,
            started_at: iso_8601(self.started_at),
            completed_at: None,
            warnings: self.warnings,
            told: None,
            part: None,
        }
    }

    pub fn ended(self, end: End) -> Finished {
        let record = self.ended_at(&end, Timestamp::now());
        Finished { end, record }
    }

    pub fn ended_at(self, end: &End, completed_at: Timestamp) -> ExecutionRecord {
        let (result, heap) = match end {
            End::Completed { result, heap } => (Some(result.clone()), *heap),
            _ => (None, None),
        };
        let completed_at = Some(iso_8601(completed_at));
        ExecutionRecord { status: end.status(), result, heap, error: end.error(), completed_at, ..self.running() }
    }
}

/// A run that is over.
#[derive(Debug)]
pub struct Finished {
    pub end: End,
    pub record: ExecutionRecord,
}

impl Finished {
    /// A run that failed before an engine could take it.
    pub fn never_began(failure: Failure) -> Self {
        Begun::now().ended(End::Failed(failure))
    }
}

pub fn new_id() -> ExecutionId {
    let mut bits = [0; 16];
    // Linux answers requests of this size whole once it has started up, and there is no later moment to ask at.
    let _ = getrandom(&mut bits, GetRandomFlags::empty());
    ExecutionId::from_random(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(end: End) -> serde_json::Value {
        let finished = Begun::now().ended(end);
        let mut record = serde_json::to_value(finished.record).expect("JSON");
        for (field, length) in [("execution_id", 32), ("started_at", 24), ("completed_at", 24)] {
            let value = record.as_object_mut().and_then(|record| record.remove(field)).expect(field);
            assert_eq!(value.as_str().map(str::len), Some(length), "{field}: {value}");
        }
        record
    }

    #[test]
    fn each_end_has_its_record() {
        let heap = HeapKey::from_digest([0xab; 32]);
        assert_eq!(
            record(End::Completed { result: "2".into(), heap: Some(heap) }),
            serde_json::json!({ "status": "completed", "result": "2", "heap": "ab".repeat(32), "error": null })
        );
        assert_eq!(
            record(End::Completed { result: "2".into(), heap: None }),
            serde_json::json!({ "status": "completed", "result": "2", "heap": null, "error": null })
        );
        assert_eq!(
            record(End::Failed(Failure::Exception("Error: boo".into()))),
            serde_json::json!({ "status": "failed", "result": null, "heap": null, "error": "Error: boo" })
        );
        assert_eq!(
            record(End::Cancelled),
            serde_json::json!({ "status": "cancelled", "result": null, "heap": null, "error": "the run was cancelled" })
        );
        let timed_out = record(End::TimedOut { timeout_secs: 7 });
        assert_eq!(timed_out["status"], "timed_out");
        assert!(timed_out["error"].as_str().expect("a text").contains("its limit of 7 s"), "{timed_out}");
    }

    #[test]
    fn two_runs_never_share_an_id() {
        assert_ne!(new_id(), new_id());
    }
}
