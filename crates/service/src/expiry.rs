//! Sessions that nobody uses come to their end when their time is over.

use crate::{Archive, ServiceError};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// Another process may have opened a session that ends before all that are known here.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);

pub fn start(archive: &Archive) {
    let weak = Arc::downgrade(&archive.0);
    tokio::spawn(async move {
        while let Some(kept) = weak.upgrade() {
            let news = kept.expiries.clone();
            let next = match expire(&Archive(kept)).await {
                Ok(next) => next.map_or(LOOK_INTERVAL, |at| until(at).min(LOOK_INTERVAL)),
                Err(error) => {
                    tracing::warn!(%error, "sessions that have expired could not be ended");
                    LOOK_INTERVAL
                }
            };
            let _ = tokio::time::timeout(next, news.notified()).await;
        }
    });
}

/// Ends what has expired, and says when the next one does.
async fn expire(archive: &Archive) -> Result<Option<Timestamp>, ServiceError> {
    let metadata = &archive.0.metadata;
    loop {
        let now = Timestamp::now();
        metadata.expire_executes(now).await?;
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

fn until(at: Timestamp) -> Duration {
    at.duration_since(Timestamp::now()).try_into().unwrap_or(Duration::ZERO)
}
