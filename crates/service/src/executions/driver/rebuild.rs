//! The start of a run in a session whose head this engine can't load: the state is rebuilt by repeating the turns, and stored.

use super::{Driver, Start};
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
        self.service.runtime.live.meter.replayed(runs, diverged.is_some());
        if diverged.is_none() && !is_of_another_engine(&failure) {
            return Ok(Start { heap, input_heap: Some(head), ..Start::default() }.resumed());
        }
        let prepared = self.keep_rebuilt(&replayer, session, heap.clone(), verified, diverged, warnings).await?;
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
        self.service.runtime.live.meter.replayed(runs, rebuilt.diverged.is_some());
        if rebuilt.diverged.is_none() && !is_of_another_engine(&failure) {
            return Ok(self.live_with(session, Some(head), rebuilt.repeated, rebuilt.worker).resumed());
        }
        let heap = rebuilt.heap().await?;
        let RebuiltLive { worker, verified, diverged, .. } = rebuilt;
        let prepared = self.keep_rebuilt(&replayer, session, heap, verified, diverged, warnings).await?;
        let start = self.live_with(session, prepared.key, HashMap::new(), worker);
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

    /// Stores a rebuilt state as the head, so that it is rebuilt only once, and says what became of the session.
    async fn keep_rebuilt(
        &self,
        replayer: &Replayer<'_>,
        session: SessionId,
        heap: Option<HeapImage>,
        verified: Option<ExecutionId>,
        diverged: Option<Divergence>,
        warnings: &mut Vec<String>,
    ) -> Result<PreparedSession, Failure> {
        let continuity = match diverged {
            None => Continuity::RESUMED,
            Some(diverged) => self.diverged(session, diverged, warnings).await?,
        };
        let key = match (heap, verified) {
            (Some(heap), Some(execution)) => Some(replayer.keep(execution, heap, Some(session)).await.map_err(unprepared)?),
            (heap, _) => heap.as_ref().map(HeapImage::key),
        };
        if let Some(turn) = continuity.turn {
            // The log keeps the turns that are lost, as if they had been undone.
            let lost = self.service.stores.records.undo_turns(session, turn, key).await;
            lost.map_err(|error| Failure::Store(error.to_string()))?;
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
            return Err(Failure::Unprepared(format!(
                "the session's state can't be rebuilt on this engine: {what}: {}. Omit `on_stale` to continue from the state before it",
                diverged.why
            )));
        }
        warnings.push(format!("the session continues from the state before {what}, which could not be repeated: {}", diverged.why));
        Ok(Continuity { stale_binding_recovered: true, reason: Some(Reason::ReplayDiverged), turn, ..Continuity::default() })
    }
}

fn is_of_another_engine(failure: &Failure) -> bool {
    matches!(failure, Failure::HeapOfAnotherEngine { .. })
}

fn unprepared(error: crate::ServiceError) -> Failure {
    Failure::Unprepared(error.to_string())
}
