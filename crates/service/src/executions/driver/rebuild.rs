//! The start of a run in a session whose head this engine can't load: the state is rebuilt by repeating the turns, and stored.

use super::{Driver, Start};
use crate::executions::start_point::{InputHeap, StartPoint};
use crate::executions::{Divergence, Rebuilt, Replayer};
use crate::sessions::{Continuity, OnStale, PreparedSession, Reason, SessionNotice};
use heapstead_engine::{HeapImage, Slot};
use heapstead_store::records::RunSession;
use heapstead_types::{Failure, SessionId};

impl Driver {
    /// `failure` says why the head can't be loaded, and is the result if there is nothing to rebuild it from.
    pub(super) async fn rebuild(
        &self,
        slot: &Slot,
        input: InputHeap,
        failure: Failure,
        warnings: &mut Vec<String>,
    ) -> Result<Start, Failure> {
        let session = self.run_session.as_ref().and_then(RunSession::opened);
        let (StartPoint::Head { .. }, Some(session), Some(head)) = (self.request.start, session, input.key()) else { return Err(failure) };
        let replayer = Replayer {
            stores: &self.service.stores,
            engine: &self.service.runtime.engine,
            principal: &self.running.principal,
            holder: self.holder.clone(),
            slot: Some((slot, self.request.limits.heap_mb)),
            _permit: None,
        };
        let lineage = match replayer.lineage(head).await.map_err(unprepared)? {
            Ok(lineage) => lineage,
            Err(why) => {
                warnings.push(format!("the session's state can't be rebuilt: {why}"));
                return Err(failure);
            }
        };
        let Rebuilt { heap, verified, diverged } = replayer.rebuild(lineage).await.map_err(unprepared)?;
        if diverged.is_none() && !matches!(failure, Failure::HeapOfAnotherEngine { .. }) {
            // The turns since the newest checkpoint: nothing that a caller has to know.
            return Ok(Start { heap, live: None, input_heap: Some(head), prepared: None });
        }
        let continuity = match diverged {
            None => Continuity { resumed_from_snapshot: true, ..Continuity::default() },
            Some(diverged) => self.diverged(session, diverged, warnings).await?,
        };
        let key = match (&heap, verified) {
            // Stored as the head, so that it is rebuilt only once.
            (Some(heap), Some(execution)) => Some(replayer.keep(execution, heap.clone(), Some(session)).await.map_err(unprepared)?),
            (heap, _) => heap.as_ref().map(HeapImage::key),
        };
        let notice = SessionNotice { continuity, execute_binding: None, wave: None };
        let prepared = PreparedSession { heap: None, key, binding: None, notice, warnings: Vec::new(), reservation: None };
        Ok(Start { heap, live: None, input_heap: key, prepared: Some(prepared) })
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

fn unprepared(error: crate::ServiceError) -> Failure {
    Failure::Unprepared(error.to_string())
}
