//! The record of an execution, in the shape `get_execution` answers with.

use crate::logical::Told;
use heapstead_types::{ExecutionId, HeapKey, Status};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// What is known of one execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExecutionRecord {
    #[schemars(with = "String")]
    pub execution_id: ExecutionId,
    #[schemars(schema_with = "crate::schema::status")]
    pub status: Status,
    /// The serialised completion value when `completed`, else null.
    pub result: Option<String>,
    /// Key of the snapshot that the run produced; null unless `completed`.
    #[schemars(schema_with = "crate::schema::optional_heap_key")]
    pub heap: Option<HeapKey>,
    /// What went wrong when `failed`, `timed_out` or `cancelled`, else null.
    pub error: Option<String>,
    /// ISO 8601; for a run still queued, when it was accepted.
    pub started_at: String,
    /// ISO 8601; null while running.
    pub completed_at: Option<String>,
    /// What the caller should know beside the result. Absent when there is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub warnings: Vec<String>,
    /// What became of the run's session, when its client has to know.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
}

/// Times as every answer writes them.
pub fn iso_8601(time: Timestamp) -> String {
    format!("{time:.3}")
}
