//! A state in which recorded runs are repeated, one after the other: in the memory of a live worker, because it may be one that can't be stored.
//! On a machine without live workers it is a heap.

use super::lineage::KnownState;
use super::replay::{NotRecorded, RecordedRun, Replayed, Replayer};
use crate::ServiceError;
use heapstead_engine::{HeapImage, Kind, LiveWorker};
use heapstead_types::{ErrorCode, Failure, HeapKey};

pub struct ReplayPoint {
    memory: Memory,
    /// As the journal names the state; none for a fresh heap.
    recorded: Option<HeapKey>,
}

enum Memory {
    Live {
        worker: LiveWorker,
        /// What the worker has started from.
        base: Option<HeapImage>,
    },
    Heap(Option<HeapImage>),
}

impl ReplayPoint {
    fn of_heap(state: Option<KnownState>) -> Self {
        let (recorded, heap) = state.map(|state| (state.recorded, state.image)).unzip();
        Self { memory: Memory::Heap(heap), recorded }
    }

    /// Whether it is this state, with room for a run with this cap.
    pub fn serves(&self, state: Option<HeapKey>, heap_mb: u32) -> bool {
        self.recorded == state && self.has_room(heap_mb)
    }

    fn has_room(&self, heap_mb: u32) -> bool {
        match &self.memory {
            Memory::Live { worker, .. } => worker.heap_mb() >= heap_mb,
            Memory::Heap(_) => true,
        }
    }

    /// How a run is repeated here.
    pub fn kind(&self) -> Kind {
        match &self.memory {
            Memory::Live { worker, .. } => Kind::Live(worker.clone()),
            Memory::Heap(heap) => Kind::Stateful(heap.clone()),
        }
    }

    /// The state after a run that was repeated here and did the same.
    pub async fn after(self, replayed: Replayed, recorded: HeapKey) -> Result<Self, ServiceError> {
        let memory = match (self.memory, replayed) {
            (live @ Memory::Live { .. }, Replayed { turn: Some(turn), .. }) => {
                turn.commit_replay().await.map_err(|failure| ServiceError::Unavailable(failure.to_string()))?;
                live
            }
            (Memory::Heap(_), Replayed { heap: heap @ Some(_), .. }) => Memory::Heap(heap),
            _ => return Err(ServiceError::Unavailable("a replay returned no state".into())),
        };
        Ok(Self { memory, recorded: Some(recorded) })
    }

    /// Fails if the state can't be stored.
    pub async fn heap(&self) -> Result<Option<HeapImage>, Failure> {
        match &self.memory {
            Memory::Live { worker, base } => Ok(worker.snapshot().await?.map(|(heap, _)| heap).or_else(|| base.clone())),
            Memory::Heap(heap) => Ok(heap.clone()),
        }
    }
}

impl Replayer<'_> {
    /// For runs with this cap.
    pub async fn point(&self, state: Option<KnownState>, heap_mb: u32) -> Result<ReplayPoint, ServiceError> {
        if self.engine.live().is_err() {
            return Ok(ReplayPoint::of_heap(state));
        }
        let (recorded, base) = state.map(|state| (state.recorded, state.image)).unzip();
        let opened = self.engine.open_live(&self.holder, base.as_ref(), heap_mb).await;
        let worker = opened.map_err(|failure| ServiceError::Unavailable(failure.to_string()))?;
        Ok(ReplayPoint { memory: Memory::Live { worker, base }, recorded })
    }

    /// A heap or state: as it is stored, otherwise by repeating the runs that led to it, from `earlier` if that is one of the states before it.
    pub async fn point_at(
        &self,
        key: HeapKey,
        heap_mb: u32,
        earlier: Option<ReplayPoint>,
    ) -> Result<Result<ReplayPoint, NotRecorded>, ServiceError> {
        match self.restore(key, heap_mb).await {
            Ok(image) => Ok(Ok(self.point(Some(KnownState { recorded: key, image }), heap_mb).await?)),
            Err(failure @ (Failure::StateLost | Failure::HeapOfAnotherEngine { .. })) => {
                self.rebuilt_point(key, heap_mb, failure, earlier).await
            }
            Err(failure) => Ok(Err(NotRecorded::Heap(failure))),
        }
    }

    /// `failure` says why the heap can't be loaded, and is the result if there is nothing to rebuild it from.
    async fn rebuilt_point(
        &self,
        key: HeapKey,
        heap_mb: u32,
        failure: Failure,
        earlier: Option<ReplayPoint>,
    ) -> Result<Result<ReplayPoint, NotRecorded>, ServiceError> {
        let known = earlier.as_ref().filter(|earlier| earlier.has_room(heap_mb)).and_then(|earlier| earlier.recorded);
        let Ok(lineage) = self.lineage_since(key, known).await? else { return Ok(Err(NotRecorded::Heap(failure))) };
        let mut point = match earlier.filter(|earlier| lineage.is_since_known && earlier.has_room(lineage.heap_mb)) {
            Some(earlier) => earlier,
            // The worker has not enough memory for what follows: the runs before are repeated, too.
            None if lineage.is_since_known => return Box::pin(self.rebuilt_point(key, heap_mb, failure, None)).await,
            None => self.point(lineage.base, lineage.heap_mb.max(heap_mb)).await?,
        };
        for step in &lineage.runs {
            point = match self.repeat(&step.execution, point.kind()).await? {
                Ok(replayed) => point.after(replayed, step.after).await?,
                Err(why) => return Ok(Err(NotRecorded::Before(step.what(), why))),
            };
        }
        Ok(Ok(point))
    }

    /// What a run started from. As a heap if the run has stored one and that is enough: then the replay can be compared with it.
    pub async fn point_before(&self, recorded: &RecordedRun) -> Result<Result<ReplayPoint, NotRecorded>, ServiceError> {
        let (heap_mb, is_in_memory) = (recorded.entry.limits.heap_mb, recorded.leads_to_state());
        match recorded.entry.input_heap {
            None if is_in_memory => Ok(Ok(self.point(None, heap_mb).await?)),
            None => Ok(Ok(ReplayPoint::of_heap(None))),
            Some(key) if is_in_memory => self.point_at(key, heap_mb, None).await,
            Some(key) => match self.restore(key, heap_mb).await {
                Ok(image) => Ok(Ok(ReplayPoint::of_heap(Some(KnownState { recorded: key, image })))),
                Err(_) => self.point_at(key, heap_mb, None).await,
            },
        }
    }

    /// Repeats a run to its end, with what its heap is then. A run that had to store its heap fails if that is impossible.
    pub async fn run_to_heap(&self, recorded: &RecordedRun, point: &ReplayPoint) -> Result<Replayed, ServiceError> {
        let mut replayed = self.run(recorded, point.kind()).await?;
        let Some(turn) = &mut replayed.turn else { return Ok(replayed) };
        match turn.snapshot().await {
            Ok(heap) => replayed.heap = Some(heap),
            Err(failure) if failure.code() != ErrorCode::HeapUnsaveable => return Err(ServiceError::Unavailable(failure.to_string())),
            Err(_) if recorded.leads_to_state() => {}
            Err(failure) => replayed = replayed.failed(&failure),
        }
        Ok(replayed)
    }
}
