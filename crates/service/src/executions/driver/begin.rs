//! The way of a run to a worker: its slot, what it starts from, and the start of its code.

use super::Driver;
use crate::Service;
use crate::executions::outcome::ExecutionOutcome;
use crate::executions::request::RunRequest;
use crate::live::LiveTurnHold;
use crate::sessions::PreparedSession;
use heapstead_engine::{Execution, HeapImage, Job, Kind, Place, ReservedPlace};
use heapstead_types::{Failure, HeapKey};

/// Where a run is on its way to a worker.
pub(super) enum Room {
    Reserved(ReservedPlace),
    Queued(Place),
    Begun(Box<Begun>),
    /// None: it has to begin again.
    Again,
}

impl Room {
    /// The run ends before anything of it is looked at.
    pub(super) fn abandon(self) {
        if let Self::Begun(begun) = self {
            drop(begun.execution);
            begun.live.into_iter().for_each(LiveTurnHold::unchanged);
        }
    }
}

/// A run whose code has been started.
pub(super) struct Begun {
    pub(super) execution: Execution,
    /// The worker that it runs on, if its session is live.
    pub(super) live: Option<LiveTurnHold>,
    /// What the code starts from, for the journal.
    pub(super) from: Option<HeapKey>,
    /// The same, for the log: a heap that the caller named, or the head.
    pub(super) input_heap: Option<HeapKey>,
}

/// The cap of a run's slot. In a logical session it may also prepare that session, with the default cap.
pub(super) fn slot_mb(service: &Service, request: &RunRequest) -> u32 {
    let is_logical = request.session.opened().is_some_and(|session| session.logical.is_some());
    let preparation_mb = if is_logical { service.policy().limits.heap_mb } else { 0 };
    request.limits.heap_mb.max(preparation_mb)
}

impl Driver {
    pub(super) fn slot_mb(&self) -> u32 {
        slot_mb(&self.service, &self.request)
    }

    /// Waits for a slot, restores what the run starts from, and starts the code.
    pub(super) async fn begin(
        &self,
        room: Room,
        head: Option<HeapKey>,
        prepared: &mut Option<PreparedSession>,
    ) -> Result<Begun, ExecutionOutcome> {
        let place = match room {
            Room::Reserved(held) => held.place(),
            Room::Queued(place) => place,
            // Something else has moved the head, or the worker has died.
            room @ (Room::Begun(_) | Room::Again) => {
                drop(room);
                let held = self.service.runtime.engine.hold(&self.holder, self.slot_mb());
                held.map_err(|refused| ExecutionOutcome::Failed(Failure::NoWorker(refused.to_string())))?.place()
            }
        };
        // The heap is loaded once the run has its slot, so that queued runs hold no heaps. A logical session is prepared in the same slot.
        let slot = tokio::select! {
            biased;
            stop = self.running.stop_requested() => return Err(stop.outcome()),
            slot = place.with_slot() => slot,
        };
        let mut warnings = Vec::new();
        let start = tokio::select! {
            biased;
            stop = self.running.stop_requested() => return Err(stop.outcome()),
            start = self.start(&slot, head, &mut warnings) => start,
        };
        self.running.warn(warnings);
        let start = start.map_err(ExecutionOutcome::Failed)?;
        *prepared = start.prepared;
        let (from, kind) = match &start.live {
            Some(live) => (start.input_heap, Kind::Live(live.worker.clone())),
            None => {
                // The heap of a state that was rebuilt may not be stored: the journal knows the state.
                let state = start.input_heap.filter(|input| input.is_state() && start.heap.is_some());
                (state.or(start.heap.as_ref().map(HeapImage::key)), Kind::Stateful(start.heap))
            }
        };
        Ok(Begun { execution: slot.submit(self.job(kind)), live: start.live, from, input_heap: start.input_heap })
    }

    pub(super) fn job(&self, kind: Kind) -> Job {
        Job {
            code: self.request.code.clone(),
            kind,
            limits: self.request.limits,
            headers: self.headers.clone(),
            replay: None,
            holder: self.holder.clone(),
        }
    }
}
