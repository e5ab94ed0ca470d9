//! The heap of a turn on demand: of the live worker if it still has that state, otherwise by repeating the turns that lead to it.

use crate::executions::{Rebuilt, Replayer};
use crate::{Caller, Service, ServiceError, SessionView};
use heapstead_store::records::{StateHeap, TurnState};
use heapstead_types::{ErrorCode, HeapKey};
use std::time::Duration;

impl Service {
    /// Stores the heap after a turn of the caller's, if it is not stored yet. Waits for the end of the run, at most `wait`.
    pub async fn materialize_execution(&self, caller: &Caller, id: &str, wait: Duration) -> Result<(), ServiceError> {
        let record = self.executions().get(caller, id, wait).await?;
        if let Some(state) = self.stores.records.turn_state_of(&caller.principal, &record.execution_id).await? {
            self.materialize(caller, state.id).await?;
        }
        Ok(())
    }

    /// Opens a session at a heap of another one, whose head is stored first.
    pub async fn fork_session(&self, caller: &Caller, handle: &str, heap: Option<HeapKey>) -> Result<SessionView, ServiceError> {
        if heap.is_none()
            && let Some(head) = self.sessions().require(caller, handle).await?.head
        {
            self.materialize(caller, head).await?;
        }
        self.sessions().fork(caller, handle, heap).await
    }

    /// The stored heap behind a heap or state of the caller's. A state that has none gets one.
    pub(crate) async fn materialize(&self, caller: &Caller, id: HeapKey) -> Result<HeapKey, ServiceError> {
        match self.stores.records.turn_state(&caller.principal, id).await? {
            None => Ok(id),
            Some(TurnState { heap: StateHeap::Stored(key), .. }) => Ok(key),
            Some(state) => self.materialize_state(caller, state).await,
        }
    }

    async fn materialize_state(&self, caller: &Caller, state: TurnState) -> Result<HeapKey, ServiceError> {
        if let Some(session) = self.runtime.live.session_with(state.id) {
            self.checkpoint(session);
            self.runtime.checkpoints.idle(session).await;
            if let Some(TurnState { heap: StateHeap::Stored(key), .. }) =
                self.stores.records.turn_state(&caller.principal, state.id).await?
            {
                return Ok(key);
            }
        }
        let replayer = Replayer::new(&self.stores, &self.runtime.engine, caller).await;
        let impossible = |why: String| {
            ServiceError::conflict(ErrorCode::NotRecorded, format!("the heap after execution `{}` can't be made: {why}", state.execution))
        };
        let lineage = replayer.lineage(state.id).await?.map_err(|error| impossible(error.to_string()))?;
        match replayer.rebuild(lineage).await? {
            Rebuilt { diverged: Some(diverged), .. } => Err(impossible(format!("execution `{}`: {}", diverged.execution, diverged.why))),
            Rebuilt { heap: Some(heap), .. } => self.store_checkpoint(&caller.principal, state.id, heap).await,
            Rebuilt { heap: None, .. } => Err(impossible("no run led to it".into())),
        }
    }
}
