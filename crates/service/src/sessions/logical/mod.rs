//! Logical sessions: tasks that a host names by intent. Each is bound to an execute session, a symbol space that lives in a heap.
//!
//! ```text
//! intent ─► logical session (permanent) ─► execute session (until it expires or is lost) ─► head of the session
//! ```
//! Whether the execute session is still usable is checked when a call gets its turn. If it is lost, a new one is bound, and the caller
//! receives a notice.

mod catalog_search;
mod continuity;
mod head;
mod import;
mod notices;
mod preparation;
mod reuse;
mod session_context;
mod symbol_space;

pub use catalog_search::{CatalogHits, CatalogQuery};
pub use continuity::{Continuity, ExecuteBinding, Reason, SessionNotice, Wave, WaveMode};
pub use preparation::OnStale;
pub use session_context::{ContextRequest, SessionContext};

pub(crate) use preparation::{KnownHead, PreparationRequest, PreparedSession};

use super::Sessions;
use crate::{Caller, ServiceError};
use heapstead_store::records::OpenedSession;
use jiff::Timestamp;
use uuid::Uuid;

/// A logical id in its canonical form. Other forms of a UUID are not accepted: 32 hex digits may be the name of a session.
pub fn logical_id(text: &str) -> Option<Uuid> {
    text.parse::<Uuid>().ok().filter(|id| id.to_string() == text)
}

impl Sessions<'_> {
    /// The session with the handle `sN` or a logical id; none if the text is neither.
    pub(super) async fn by_logical_handle(&self, caller: &Caller, text: &str) -> Result<Option<OpenedSession>, ServiceError> {
        let number = text.strip_prefix('s').filter(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
        let logical: Option<Uuid> = match (number, logical_id(text)) {
            (Some(digits), _) => match (digits.parse::<u64>(), &caller.connection) {
                // Not how a number is written.
                (Err(_), _) => None,
                (Ok(number), _) if number.to_string() != digits => None,
                (Ok(number), Some(connection)) => connection.logical_by_ref(usize::try_from(number).unwrap_or(usize::MAX)),
                // Anonymous callers share an owner, so it has no numbers: they could be guessed.
                (Ok(_), None) if caller.principal.is_anonymous() => None,
                (Ok(number), None) => self.0.records.logical_session_by_ref(&caller.principal, number).await?,
            },
            (None, Some(id)) => Some(id),
            (None, None) => return Ok(None),
        };
        let found = match logical {
            Some(id) => self.0.records.opened_session_of_logical(&caller.principal, id, Timestamp::now()).await?,
            None => None,
        };
        found.map(Some).ok_or_else(|| ServiceError::unknown_handle(text))
    }
}

impl Sessions<'_> {
    /// The session id behind `sN` or a logical id; none if the text is neither.
    pub(crate) async fn id_of_logical_handle(
        &self,
        caller: &Caller,
        text: &str,
    ) -> Result<Option<heapstead_types::SessionId>, ServiceError> {
        Ok(self.by_logical_handle(caller, text).await?.map(|session| session.id))
    }
}
