//! Rebuilds a heap that was written by another engine, by repeating the runs that led to it, and stores the result.

use super::Heaps;
use crate::executions::{Rebuilt, Replayer};
use crate::{Caller, Service, ServiceError};
use heapstead_engine::Engine;
use heapstead_types::{ErrorCode, Failure, HeapKey};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UpgradedHeap {
    /// The heap that was asked for.
    pub heap: String,
    /// The same state, as this engine loads it: another heap, or the same if this engine can load it anyway.
    pub upgraded: String,
    /// How many runs were repeated.
    pub runs: usize,
    pub engine: String,
}

impl Service {
    /// See [`Heaps::upgrade`].
    pub async fn upgrade_heap(&self, caller: &Caller, key: HeapKey) -> Result<UpgradedHeap, ServiceError> {
        self.refuse_while_closing()?;
        self.heaps().upgrade(&self.runtime.engine, caller, key).await
    }
}

impl Heaps<'_> {
    /// Nothing is stored if a run does something else than before.
    pub async fn upgrade(&self, engine: &Engine, caller: &Caller, key: HeapKey) -> Result<UpgradedHeap, ServiceError> {
        self.show(caller, key).await?;
        let upgraded = |to: HeapKey, runs| UpgradedHeap {
            heap: key.to_string(),
            upgraded: to.to_string(),
            runs,
            engine: engine.info().id.to_string(),
        };
        let replayer = Replayer::new(self.0, engine, &caller.principal, caller.budget_holder()).await;
        let failure = match replayer.restore(key, self.0.policy.limits.heap_mb).await {
            Ok(_) => return Ok(upgraded(key, 0)),
            Err(failure @ Failure::HeapOfAnotherEngine { .. }) => failure,
            Err(failure) => return Err(ServiceError::conflict(failure.code(), failure.to_string())),
        };
        let refused = |code, why: String| ServiceError::conflict(code, format!("{failure}, and it can't be rebuilt: {why}"));
        let lineage = replayer.lineage(key).await?.map_err(|why| refused(ErrorCode::NotRecorded, why.to_string()))?;
        let runs = lineage.runs();
        match replayer.rebuild(lineage).await? {
            Rebuilt { diverged: Some(diverged), .. } => {
                Err(refused(ErrorCode::ReplayDiverged, format!("{}: {}", diverged.what(), diverged.why)))
            }
            Rebuilt { heap: Some(heap), verified: Some(execution), .. } => Ok(upgraded(replayer.keep(execution, heap, None).await?, runs)),
            Rebuilt { .. } => Err(refused(ErrorCode::NotRecorded, "no run led to it".to_owned())),
        }
    }
}
