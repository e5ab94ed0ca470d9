//! What the operator decided: limits, retention, quotas.

use crate::executions::{Durability, OnMissingHeap};
use crate::live::LivePolicy;
use heapstead_types::{LimitMaxima, Limits};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Limits of runs that do not set their own.
    pub limits: Limits,
    /// The most that a run may set.
    pub maxima: LimitMaxima,
    pub on_missing_heap: OnMissingHeap,
    pub retain_executions: Duration,
    pub retain_heaps: Duration,
    /// How long a named or logical session is kept that is not used.
    pub retain_sessions: Duration,
    /// Time to live of a session that is not used.
    pub session_ttl: Duration,
    /// Whether code runs only in sessions.
    pub require_session: bool,
    pub quotas: Quotas,
    /// Whether an execute session is reused only by the principal that opened it. Otherwise its tenant shares it.
    pub delegated: bool,
    /// Whether heaps that this server did not write can be imported (`heaps/signing.rs`): by owners with the permission, and by callers
    /// without credentials, who are the operator unless other machines can reach the server.
    pub import_heaps: bool,
    /// When a turn of an opened session is acknowledged.
    pub session_durability: Durability,
    pub live: LivePolicy,
}

/// What a server does whose operator decided nothing; a test in `server/src/cli/flags/mod.rs` compares it with the defaults of the flags.
impl Default for Policy {
    fn default() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self {
            limits: Limits::default(),
            maxima: LimitMaxima::default(),
            on_missing_heap: OnMissingHeap::Fresh,
            retain_executions: DAY * 7,
            retain_heaps: DAY * 30,
            retain_sessions: DAY * 90,
            session_ttl: DAY,
            require_session: false,
            quotas: Quotas::default(),
            delegated: false,
            import_heaps: true,
            session_durability: Durability::Journal,
            live: LivePolicy::default(),
        }
    }
}

/// Limits per owner; none means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Checked in the transaction that opens a session (`store/src/sqlite/sessions.rs`).
    pub sessions_max: Option<u32>,
    /// Checked in the transaction that reserves room for a heap (`store/src/sqlite/heap_reservations.rs`), before it is stored.
    pub heap_bytes_max: Option<u64>,
    /// Bytes of everything that is stored, heaps included. Checked in the transactions that store (`store/src/sqlite/owners.rs`).
    pub stored_bytes_max: Option<u64>,
    /// Checked in the transaction that accepts a run (`store/src/sqlite/executions.rs`).
    pub running_max: Option<u32>,
}

/// 100 years: later timestamps can be written but not read.
const TTL_MAX: SignedDuration = SignedDuration::from_hours(100 * 365 * 24);
/// A refresh that would move the expiry by less than this part of the TTL is not written.
const REFRESH_PART: i32 = 100;

impl Policy {
    pub fn ttl(&self) -> SignedDuration {
        SignedDuration::try_from(self.session_ttl).unwrap_or(TTL_MAX).min(TTL_MAX)
    }

    /// When a session expires that is used now and not again.
    pub fn expiry(&self, now: Timestamp) -> Timestamp {
        now.saturating_add(self.ttl()).unwrap_or(Timestamp::MAX)
    }

    /// The new expiry of a session that expires then and is used now; none if the change is too small to write.
    pub fn refreshed(&self, expires_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
        // A command on the stores does not know the TTL of the server.
        if self.session_ttl == Duration::MAX {
            return None;
        }
        let later = self.expiry(now);
        (later.duration_since(expires_at) > self.ttl() / REFRESH_PART).then_some(later)
    }
}
