//! Audit of requests for sessions of other owners. Such a request gets the same answer, in the same time, as one for a session that never
//! existed; which of the two it was is checked afterwards, in batches, and reported to the operator.

use crate::Stores;
use heapstead_types::{Principal, SessionId};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use uuid::Uuid;

/// Delay from a request to its check: long compared to a request, so that the check does not show in any response time.
const CHECK_AFTER: Duration = Duration::from_secs(1);
/// Bound on unchecked requests, and so on their memory.
const REQUESTS_MAX: usize = 65_536;

/// A requested session that the caller does not have. It may not exist.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Requested {
    Session(SessionId),
    Logical(Uuid),
    /// The context of one session from within another. It counts as a violation even if both are the caller's.
    Context(SessionId),
}

#[derive(Debug, Default)]
pub struct AccessAudit {
    requests: Mutex<Vec<(Principal, Requested)>>,
    added: Arc<Notify>,
    violations: AtomicU64,
}

impl AccessAudit {
    pub(crate) fn add(&self, principal: &Principal, requested: Requested) {
        let mut requests = self.lock();
        if requests.len() < REQUESTS_MAX {
            requests.push((principal.clone(), requested));
        }
        drop(requests);
        self.added.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Principal, Requested)>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AccessAudit {
    fn drop(&mut self) {
        self.added.notify_one();
    }
}

pub fn start(stores: &Stores) {
    let (weak, added) = (stores.downgrade(), stores.access_audit.added.clone());
    tokio::spawn(async move {
        loop {
            added.notified().await;
            tokio::time::sleep(CHECK_AFTER).await;
            let Some(stores) = weak.upgrade() else { return };
            violations(&stores).await;
        }
    });
}

/// Checks all collected requests. Returns the number of violations since the process started.
pub(crate) async fn violations(stores: &Stores) -> u64 {
    let (audit, records) = (&stores.access_audit, &stores.records);
    let mut requests = std::mem::take(&mut *audit.lock());
    let before = audit.violations.load(Relaxed);
    while let Some((principal, requested)) = requests.last() {
        let is_violation = match requested {
            Requested::Session(id) => records.is_session_of_another_owner(principal, *id).await,
            Requested::Logical(id) => records.is_logical_session_of_another_owner(principal, *id).await,
            Requested::Context(id) => records.is_session(*id).await,
        };
        match is_violation {
            Ok(is_violation) => audit.violations.fetch_add(is_violation.into(), Relaxed),
            Err(error) => {
                tracing::warn!(%error, "requests for sessions of other owners can't be checked now");
                audit.lock().append(&mut requests);
                break;
            }
        };
        requests.pop();
    }
    let violations = audit.violations.load(Relaxed);
    if violations > before {
        tracing::warn!(requests = violations - before, "isolation violation: a caller requested a session of another owner");
    }
    violations
}
