//! How an execution ended, and the record of it.

use super::record::{ExecutionRecord, iso_8601};
use heapstead_engine::Outcome;
use heapstead_types::{ErrorCode, ExecutionId, Failure, HeapKey, Status};
use jiff::Timestamp;

/// A heap is in it only once it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutionOutcome {
    Completed { result: String, heap: Option<HeapKey> },
    Failed(Failure),
    TimedOut { timeout_secs: u32 },
    Cancelled,
}

impl From<Outcome> for ExecutionOutcome {
    /// For a run whose heap is not stored.
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed { result, .. } => Self::Completed { result, heap: None },
            Outcome::Failed(failure) => Self::Failed(failure),
            Outcome::TimedOut { timeout_secs } => Self::TimedOut { timeout_secs },
            Outcome::Cancelled => Self::Cancelled,
        }
    }
}

impl ExecutionOutcome {
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
                "the run took longer than its limit of {timeout_secs} s: do less in one run, or raise `execution_timeout_secs`"
            )),
            Self::Cancelled => Some("the run was cancelled".into()),
        }
    }

    pub fn error_code(&self) -> Option<ErrorCode> {
        match self {
            Self::Completed { .. } => None,
            Self::Failed(failure) => Some(failure.code()),
            Self::TimedOut { .. } => Some(ErrorCode::TimedOut),
            Self::Cancelled => Some(ErrorCode::Cancelled),
        }
    }
}

/// What the record of an execution says before it has ended.
#[derive(Debug, Clone)]
pub struct ExecutionStart {
    pub execution_id: ExecutionId,
    pub started_at: Timestamp,
    pub warnings: Vec<String>,
}

impl ExecutionStart {
    pub fn now() -> Self {
        Self { execution_id: ExecutionId::random(), started_at: Timestamp::now(), warnings: Vec::new() }
    }

    /// The record of a running execution.
    pub fn running(self) -> ExecutionRecord {
        ExecutionRecord {
            execution_id: self.execution_id,
            status: Status::Running,
            result: None,
            heap: None,
            heap_state: None,
            heap_error: None,
            error: None,
            error_code: None,
            started_at: iso_8601(self.started_at),
            completed_at: None,
            warnings: self.warnings,
            notice: None,
            part: None,
            rest: None,
        }
    }

    pub fn ended(self, end: ExecutionOutcome) -> FinishedRun {
        let record = self.ended_at(end.clone(), Timestamp::now());
        FinishedRun { end, record }
    }

    /// Takes the result over: it may be long.
    pub fn ended_at(self, end: ExecutionOutcome, completed_at: Timestamp) -> ExecutionRecord {
        let (status, error, error_code) = (end.status(), end.error(), end.error_code());
        let (result, heap) = match end {
            ExecutionOutcome::Completed { result, heap } => (Some(result), heap),
            _ => (None, None),
        };
        let completed_at = Some(iso_8601(completed_at));
        ExecutionRecord { status, result, heap, error, error_code, completed_at, ..self.running() }
    }
}

/// A run that has ended.
#[derive(Debug)]
pub struct FinishedRun {
    pub end: ExecutionOutcome,
    pub record: ExecutionRecord,
}

impl FinishedRun {
    /// A run that failed before it reached the engine.
    pub fn never_began(failure: Failure) -> Self {
        ExecutionStart::now().ended(ExecutionOutcome::Failed(failure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(end: ExecutionOutcome) -> serde_json::Value {
        let finished = ExecutionStart::now().ended(end);
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
            record(ExecutionOutcome::Completed { result: "2".into(), heap: Some(heap) }),
            serde_json::json!({ "status": "completed", "result": "2", "heap": "ab".repeat(32), "error": null })
        );
        assert_eq!(
            record(ExecutionOutcome::Completed { result: "2".into(), heap: None }),
            serde_json::json!({ "status": "completed", "result": "2", "heap": null, "error": null })
        );
        assert_eq!(
            record(ExecutionOutcome::Failed(Failure::Exception("Error: boo".into()))),
            serde_json::json!({ "status": "failed", "result": null, "heap": null, "error": "Error: boo", "error_code": "exception" })
        );
        assert_eq!(
            record(ExecutionOutcome::Cancelled),
            serde_json::json!({ "status": "cancelled", "result": null, "heap": null, "error": "the run was cancelled", "error_code": "cancelled" })
        );
        let timed_out = record(ExecutionOutcome::TimedOut { timeout_secs: 7 });
        assert_eq!(timed_out["status"], "timed_out");
        assert!(timed_out["error"].as_str().expect("a text").contains("its limit of 7 s"), "{timed_out}");
    }
}
