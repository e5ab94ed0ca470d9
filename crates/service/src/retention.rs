//! Retention: every ten minutes, everything whose retention is over is deleted, in batches, so that no transaction is long. `docs/retention.md`
//! lists what ends the life of each table and file.

use crate::error::blocking;
use crate::executions::orphans;
use crate::{ServiceError, Stores};
use heapstead_store::HeapStoreError;
use heapstead_types::HeapKey;
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

const SWEEP_INTERVAL: Duration = Duration::from_secs(600);
/// Output without a record, left by a crash, is deleted this long after its retention.
const STRAY_OUTPUT_AGE: Duration = Duration::from_secs(24 * 3600);

pub fn start(stores: &Stores) {
    let weak = stores.downgrade();
    tokio::spawn(async move {
        while let Some(stores) = weak.upgrade() {
            if let Err(error) = sweep(&stores).await {
                tracing::warn!(%error, "not everything whose retention is over could be removed");
            }
            drop(stores);
            tokio::time::sleep(SWEEP_INTERVAL).await;
        }
    });
}

async fn sweep(stores: &Stores) -> Result<(), ServiceError> {
    orphans::fail_all(stores).await?;
    stores.peers.remove_dead();
    delete_executions(stores, before(stores.policy.retain_executions)).await?;
    delete_sessions(stores).await?;
    delete_stray_tags(stores, before(stores.policy.retain_heaps)).await?;
    stores.heaps().collect_all().await?;
    stores.records.delete_unused_owners().await?;
    let heaps = stores.heaps.clone();
    blocking(move || Ok(heaps.tidy()?)).await
}

/// The time before which nothing of this retention is kept.
fn before(retained: Duration) -> Timestamp {
    let retained = SignedDuration::try_from(retained).unwrap_or(SignedDuration::MAX);
    Timestamp::now().checked_sub(retained).unwrap_or(Timestamp::MIN)
}

async fn delete_executions(stores: &Stores, before: Timestamp) -> Result<(), ServiceError> {
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
    let (outputs, age) = (stores.outputs.clone(), stores.policy.retain_executions.saturating_add(STRAY_OUTPUT_AGE));
    let strays = tokio::task::spawn_blocking(move || outputs.remove_older_than(age)).await;
    if let Ok(Err(error)) = strays {
        tracing::warn!(%error, "old output could not be removed");
    }
    Ok(())
}

/// Ended sessions are remembered as long as executions, which may name them.
async fn delete_sessions(stores: &Stores) -> Result<(), ServiceError> {
    stores.sessions().end_unused(before(stores.policy.retain_sessions)).await?;
    let ended_before = before(stores.policy.retain_executions);
    while stores.records.delete_execute_sessions(ended_before).await? {}
    while stores.records.delete_sessions(ended_before).await? {}
    Ok(())
}

/// Tags that were set on heaps that their owner does not have, and that are not in the store either: a heap without an owner, for example of
/// another server on the same store, may be tagged.
async fn delete_stray_tags(stores: &Stores, set_before: Timestamp) -> Result<(), ServiceError> {
    let found = stores.records.stray_tags(set_before).await?;
    let heaps = stores.heaps.clone();
    let gone = blocking(move || {
        let is_gone = |key: &HeapKey| matches!(heaps.glance(key), Err(HeapStoreError::NotFound { .. }));
        Ok(found.into_iter().filter(|(_, key)| is_gone(key)).collect::<Vec<_>>())
    })
    .await?;
    if !gone.is_empty() {
        stores.records.delete_stray_tags(gone, set_before).await?;
    }
    Ok(())
}
