//! The session that a request names in `_meta`: resolved and authorised once, then passed on with the caller.

use heapstead_store::records::{Head, OpenedSession};
use heapstead_types::SessionId;
use jiff::Timestamp;
use std::sync::{Arc, Mutex, PoisonError};

/// Clones share what the request learns about the session.
#[derive(Debug, Clone)]
pub struct EnteredSession(Arc<Entered>);

#[derive(Debug)]
struct Entered {
    /// As it was when the request entered it.
    session: OpenedSession,
    now: Mutex<Now>,
    /// The expiry after this request has refreshed the TTL, or started a run, which does.
    refreshed: Mutex<Option<Timestamp>>,
}

/// The head of the session at the end of the request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Now {
    AsEntered,
    /// The request moved it here.
    At(Head),
    /// The request may have moved it; it has to be read again.
    Unknown,
}

impl EnteredSession {
    pub(super) fn new(session: OpenedSession, refreshed: Option<Timestamp>) -> Self {
        Self(Arc::new(Entered { session, now: Mutex::new(Now::AsEntered), refreshed: Mutex::new(refreshed) }))
    }

    pub fn id(&self) -> SessionId {
        self.0.session.id
    }

    /// The session as it was when the request entered it.
    pub fn session(&self) -> &OpenedSession {
        &self.0.session
    }

    pub(crate) fn moved_to(&self, head: Head) {
        self.set(Now::At(head));
    }

    pub(crate) fn may_have_moved(&self) {
        self.set(Now::Unknown);
    }

    /// A run was accepted in the session, which refreshed its TTL.
    pub(crate) fn refreshed_by_run(&self, expires_at: Timestamp) {
        *self.0.refreshed.lock().unwrap_or_else(PoisonError::into_inner) = Some(expires_at);
    }

    /// The expiry, if this request has refreshed it.
    pub(super) fn refreshed(&self) -> Option<Timestamp> {
        *self.0.refreshed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Now {
        *self.0.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, now: Now) {
        *self.0.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}
