//! Keeping house: runs of processes that died have failed, and what is past its time is removed.

use crate::executions::blocking;
use crate::{Archive, ServiceError};
use heapstead_store::metadata::ExecutionEnd;
use heapstead_types::{ExecutionId, Status};
use jiff::Timestamp;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(600);
/// What is left of an execution that a crash kept from being recorded.
const STRAY_OUTPUT_AGE: Duration = Duration::from_secs(24 * 3600);

pub const LOST: &str = "server restarted";

pub fn start(archive: &Archive) {
    let weak = std::sync::Arc::downgrade(&archive.0);
    tokio::spawn(async move {
        while let Some(parts) = weak.upgrade() {
            if let Err(error) = sweep(&Archive(parts)).await {
                tracing::warn!(%error, "old executions and heaps could not be removed");
            }
            tokio::time::sleep(INTERVAL).await;
        }
    });
}

/// Ends what runs in processes that are gone.
pub async fn fail_orphans(archive: &Archive) -> Result<(), ServiceError> {
    for id in archive.0.metadata.orphans().await? {
        fail_orphan(archive, &id).await?;
    }
    Ok(())
}

pub async fn fail_orphan(archive: &Archive, id: &ExecutionId) -> Result<(), ServiceError> {
    let (outputs, lost) = (archive.0.outputs.clone(), id.clone());
    let output = blocking(move || Ok(outputs.recover(&lost)?)).await?;
    let end = ExecutionEnd { error: Some(LOST.to_owned()), output, ..ExecutionEnd::bare(Status::Failed) };
    // Another process may have done it meanwhile; either way it has ended.
    archive.0.metadata.end_execution(id.clone(), end).await?;
    Ok(())
}

async fn sweep(archive: &Archive) -> Result<(), ServiceError> {
    fail_orphans(archive).await?;
    archive.0.metadata.forget_dead_processes();
    let retained = archive.0.policy.retain_executions;
    let before = Timestamp::now() - jiff::SignedDuration::try_from(retained).unwrap_or(jiff::SignedDuration::MAX);
    loop {
        let forgotten = archive.0.metadata.forget_executions(before).await?;
        if forgotten.is_empty() {
            break;
        }
        let outputs = archive.0.outputs.clone();
        blocking(move || {
            forgotten.iter().for_each(|id| outputs.remove(id));
            Ok(())
        })
        .await?;
    }
    archive.0.metadata.forget_sessions(before).await?;
    let outputs = archive.0.outputs.clone();
    let strays = tokio::task::spawn_blocking(move || outputs.remove_older_than(retained + STRAY_OUTPUT_AGE)).await;
    if let Ok(Err(error)) = strays {
        tracing::warn!(%error, "old output could not be removed");
    }
    archive.collect_own_heaps().await?;
    let heaps = archive.0.heaps.clone();
    blocking(move || Ok(heaps.tidy()?)).await
}
