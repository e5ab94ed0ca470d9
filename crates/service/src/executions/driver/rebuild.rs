//! The start of a run in a session whose head this engine can't load: the state is rebuilt by repeating the turns, and stored.

use super::{Driver, Start};
use crate::executions::rebuilt_session::{is_of_another_engine, unprepared};
use crate::executions::{Lineage, Rebuilt, RebuiltLive, Replayer};
use crate::sessions::PreparedSession;
use heapstead_engine::Slot;
use heapstead_store::records::RunSession;
use heapstead_types::{Failure, HeapKey, SessionId};
use std::collections::HashMap;

impl Driver {
    /// `failure` says why the head can't be loaded, and is the result if there is nothing to rebuild it from.
    pub(super) async fn rebuild(&self, slot: &Slot, head: HeapKey, failure: Failure, warnings: &mut Vec<String>) -> Result<Start, Failure> {
        let Some(session) = self.run_session.as_ref().and_then(RunSession::opened) else { return Err(failure) };
        let replayer = self.replayer(slot);
        let lineage = self.lineage(&replayer, head, &failure, warnings).await?;
        let runs = lineage.runs() as u64;
        let rebuilt = replayer.rebuild(lineage).await.map_err(unprepared)?;
        self.service.runtime.live.meter.replayed(runs);
        let heap = rebuilt.heap.clone();
        if rebuilt.diverged.is_none() && !is_of_another_engine(&failure) {
            return Ok(Start { heap, input_heap: Some(head), ..Start::default() }.resumed());
        }
        let prepared = self.keep_rebuilt(&replayer, session, rebuilt, warnings).await?;
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
        // An import may have had more memory than this run has.
        let (heap_mb, wanted_mb) = (lineage.heap_mb.clamp(self.request.limits.heap_mb, self.slot_mb()), self.request.limits.heap_mb);
        let rebuilt = replayer.rebuild_live(lineage, heap_mb).await.map_err(unprepared)?;
        let is_logical = self.run_session.as_ref().and_then(RunSession::logical).is_some();
        if rebuilt.diverged.is_some() && is_logical {
            // Its symbols may have been imported since. The preparation of the session imports them again.
            return Err(Failure::StateLost);
        }
        self.service.runtime.live.meter.replayed(runs);
        if rebuilt.diverged.is_none() && !is_of_another_engine(&failure) && heap_mb == wanted_mb {
            return Ok(self.live_with(session, Some(head), rebuilt.repeated, rebuilt.worker).resumed());
        }
        let heap = rebuilt.heap().await;
        let RebuiltLive { worker, repeated, state, verified, diverged, .. } = rebuilt;
        let continuity = replayer.continuity(session, diverged, self.request.on_stale, warnings).await?;
        let worker = match heap_mb == wanted_mb {
            true => worker,
            false => self.service.runtime.engine.open_live(&self.holder, heap.clone()?.as_ref(), wanted_mb).await?,
        };
        let stored = match heap {
            Ok(heap) => replayer.keep_verified(session, heap, verified).await.map_err(|error| error.to_string()),
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
        replayer.settle(session, key, &continuity).await?;
        self.service.runtime.live.meter.continued(&continuity);
        let start = self.live_with(session, key, unstored, worker);
        Ok(Start { prepared: Some(PreparedSession::without_symbols(key, continuity)), ..start })
    }

    async fn keep_rebuilt(
        &self,
        replayer: &Replayer<'_>,
        session: SessionId,
        rebuilt: Rebuilt,
        warnings: &mut Vec<String>,
    ) -> Result<PreparedSession, Failure> {
        let (key, continuity) = replayer.keep_in_session(session, rebuilt, self.request.on_stale, warnings).await?;
        self.service.runtime.live.meter.continued(&continuity);
        Ok(PreparedSession::without_symbols(key, continuity))
    }

    fn replayer<'a>(&'a self, slot: &'a Slot) -> Replayer<'a> {
        Replayer {
            stores: &self.service.stores,
            engine: &self.service.runtime.engine,
            principal: &self.running.principal,
            holder: self.holder.clone(),
            slot: Some((slot, self.slot_mb())),
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
}
