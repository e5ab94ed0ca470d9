//! The heap of a turn on demand: of the live worker if it still has that state, otherwise by repeating the turns that lead to it.

use crate::executions::Replayer;
use crate::{Caller, LogRequest, Service, ServiceError, SessionEntries, SessionView};
use heapstead_engine::Slot;
use heapstead_store::records::{StateHeap, TurnState};
use heapstead_types::{BudgetHolder, ErrorCode, ExecutionId, HeapKey, Principal};
use std::time::Duration;

/// The most turns on a page of a log whose heaps are stored for it.
const LOG_TURNS_MAX: u32 = 100;

impl Service {
    /// Stores the heap after a turn of the caller's, if it is not stored yet. Waits for the end of the run, at most `wait`.
    pub async fn materialize_execution(&self, caller: &Caller, id: &str, wait: Duration) -> Result<(), ServiceError> {
        let record = self.executions().get(caller, id, wait).await?;
        if let Some(state) = self.stores.records.turn_state_of(&caller.principal, &record.execution_id).await? {
            self.materialize(&caller.principal, &caller.budget_holder(), None, state.id).await?;
        }
        Ok(())
    }

    /// A page of a session's log, of which every heap is stored first: the oldest first, so that each repeats the turns after the one before.
    pub async fn materialized_log(&self, caller: &Caller, mut request: LogRequest) -> Result<SessionEntries, ServiceError> {
        request.limit = Some(request.limit.unwrap_or(LOG_TURNS_MAX).min(LOG_TURNS_MAX));
        for execution in self.sessions().unstored_in_log(caller, &request).await? {
            // The record of the execution may be deleted; the journal of a session stays.
            let Some(state) = self.stores.records.turn_state_of(&caller.principal, &execution).await? else { continue };
            match self.materialize(&caller.principal, &caller.budget_holder(), None, state.id).await {
                // A heap that can't be made is null: the others are not to be missed because of it.
                Ok(_) | Err(ServiceError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.sessions().log(caller, request).await
    }

    /// Opens a session at a heap of another one, whose head is stored first.
    pub async fn fork_session(&self, caller: &Caller, handle: &str, heap: Option<HeapKey>) -> Result<SessionView, ServiceError> {
        if heap.is_none()
            && let Some(head) = self.sessions().require(caller, handle).await?.head
        {
            self.materialize(&caller.principal, &caller.budget_holder(), None, head).await?;
        }
        self.sessions().fork(caller, handle, heap).await
    }

    /// The stored heap behind a heap or state of the owner's. A state that has none gets one: in the slot of a run that needs it.
    pub(crate) async fn materialize(
        &self,
        principal: &Principal,
        holder: &BudgetHolder,
        slot: Option<(&Slot, u32)>,
        id: HeapKey,
    ) -> Result<HeapKey, ServiceError> {
        match self.materialize_or_rebuild(principal, holder, slot, id).await? {
            Materialized::Stored(key) => Ok(key),
            Materialized::InJournal { execution, why } => Err(impossible(&execution, why)),
        }
    }

    /// As `materialize`, of a state that need not be one that can be stored.
    pub(crate) async fn materialize_or_rebuild(
        &self,
        principal: &Principal,
        holder: &BudgetHolder,
        slot: Option<(&Slot, u32)>,
        id: HeapKey,
    ) -> Result<Materialized, ServiceError> {
        if !id.is_state() {
            return Ok(Materialized::Stored(id));
        }
        let state = match self.stores.records.turn_state(principal, id).await? {
            None => return Ok(Materialized::Stored(id)),
            Some(TurnState { heap: StateHeap::Stored(key), .. }) => return Ok(Materialized::Stored(key)),
            Some(state) => state,
        };
        if let Some(session) = self.runtime.live.session_with(state.id) {
            self.checkpoint(session);
            self.runtime.checkpoints.idle(session).await;
            if let Some(TurnState { heap: StateHeap::Stored(key), .. }) = self.stores.records.turn_state(principal, state.id).await? {
                return Ok(Materialized::Stored(key));
            }
        }
        let replayer = Replayer::in_slot(&self.stores, &self.runtime.engine, principal, holder.clone(), slot).await;
        let point = replayer.point_at(state.id, 0, None).await?;
        match point.map_err(|why| impossible(&state.execution, why.to_string()))?.heap().await {
            Ok(Some(heap)) => Ok(Materialized::Stored(self.store_checkpoint(principal, state.id, heap).await?)),
            Ok(None) => Err(impossible(&state.execution, "no run led to it".into())),
            Err(failure) if failure.code() == ErrorCode::HeapUnsaveable => {
                Ok(Materialized::InJournal { execution: state.execution, why: failure.to_string() })
            }
            Err(failure) => Err(impossible(&state.execution, failure.to_string())),
        }
    }
}

/// What can be had of a state.
pub(crate) enum Materialized {
    Stored(HeapKey),
    /// It can't be stored. It was rebuilt in memory, so the next turn can resume it.
    InJournal {
        execution: ExecutionId,
        why: String,
    },
}

fn impossible(execution: &ExecutionId, why: String) -> ServiceError {
    ServiceError::conflict(ErrorCode::NotRecorded, format!("the heap after execution `{execution}` can't be made: {why}"))
}
