//! Undo: moves the head of an opened session back by some turns. The log keeps them, marked as undone.

use super::session_not_found;
use crate::executions::PreparationTurn;
use crate::{Caller, Service, ServiceError};
use heapstead_store::records::LastTurn;
use heapstead_types::{ErrorCode, Failure, HeapKey};
use schemars::JsonSchema;
use serde::Serialize;

/// The most turns that one request undoes.
pub const UNDO_TURNS_MAX: u32 = 1_000;

/// The turns that were undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UndoneTurns {
    pub session_id: String,
    /// Their numbers in the session, in order.
    pub undone: Vec<u64>,
    /// The heap that the next run continues from; null for a fresh one.
    #[schemars(schema_with = "crate::schema::optional_heap_key")]
    pub head: Option<HeapKey>,
}

impl Service {
    /// Undoes the last turns of a session of the caller's, after everything that was accepted into it before.
    pub async fn undo_session(&self, caller: &Caller, handle: &str, turns: u32) -> Result<UndoneTurns, ServiceError> {
        self.refuse_while_closing()?;
        if !(1..=UNDO_TURNS_MAX).contains(&turns) {
            return Err(ServiceError::bad_value("turns", turns.to_string(), format!("expected 1 to {UNDO_TURNS_MAX}")));
        }
        let session = self.sessions().require(caller, handle).await?;
        let mut turn = PreparationTurn::new(&self.stores, session.id);
        let in_line = turn.take().await?.ok_or_else(|| session_not_found(handle))?;
        let (this, principal, holder, handle) = (self.clone(), caller.principal.clone(), caller.budget_holder(), handle.to_owned());
        // A task of its own: a caller that leaves does not stop it half-way.
        let work = tokio::spawn(async move {
            let current = turn.wait(in_line).await?;
            let records = &this.stores.records;
            let last = records.last_turns(session.id, turns).await?;
            // A preparation may have changed the heap between two turns.
            let can_undo = if session.logical.is_some() { connected(&last, current) } else { last.len() };
            let [.., first] = &last[..] else { return Err(not_enough(turns, can_undo)) };
            if can_undo < turns as usize {
                return Err(not_enough(turns, can_undo));
            }
            // What the session continues from is stored, before the head moves.
            let stored = match first.before {
                Some(before) => Some(this.materialize(&principal, &holder, None, before).await?),
                None => None,
            };
            if let Some(key) = stored
                && let Err(failure @ (Failure::HeapNotFound { .. } | Failure::HeapDamaged { .. })) =
                    this.runtime.heaps.for_owner(&principal).restore(key).await
            {
                return Err(ServiceError::conflict(failure.code(), format!("turn {} can't be undone: {failure}", first.index)));
            }
            records.undo_turns(session.id, first.index, first.before).await?.ok_or_else(|| session_not_found(&handle))?;
            this.runtime.live.remove(session.id);
            this.events().check_heads(vec![session.id]).await;
            let undone = last.iter().rev().map(|turn| turn.index).collect();
            Ok(UndoneTurns { session_id: session.id.to_string(), undone, head: stored })
        });
        work.await.unwrap_or_else(|error| Err(ServiceError::Unavailable(error.to_string())))
    }
}

/// How many turns, newest first, follow each other without another change of the head.
fn connected(last: &[LastTurn], mut head: Option<HeapKey>) -> usize {
    let follows = |turn: &&LastTurn| {
        let is_next = head == Some(turn.after);
        head = turn.before;
        is_next
    };
    last.iter().take_while(follows).count()
}

fn not_enough(turns: u32, can_undo: usize) -> ServiceError {
    ServiceError::conflict(ErrorCode::Conflict, format!("`turns` is {turns}, and {can_undo} turns of the session can be undone"))
}
