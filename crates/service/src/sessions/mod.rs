//! Sessions: how a request gets its session, and what can be done with sessions.
//!
//! ```text
//! resolve.rs       which session a request is in: argument, `_meta`, connection
//! entered.rs       the session of a request, resolved once and passed on
//! lifecycle.rs     open, show, list, fork, end
//! expiry.rs        sessions whose TTL is over
//! log.rs           what ran in a session, in order
//! replay.rs        repeats what ran in a session, and compares
//! client_state.rs  the encrypted state that clients carry
//! access_audit.rs  requests for sessions of other owners
//! logical/         sessions that hosts name by intent
//! ```

pub(crate) mod access_audit;
pub(crate) mod client_state;
mod entered;
pub(crate) mod expiry;
mod lifecycle;
mod log;
mod logical;
mod replay;
mod resolve;
mod state;
mod undo;

pub use client_state::STATE_BYTES_MAX;
pub use entered::EnteredSession;
pub use lifecycle::{EndLogical, SessionPage, SessionView};
pub use log::{EntryField, LogRequest, NamesRequest, SessionEntries, SessionEntry, SessionNames};
pub use logical::{
    CatalogHits, CatalogQuery, ContextRequest, Continuity, ExecuteBinding, OnStale, Reason, SessionContext, SessionNotice, Wave, WaveMode,
    logical_id,
};
pub use replay::{REPLAY_TURNS_MAX, ReplayedTurn, SessionReplay, TurnOutcome, TurnRange};
pub use resolve::{SessionTarget, session_name};
pub use state::SessionState;
pub use undo::{UNDO_TURNS_MAX, UndoneTurns};

pub(crate) use access_audit::AccessAudit;
pub(crate) use logical::{KnownHead, PreparationRequest, PreparedSession};
pub(crate) use resolve::session_not_found;

use crate::Stores;

/// Operations on sessions.
pub struct Sessions<'a>(pub(crate) &'a Stores);
