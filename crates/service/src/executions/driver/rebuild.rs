//! The start of a run in a session whose head this engine can't load: the state is rebuilt by repeating the turns, and stored.

use super::{Driver, Start};
use crate::ServiceError;
use crate::executions::{Divergence, Lineage, Rebuilt, RebuiltLive, Replayer};
use crate::sessions::{Continuity, OnStale, PreparedSession, Reason};
use heapstead_engine::{HeapImage, Slot};
use heapstead_store::records::RunSession;
use heapstead_types::{ExecutionId, Failure, HeapKey, SessionId};
use std::collections::HashMap;

impl Driver {
    /// `failure` says why the head can't be loaded, and is the result if there is nothing to rebuild it from.
    pub(super) async fn rebuild(&self, slot: &Slot, head: HeapKey, failure: Failure, warnings: &mut Vec<String>) -> Result<Start, Failure> {
        let Some(session) = self.run_session.as_ref().and_then(RunSession::opened) else { return Err(failure) };
        let replayer = self.replayer(slot);
        let lineage = self.lineage(&replayer, head, &failure, warnings).await?;
        let runs = lineage.runs() as u64;
        let Rebuilt { heap, verified, diverged } = replayer.rebuild(lineage).await.map_err(unprepared)?;
        self.service.runtime.live.meter.replayed(runs);
        if diverged.is_none() && !is_of_another_engine(&failure) {
            return Ok(Start { heap, input_heap: Some(head), ..Start::default() }.resumed());
        }
        let continuity = self.continuity(session, diverged, warnings).await?;
        let key = keep_rebuilt(&replayer, session, heap.clone(), verified).await.map_err(unprepared)?;
        let prepared = self.settle_rebuilt(session, key, continuity).await?;
        Ok(Start { heap, input_heap: prepared.key, prepared: Some(prepared), ..Start::default() })
    }

    /// As `rebuild`, in the memory of a live worker.
    pub(super) async fn rebuild_live(
        &self,
        slot: &Slot,
        session: SessionId,
        head: HeapKey,
        failure: Failure,
        warnings: &mut Vec<String>,
    ) -> Result<Start, Failure> {
        let replayer = self.replayer(slot);
        let lineage = self.lineage(&replayer, head, &failure, warnings).await?;
        let runs = lineage.runs() as u64;
        let rebuilt = replayer.rebuild_live(lineage, self.request.limits.heap_mb).await.map_err(unprepared)?;
        self.service.runtime.live.meter.replayed(runs);
        if rebuilt.diverged.is_none() && !is_of_another_engine(&failure) {
            return Ok(self.live_with(session, Some(head), rebuilt.repeated, rebuilt.worker).resumed());
        }
        let heap = rebuilt.heap().await;
        let RebuiltLive { worker, repeated, verified, state, diverged, .. } = rebuilt;
        let continuity = self.continuity(session, diverged, warnings).await?;
        let stored = match heap {
            Ok(heap) => keep_rebuilt(&replayer, session, heap, verified).await.map_err(|error| error.to_string()),
            Err(failure) => Err(failure.to_string()),
        };
        let (key, unstored) = match stored {
            Ok(key) => (key, HashMap::new()),
            // As after any checkpoint that fails, the state is valid, because the journal holds the turns that lead to it.
            Err(why) => {
                warnings.push(format!("the heap of the session could not be stored: {why}; the journal holds its turns"));
                (state, repeated)
            }
        };
        let prepared = self.settle_rebuilt(session, key, continuity).await?;
        let start = self.live_with(session, prepared.key, unstored, worker);
        Ok(Start { prepared: Some(prepared), ..start })
    }

    fn replayer<'a>(&'a self, slot: &'a Slot) -> Replayer<'a> {
        Replayer {
            stores: &self.service.stores,
            engine: &self.service.runtime.engine,
            principal: &self.running.principal,
            holder: self.holder.clone(),
            slot: Some((slot, self.request.limits.heap_mb)),
            _permit: None,
        }
    }

    async fn lineage(
        &self,
        replayer: &Replayer<'_>,
        head: HeapKey,
        failure: &Failure,
        warnings: &mut Vec<String>,
    ) -> Result<Lineage, Failure> {
        replayer.lineage(head).await.map_err(unprepared)?.map_err(|why| {
            warnings.push(format!("the session's state can't be rebuilt: {why}"));
            why.failure.filter(is_of_another_engine).unwrap_or_else(|| failure.clone())
        })
    }

    /// What became of the session, for its next caller.
    async fn continuity(
        &self,
        session: SessionId,
        diverged: Option<Divergence>,
        warnings: &mut Vec<String>,
    ) -> Result<Continuity, Failure> {
        match diverged {
            None => Ok(Continuity::RESUMED),
            Some(diverged) => self.diverged(session, diverged, warnings).await,
        }
    }

    /// The session continues from a rebuilt state. The log keeps the turns that are lost, as if they had been undone.
    async fn settle_rebuilt(&self, session: SessionId, key: Option<HeapKey>, continuity: Continuity) -> Result<PreparedSession, Failure> {
        if let Some(turn) = continuity.turn {
            let lost = self.service.stores.records.undo_turns(session, turn, key).await;
            lost.map_err(|error| Failure::Store(error.to_string()))?;
        }
        if continuity.reason == Some(Reason::ReplayDiverged) {
            self.service.runtime.live.meter.diverged();
        }
        Ok(PreparedSession::without_symbols(key, continuity))
    }

    async fn diverged(&self, session: SessionId, diverged: Divergence, warnings: &mut Vec<String>) -> Result<Continuity, Failure> {
        let turn =
            self.service.stores.records.turn_of(session, &diverged.execution).await.map_err(|error| Failure::Store(error.to_string()))?;
        let what = match turn {
            Some(turn) => format!("turn {turn}, execution `{}`", diverged.execution),
            None => format!("execution `{}`", diverged.execution),
        };
        if self.request.on_stale == OnStale::Fail {
            return Err(Failure::Stale(format!(
                "the session's state can't be rebuilt on this engine: {what}: {}. Omit `on_stale` to continue from the state before it",
                diverged.why
            )));
        }
        warnings.push(format!("the session continues from the state before {what}, which could not be repeated: {}", diverged.why));
        Ok(Continuity { stale_binding_recovered: true, reason: Some(Reason::ReplayDiverged), turn, ..Continuity::default() })
    }
}

/// Stores a rebuilt state as the head, so that it is rebuilt only once.
async fn keep_rebuilt(
    replayer: &Replayer<'_>,
    session: SessionId,
    heap: Option<HeapImage>,
    verified: Option<ExecutionId>,
) -> Result<Option<HeapKey>, ServiceError> {
    match (heap, verified) {
        (Some(heap), Some(execution)) => replayer.keep(execution, heap, Some(session)).await.map(Some),
        (heap, _) => Ok(heap.as_ref().map(HeapImage::key)),
    }
}

fn is_of_another_engine(failure: &Failure) -> bool {
    matches!(failure, Failure::HeapOfAnotherEngine { .. })
}

fn unprepared(error: ServiceError) -> Failure {
    Failure::Unprepared(error.to_string())
}
