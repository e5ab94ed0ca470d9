//! Why the heap of a turn is not stored yet, in its record.

use super::Executions;
use super::record::{ExecutionRecord, HeapState};
use crate::{Caller, ServiceError};

impl Executions<'_> {
    /// The record, with the reason if storing its heap has failed. Only the server on which the session is live knows it.
    pub(super) async fn with_heap_error(&self, caller: &Caller, record: ExecutionRecord) -> Result<ExecutionRecord, ServiceError> {
        if record.heap_state != Some(HeapState::Pending) || !self.0.live.has_failures() {
            return Ok(record);
        }
        let state = self.0.records.turn_state_of(&caller.principal, &record.execution_id).await?;
        Ok(ExecutionRecord { heap_error: state.and_then(|state| self.0.live.failure_of(state.id)), ..record })
    }
}
