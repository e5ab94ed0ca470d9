//! Logical sessions: tasks that a host names by its intent. Each is bound to an execute session, a symbol space that lives in a heap.
//!
//! ```text
//! intent ─► logical session (for ever) ─► execute session (until it expires or is lost) ─► head of the session
//! ```
//! What is bound is looked at when a call comes to its turn: it lives, or it is gone and a new one takes its place, and the caller is told.

mod call_turn;
mod context;
mod continuity;
mod preparation;
mod reuse;
mod space;

pub use context::{ContextRequest, SessionContext};
pub use continuity::{Continuity, ExecuteBinding, Reason, Told, Wave, WaveMode};
pub use preparation::{OnStale, Prepared, Wish};

use crate::{Archive, Caller, ExecutionRecord, ServiceError};
use heapstead_types::SessionId;
use uuid::Uuid;

/// A logical id as we write it. Other ways to write a UUID are not taken: 32 hex digits may be anybody's name of a session.
pub fn logical_id(text: &str) -> Option<Uuid> {
    text.parse::<Uuid>().ok().filter(|id| id.to_string() == text)
}

impl Archive {
    /// The session behind `s0` or a logical id; none when the text is neither.
    pub(crate) async fn logical_handle(&self, caller: &Caller, text: &str) -> Result<Option<SessionId>, ServiceError> {
        let number = text.strip_prefix('s').filter(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
        let logical: Option<Uuid> = match (number, logical_id(text)) {
            (Some(digits), _) => match (digits.parse::<u64>(), &caller.connection) {
                // No ref is written like this.
                (Err(_), _) => None,
                (Ok(number), _) if number.to_string() != digits => None,
                (Ok(number), Some(connection)) => connection.numbered(usize::try_from(number).unwrap_or(usize::MAX)),
                // Strangers share this owner, so it has no numbers that anybody could guess.
                (Ok(_), None) if caller.principal.is_anonymous() => None,
                (Ok(number), None) => self.0.metadata.referred(&caller.principal, number).await?,
            },
            (None, Some(id)) => Some(id),
            (None, None) => return Ok(None),
        };
        let found = match logical {
            Some(id) => self.0.metadata.logical(&caller.principal, id).await?,
            None => None,
        };
        found.map(|logical| Some(logical.session)).ok_or_else(|| ServiceError::NoSession(text.chars().take(80).collect()))
    }

    /// Notes that somebody is answered with this record, and so told what became of its session.
    pub async fn tell(&self, record: &ExecutionRecord) {
        let Some(told) = &record.told else { return };
        let noted = async {
            match self.0.metadata.logical_of_run(&record.execution_id).await? {
                Some(logical) => self.note_told(logical, told).await,
                None => Ok(()),
            }
        };
        let noted: Result<(), ServiceError> = noted.await;
        if let Err(error) = noted {
            tracing::warn!(%error, "what became of a session is told once more");
        }
    }

    /// Whatever else happened to the session meanwhile is still to be told.
    async fn note_told(&self, logical: Uuid, told: &Told) -> Result<(), ServiceError> {
        let Some(json) = self.0.metadata.untold(logical).await? else { return Ok(()) };
        let untold = serde_json::from_str::<Told>(&json).ok();
        // The table may have grown since, but what has to be known of it is the same.
        if untold.is_some_and(|untold| untold.continuity == told.continuity && untold.execute_binding == told.execute_binding) {
            self.0.metadata.told(logical, json).await?;
        }
        Ok(())
    }

    /// Takes what a logical session is bound to from it. False when that was gone already.
    pub(crate) async fn clear_logical(&self, logical: Uuid) -> Result<bool, ServiceError> {
        Ok(self.0.metadata.end_execute(logical, Reason::Cleared.as_str()).await?)
    }
}
