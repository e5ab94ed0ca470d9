//! What becomes of a session whose state was rebuilt: the state is its head from now on, and turns that could not be repeated are lost.

use super::lineage::{Divergence, Rebuilt};
use super::replay::Replayer;
use crate::ServiceError;
use crate::sessions::{Continuity, OnStale, Reason};
use heapstead_engine::HeapImage;
use heapstead_types::{ExecutionId, Failure, HeapKey, SessionId};

impl Replayer<'_> {
    /// Stores a rebuilt state as the head, so that it is rebuilt only once, and says what became of the session.
    pub async fn keep_in_session(
        &self,
        session: SessionId,
        rebuilt: Rebuilt,
        on_stale: OnStale,
        warnings: &mut Vec<String>,
    ) -> Result<(Option<HeapKey>, Continuity), Failure> {
        let continuity = self.continuity(session, rebuilt.diverged, on_stale, warnings).await?;
        let key = self.keep_verified(session, rebuilt.heap, rebuilt.verified).await.map_err(unprepared)?;
        self.settle(session, key, &continuity).await?;
        Ok((key, continuity))
    }

    /// What became of the session, for its next caller.
    pub async fn continuity(
        &self,
        session: SessionId,
        diverged: Option<Divergence>,
        on_stale: OnStale,
        warnings: &mut Vec<String>,
    ) -> Result<Continuity, Failure> {
        match diverged {
            None => Ok(Continuity::RESUMED),
            Some(diverged) => self.diverged(session, diverged, on_stale, warnings).await,
        }
    }

    /// Stores a rebuilt state as the head.
    pub async fn keep_verified(
        &self,
        session: SessionId,
        heap: Option<HeapImage>,
        verified: Option<ExecutionId>,
    ) -> Result<Option<HeapKey>, ServiceError> {
        match (heap, verified) {
            (Some(heap), Some(execution)) => self.keep(execution, heap, Some(session)).await.map(Some),
            (heap, _) => Ok(heap.as_ref().map(HeapImage::key)),
        }
    }

    /// The log keeps the turns that are lost, as if they had been undone.
    pub async fn settle(&self, session: SessionId, key: Option<HeapKey>, continuity: &Continuity) -> Result<(), Failure> {
        let Some(turn) = continuity.turn else { return Ok(()) };
        let lost = self.stores.records.undo_turns(session, turn, key).await;
        lost.map(drop).map_err(|error| Failure::Store(error.to_string()))
    }

    /// The session continues from the state before the divergence, unless the caller wants to be refused then.
    pub async fn diverged(
        &self,
        session: SessionId,
        diverged: Divergence,
        on_stale: OnStale,
        warnings: &mut Vec<String>,
    ) -> Result<Continuity, Failure> {
        let turn = self.first_turn(session, &diverged).await?;
        let what = match turn {
            Some(turn) if diverged.is_import => format!("{}, before turn {turn}", diverged.what()),
            Some(turn) => format!("turn {turn}, {}", diverged.what()),
            None => diverged.what(),
        };
        if on_stale == OnStale::Fail {
            return Err(Failure::Stale(format!(
                "the session's state can't be rebuilt on this engine: {what}: {}. Omit `on_stale` to continue from the state before it",
                diverged.why
            )));
        }
        warnings.push(format!("the session continues from the state before {what}, which could not be repeated: {}", diverged.why));
        if diverged.is_import && turn.is_none() {
            // Nothing has run since, and what was imported is imported again.
            return Ok(Continuity::RESUMED);
        }
        Ok(Continuity { stale_binding_recovered: true, reason: Some(Reason::ReplayDiverged), turn, ..Continuity::default() })
    }

    /// The first turn of the session that is lost. Imports are no turns, nor are runs before a fork.
    async fn first_turn(&self, session: SessionId, diverged: &Divergence) -> Result<Option<u64>, Failure> {
        for execution in std::iter::once(&diverged.execution).chain(&diverged.after) {
            let turn = self.stores.records.turn_of(session, execution).await;
            if let Some(turn) = turn.map_err(|error| Failure::Store(error.to_string()))? {
                return Ok(Some(turn));
            }
        }
        Ok(None)
    }
}

pub fn unprepared(error: ServiceError) -> Failure {
    Failure::Unprepared(error.to_string())
}

pub fn is_of_another_engine(failure: &Failure) -> bool {
    matches!(failure, Failure::HeapOfAnotherEngine { .. })
}
