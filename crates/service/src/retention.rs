//! Retention: every ten minutes, ended executions with their output, ended sessions and unused heaps whose retention is over are deleted.

use crate::error::blocking;
use crate::executions::orphans;
use crate::{ServiceError, Stores};
use jiff::Timestamp;
use std::time::Duration;

const SWEEP_INTERVAL: Duration = Duration::from_secs(600);
/// Output without a record, left by a crash, is deleted this long after its retention.
const STRAY_OUTPUT_AGE: Duration = Duration::from_secs(24 * 3600);

pub fn start(stores: &Stores) {
    let weak = stores.downgrade();
    tokio::spawn(async move {
        while let Some(stores) = weak.upgrade() {
            if let Err(error) = sweep(&stores).await {
                tracing::warn!(%error, "old executions and heaps could not be removed");
            }
            drop(stores);
            tokio::time::sleep(SWEEP_INTERVAL).await;
        }
    });
}

async fn sweep(stores: &Stores) -> Result<(), ServiceError> {
    orphans::fail_all(stores).await?;
    stores.peers.remove_dead();
    let retained = stores.policy.retain_executions;
    let before = Timestamp::now() - jiff::SignedDuration::try_from(retained).unwrap_or(jiff::SignedDuration::MAX);
    loop {
        let deleted = stores.records.delete_executions(before).await?;
        if deleted.is_empty() {
            break;
        }
        let outputs = stores.outputs.clone();
        blocking(move || {
            deleted.iter().for_each(|id| outputs.remove(id));
            Ok(())
        })
        .await?;
    }
    stores.records.delete_sessions(before).await?;
    let outputs = stores.outputs.clone();
    let strays = tokio::task::spawn_blocking(move || outputs.remove_older_than(retained + STRAY_OUTPUT_AGE)).await;
    if let Ok(Err(error)) = strays {
        tracing::warn!(%error, "old output could not be removed");
    }
    stores.heaps().collect_all().await?;
    let heaps = stores.heaps.clone();
    blocking(move || Ok(heaps.tidy()?)).await
}
