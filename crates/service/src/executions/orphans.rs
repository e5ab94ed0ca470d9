//! Executions, turns and heaps of servers that died. The executions become `failed` with the code `server_lost`, their turns are released, and
//! heaps that they were storing or removing are removed: when a
//! server starts, every ten minutes, when an execution is looked up, and when a run waits for the turn.

use crate::error::blocking;
use crate::heaps::{removal, reservation};
use crate::{ServiceError, Stores};
use heapstead_store::records::{ExecutionEnd, TurnId};
use heapstead_types::{ErrorCode, ExecutionId, Status};

const LOST: &str = "server restarted";

/// Ends the executions, and releases the turns and reservations, of all servers that died.
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
    reservation::release_orphans(stores).await?;
    removal::retry_all(stores).await
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
