//! Executions and turns of servers that died, and retention: ended executions, sessions and output are deleted when their time is over.

use crate::error::blocking;
use crate::{ServiceError, Stores};
use heapstead_store::records::{ExecutionEnd, TurnId};
use heapstead_types::{ErrorCode, ExecutionId, Status};
use jiff::Timestamp;
use std::time::Duration;

const SWEEP_INTERVAL: Duration = Duration::from_secs(600);
/// Output without a record, left by a crash, is deleted this long after its retention.
const STRAY_OUTPUT_AGE: Duration = Duration::from_secs(24 * 3600);
const LOST: &str = "server restarted";

pub fn start_sweeping(stores: &Stores) {
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

/// Ends the executions and releases the turns of all servers that died.
pub async fn fail_all(stores: &Stores) -> Result<(), ServiceError> {
    for (id, server) in stores.records.running_executions().await? {
        if !stores.peers.is_alive(&server) {
            fail(stores, &id).await?;
        }
    }
    for (id, server) in stores.records.turns_without_execution().await? {
        if !stores.peers.is_alive(&server) {
            stores.records.release_turn(&id).await?;
        }
    }
    Ok(())
}

/// Ends an execution of a server that died. Idempotent: another server may have done it.
pub async fn fail(stores: &Stores, id: &ExecutionId) -> Result<(), ServiceError> {
    let (outputs, lost) = (stores.outputs.clone(), id.clone());
    let output = blocking(move || Ok(outputs.recover(&lost)?)).await?;
    let end = ExecutionEnd {
        error: Some(LOST.to_owned()),
        error_code: Some(ErrorCode::ServerLost),
        output,
        ..ExecutionEnd::bare(Status::Failed)
    };
    stores.records.end_execution(id.clone(), end).await?;
    Ok(())
}

/// Removes a turn of a server that died, and ends its execution if it has one.
pub async fn remove_turn(stores: &Stores, turn: &TurnId) -> Result<(), ServiceError> {
    if let Some(id) = turn.execution() {
        fail(stores, &id).await?;
    }
    Ok(stores.records.release_turn(turn).await?)
}

async fn sweep(stores: &Stores) -> Result<(), ServiceError> {
    fail_all(stores).await?;
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
