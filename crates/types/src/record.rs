//! The record of an execution, in the shape `get_execution` answers with.

use crate::{ExecutionId, HeapKey, Status};

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ExecutionRecord {
    pub execution_id: ExecutionId,
    pub status: Status,
    pub result: Option<String>,
    pub heap: Option<HeapKey>,
    pub error: Option<String>,
    pub started_at: String,
    pub completed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
