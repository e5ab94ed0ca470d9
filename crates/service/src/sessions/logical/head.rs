//! The head of a logical session, loaded for its preparation: as it is stored, otherwise rebuilt by repeating the turns and imports that led to it.

use super::continuity::{Continuity, Reason};
use super::preparation::{Preparation, PrepareError, Rebuilding};
use crate::ServiceError;
use crate::executions::rebuilt_session::is_of_another_engine;
use crate::executions::{KnownState, Rebuilt, Replayer};
use crate::heaps::HeapCache;
use heapstead_catalog::Symbols;
use heapstead_engine::HeapImage;
use heapstead_types::{Failure, HeapKey};
use std::time::Instant;

/// What the next run, or an import, starts from.
#[derive(Default)]
pub(super) struct SessionHead {
    /// None for a fresh one, and if it is not needed.
    pub heap: Option<HeapImage>,
    /// The heap or state, as the session or the journal names it.
    pub key: Option<HeapKey>,
    /// It is from before an import, so that entities may be missing in it. It is not the head of the session until they are imported.
    pub is_behind: bool,
    /// Its heap is not stored.
    pub is_in_memory_only: bool,
    /// The first turn that is lost or undone with it.
    pub undone_from: Option<u64>,
    pub continuity: Continuity,
    pub warnings: Vec<String>,
}

impl SessionHead {
    pub fn not_loaded(key: Option<HeapKey>) -> Self {
        Self { key, ..Self::default() }
    }

    pub fn loaded(key: HeapKey, heap: HeapImage) -> Self {
        Self { heap: Some(heap), key: Some(key), ..Self::default() }
    }

    /// A state from before an import, which may not be stored.
    pub fn behind(state: Option<KnownState>, undone_from: u64) -> Self {
        let (key, heap) = state.map(|state| (state.recorded, state.image)).unzip();
        Self { heap, key, is_behind: true, is_in_memory_only: true, undone_from: Some(undone_from), ..Self::default() }
    }

    /// Another heap than the head: one that the caller chose, or a fresh one.
    pub fn instead(heap: Option<HeapImage>) -> Self {
        Self { key: heap.as_ref().map(HeapImage::key), heap, ..Self::default() }
    }
}

impl Preparation<'_> {
    /// The inner error says why it is lost.
    pub(super) async fn load_head(
        &self,
        key: HeapKey,
        symbols: &Symbols,
        rebuilding: Rebuilding,
    ) -> Result<Result<SessionHead, Reason>, PrepareError> {
        let restored = match self.stored(key).await {
            Ok(stored) => self.heaps().restore(stored).await,
            // It can't be repeated to its end.
            Err(ServiceError::Conflict { .. }) => Err(Failure::StateLost),
            Err(error) => return Err(error.into()),
        };
        match restored {
            Ok(heap) => Ok(Ok(SessionHead::loaded(key, heap))),
            Err(failure @ (Failure::HeapOfAnotherEngine { .. } | Failure::StateLost)) => {
                self.rebuild_head(key, failure, symbols, rebuilding).await
            }
            Err(failure) => Reason::of(&failure).map(Err).ok_or(failure.into()),
        }
    }

    async fn rebuild_head(
        &self,
        key: HeapKey,
        failure: Failure,
        symbols: &Symbols,
        rebuilding: Rebuilding,
    ) -> Result<Result<SessionHead, Reason>, PrepareError> {
        let (stores, engine) = (&self.service.stores, &self.service.runtime.engine);
        let replayer = Replayer::in_slot(stores, engine, self.principal, self.holder.clone(), self.slot).await;
        let lineage = match replayer.lineage(key).await? {
            Ok(lineage) => lineage,
            Err(why) => {
                let failure = why.failure.filter(is_of_another_engine).unwrap_or(failure);
                return Reason::of(&failure).map(Err).ok_or(failure.into());
            }
        };
        if rebuilding == Rebuilding::Later {
            return Ok(Ok(SessionHead::not_loaded(Some(key))));
        }
        let runs = lineage.runs() as u64;
        let rebuilt = replayer.rebuild(lineage).await?;
        self.service.runtime.live.meter.replayed(runs);
        let (session, mut warnings) = (self.logical.session, Vec::new());
        match rebuilt {
            // The entities that were imported since are imported again. What that gives is the head, and not this.
            Rebuilt { diverged: Some(diverged), heap, state, .. } if !symbols.entities().is_empty() => {
                let continuity = replayer.diverged(session, diverged, self.on_stale, &mut warnings).await?;
                self.service.runtime.live.meter.continued(&continuity);
                let undone_from = continuity.turn;
                Ok(Ok(SessionHead { heap, key: state, is_behind: true, is_in_memory_only: true, undone_from, continuity, warnings }))
            }
            rebuilt => {
                let heap = rebuilt.heap.clone();
                let (key, continuity) = replayer.keep_in_session(session, rebuilt, self.on_stale, &mut warnings).await?;
                self.service.runtime.live.meter.continued(&continuity);
                Ok(Ok(SessionHead { heap, key, continuity, warnings, ..SessionHead::default() }))
            }
        }
    }

    /// The stored heap behind a heap or state.
    pub(super) async fn stored(&self, key: HeapKey) -> Result<HeapKey, ServiceError> {
        self.service.materialize(self.principal, &self.holder, self.slot, key).await
    }

    pub(super) fn heaps(&self) -> HeapCache {
        let time_max = HeapCache::time_max(&self.service.policy().limits);
        self.service.runtime.heaps.for_owner(self.principal).until(Instant::now() + time_max)
    }
}
