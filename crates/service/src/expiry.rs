//! Sessions that nobody uses come to their end when their time is over.

use crate::{Archive, ServiceError};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// Another process may have opened a session that ends before all that are known here.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(100);

pub fn start(archive: &Archive) {
    let weak = Arc::downgrade(&archive.0);
    tokio::spawn(async move {
        while let Some(kept) = weak.upgrade() {
            let news = kept.expiries.clone();
            let archive = Archive(kept);
            let look = look_interval(&archive);
            let next = match expire(&archive).await {
                Ok(next) => next.map_or(look, |at| until(at).min(look)),
                Err(error) => {
                    tracing::warn!(%error, "sessions that have expired could not be ended");
                    look
                }
            };
            drop(archive);
            let _ = tokio::time::timeout(next, news.notified()).await;
        }
    });
}

/// Ends what has expired, and says when the next one does.
async fn expire(archive: &Archive) -> Result<Option<Timestamp>, ServiceError> {
    let metadata = &archive.0.metadata;
    loop {
        let now = Timestamp::now();
        // A task whose code runs is in use, however long that takes.
        let soon = now.saturating_add(archive.session_ttl() / 2).unwrap_or(Timestamp::MAX);
        metadata.keep_running(soon, archive.kept_until(now)).await?;
        for id in metadata.expire_executes(now).await? {
            archive.stop_session(id).await?;
        }
        let expired = metadata.expired_sessions(now).await?;
        if expired.is_empty() {
            return Ok(metadata.next_expiry().await?);
        }
        for (principal, id) in expired {
            if metadata.expire_session(&principal, id, now).await? {
                archive.stop_session(id).await?;
            }
        }
    }
}

/// What runs is seen several times before its session would expire.
fn look_interval(archive: &Archive) -> Duration {
    LOOK_INTERVAL.min(archive.0.policy.session_ttl / 4).max(LOOK_INTERVAL_MIN)
}

fn until(at: Timestamp) -> Duration {
    at.duration_since(Timestamp::now()).try_into().unwrap_or(Duration::ZERO)
}
