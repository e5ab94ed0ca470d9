//! Ends sessions whose TTL is over.

use crate::{ServiceError, Stores};
use jiff::Timestamp;
use std::time::Duration;

/// Another server may have opened a session that expires before all that are known here.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
const CHECK_INTERVAL_MIN: Duration = Duration::from_millis(100);

pub fn start(stores: &Stores) {
    let weak = stores.downgrade();
    tokio::spawn(async move {
        while let Some(stores) = weak.upgrade() {
            let opened = stores.expiries.clone();
            let interval = check_interval(&stores);
            let next = match expire(&stores).await {
                Ok(next) => next.map_or(interval, |at| until(at).min(interval)),
                Err(error) => {
                    tracing::warn!(%error, "sessions that have expired could not be ended");
                    interval
                }
            };
            drop(stores);
            let _ = tokio::time::timeout(next, opened.notified()).await;
        }
    });
}

/// Ends all expired sessions. Returns when the next one expires.
async fn expire(stores: &Stores) -> Result<Option<Timestamp>, ServiceError> {
    let records = &stores.records;
    loop {
        let now = Timestamp::now();
        // An execute session does not expire while a run is running in it.
        let soon = now.saturating_add(stores.policy.ttl() / 2).unwrap_or(Timestamp::MAX);
        records.extend_running_execute_sessions(soon, stores.policy.expiry(now)).await?;
        for id in records.expire_execute_sessions(now).await? {
            stores.sessions().stop(id).await?;
        }
        let expired = records.expired_sessions(now).await?;
        if expired.is_empty() {
            return Ok(records.next_expiry().await?);
        }
        for (principal, id) in expired {
            if records.expire_session(&principal, id, now).await? {
                stores.sessions().stop(id).await?;
                stores.sessions().delete_log(id).await?;
            }
        }
    }
}

/// Several times within a TTL, so that running sessions are extended in time.
fn check_interval(stores: &Stores) -> Duration {
    CHECK_INTERVAL.min(stores.policy.session_ttl / 4).max(CHECK_INTERVAL_MIN)
}

fn until(at: Timestamp) -> Duration {
    at.duration_since(Timestamp::now()).try_into().unwrap_or(Duration::ZERO)
}
