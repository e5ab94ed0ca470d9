//! Where the state of an opened session is: in memory, in a stored heap, and in the journal.

use super::Sessions;
use crate::{ServiceError, SessionView};
use heapstead_store::records::{OpenedSession, Tail};
use heapstead_types::HeapKey;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionState {
    /// Whether its heap is in the memory of the server that answers.
    pub live: bool,
    /// Number of turns, as `runs`.
    pub turns: u64,
    /// The newest stored heap that leads to the state; null if there is none.
    #[schemars(schema_with = "crate::schema::optional_heap_key")]
    pub checkpoint: Option<HeapKey>,
    /// Turns after it, which the journal holds.
    pub tail_turns: u64,
    /// What it takes while it is live, as it was measured last; null if it is not live, or was not measured yet.
    pub memory_bytes: Option<u64>,
}

impl SessionState {
    /// Of a session whose head is a stored heap.
    pub fn of_head(session: &OpenedSession) -> Self {
        Self { live: false, turns: session.sequence, checkpoint: session.head, tail_turns: 0, memory_bytes: None }
    }
}

impl Sessions<'_> {
    pub(super) async fn view(&self, session: OpenedSession) -> Result<SessionView, ServiceError> {
        let fresh = SessionView::from(session.clone());
        Ok(self.views(vec![session]).await?.pop().unwrap_or(fresh))
    }

    /// The views of sessions. The head that is shown is a stored heap.
    pub(super) async fn views(&self, sessions: Vec<OpenedSession>) -> Result<Vec<SessionView>, ServiceError> {
        let heads = sessions.iter().filter_map(|session| session.head).collect();
        let mut tails = self.0.records.tails(heads).await?.into_iter();
        let view = |session: OpenedSession| {
            let Tail { checkpoint, turns } = session.head.and_then(|_| tails.next()).unwrap_or_default();
            let (live, memory_bytes) = (self.0.live.contains(session.id), self.0.live.memory_bytes(session.id));
            let state = SessionState { live, turns: session.sequence, checkpoint, tail_turns: turns, memory_bytes };
            SessionView { head: checkpoint.filter(|_| turns == 0), state, ..session.into() }
        };
        Ok(sessions.into_iter().map(view).collect())
    }
}
