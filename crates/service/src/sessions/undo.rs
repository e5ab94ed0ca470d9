//! Undo: moves the head of an opened session back by some turns. The log keeps them, marked as undone.

use super::session_not_found;
use crate::executions::{KnownState, PreparationTurn, Replayer};
use crate::live::Materialized;
use crate::{Caller, Service, ServiceError};
use heapstead_store::records::LastTurn;
use heapstead_types::{BudgetHolder, ErrorCode, Failure, HeapKey, Principal, SessionId};
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
    /// The heap that the next run continues from; null for a fresh one, and if there is a `heap_error`.
    #[schemars(schema_with = "crate::schema::optional_heap_key")]
    pub head: Option<HeapKey>,
    /// Why the state that the next run continues from has no heap: it holds a value that can't be stored. The journal leads to the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap_error: Option<String>,
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
            // An import of catalog entities may have changed the heap between two turns.
            let undoable = match session.logical {
                Some(_) => this.undoable(session.id, &last, current).await?,
                None => Undoable { turns: last.len(), is_over_import: false },
            };
            let [.., first] = &last[..] else { return Err(not_enough(turns, undoable.turns)) };
            if undoable.turns < turns as usize {
                return Err(not_enough(turns, undoable.turns));
            }
            let undone = last.iter().rev().map(|turn| turn.index).collect();
            if let Some(logical) = session.logical.filter(|_| undoable.is_over_import) {
                let to = this.state_before(&principal, &holder, first).await?;
                let head = this.undo_import(&principal, &holder, logical, to, first.index).await?;
                this.runtime.live.remove(session.id);
                this.events().check_heads(vec![session.id]).await;
                return Ok(UndoneTurns { session_id: session.id.to_string(), undone, head, heap_error: None });
            }
            // What the session continues from is stored, before the head moves; or at least the journal leads there.
            let (head, heap_error) = match first.before {
                None => (None, None),
                Some(before) if this.can_be_live() => match this.materialize_or_rebuild(&principal, &holder, None, before).await? {
                    Materialized::Stored(key) => (Some(key), None),
                    Materialized::InJournal { why, .. } => (None, Some(why)),
                },
                // Runs can't resume what can't be stored.
                Some(before) => (Some(this.materialize(&principal, &holder, None, before).await?), None),
            };
            if let Some(key) = head
                && let Err(failure @ (Failure::HeapNotFound { .. } | Failure::HeapDamaged { .. })) =
                    this.runtime.heaps.for_owner(&principal).restore(key).await
            {
                return Err(ServiceError::conflict(failure.code(), format!("turn {} can't be undone: {failure}", first.index)));
            }
            records.undo_turns(session.id, first.index, first.before).await?.ok_or_else(|| session_not_found(&handle))?;
            this.runtime.live.remove(session.id);
            this.events().check_heads(vec![session.id]).await;
            Ok(UndoneTurns { session_id: session.id.to_string(), undone, head, heap_error })
        });
        work.await.unwrap_or_else(|error| Err(ServiceError::Unavailable(error.to_string())))
    }

    /// How many turns, newest first, follow each other with nothing but imports in between.
    async fn undoable(&self, session: SessionId, last: &[LastTurn], mut head: Option<HeapKey>) -> Result<Undoable, ServiceError> {
        let mut undoable = Undoable { turns: 0, is_over_import: false };
        for turn in last {
            let mut is_over_import = undoable.is_over_import;
            while let Some(key) = head.filter(|head| *head != turn.after) {
                // One that changed nothing would lead to itself.
                let input = self.stores.records.import_input(session, key).await?.filter(|input| *input != head);
                let Some(input) = input else { return Ok(undoable) };
                (head, is_over_import) = (input, true);
            }
            if head.is_none() {
                return Ok(undoable);
            }
            undoable = Undoable { turns: undoable.turns + 1, is_over_import };
            head = turn.before;
        }
        Ok(undoable)
    }

    /// What a turn started from; none for a fresh heap.
    async fn state_before(
        &self,
        principal: &Principal,
        holder: &BudgetHolder,
        turn: &LastTurn,
    ) -> Result<Option<KnownState>, ServiceError> {
        let Some(recorded) = turn.before else { return Ok(None) };
        let replayer = Replayer::new(&self.stores, &self.runtime.engine, principal, holder.clone()).await;
        let refused = |why: String| ServiceError::conflict(ErrorCode::NotRecorded, format!("turn {} can't be undone: {why}", turn.index));
        let point = replayer.point_at(recorded, self.policy().limits.heap_mb, None).await?.map_err(|why| refused(why.to_string()))?;
        // Entities are imported into a heap, and what that gives is stored.
        let image = point.heap().await.map_err(|failure| refused(failure.to_string()))?;
        Ok(image.map(|image| KnownState { recorded, image }))
    }
}

/// The newest turns of a session that can be undone.
struct Undoable {
    turns: usize,
    /// Entities were imported since the first of them: the state before it does not have them.
    is_over_import: bool,
}

fn not_enough(turns: u32, can_undo: usize) -> ServiceError {
    ServiceError::conflict(ErrorCode::Conflict, format!("`turns` is {turns}, and {can_undo} turns of the session can be undone"))
}
