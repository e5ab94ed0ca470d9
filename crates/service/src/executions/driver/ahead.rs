//! A run in a live session whose code was started before it is accepted. If the code ends soon, acceptance and end are one transaction: most of
//! what they change is the same, and nobody knows of the run before.

use super::begin::{Begun, Room};
use super::end::RecordedEnd;
use super::{Driver, Ended};
use crate::ServiceError;
use crate::crash_point;
use crate::error::blocking;
use crate::live::LiveTurnHold;
use heapstead_engine::{Event, Outcome};
use heapstead_store::records::RecordedTurn;
use heapstead_types::{Failure, HeapKey};
use std::time::Duration;

/// How long the acceptance of a run waits for its end: callers who do not wait for the end get the id so much later.
const END_WAIT: Duration = Duration::from_millis(5);

/// What became of a run that was started before it was accepted.
pub(super) enum RanAhead {
    /// It has ended, which is recorded and reported.
    Recorded(Box<RecordedEnd>),
    /// Its acceptance is recorded, or refused; it goes on from here. As for [`Driver::record_acceptance`].
    Accepted(Room, Result<Option<Option<HeapKey>>, ServiceError>),
}

impl Driver {
    pub(super) async fn record_ahead(&self, mut begun: Box<Begun>) -> RanAhead {
        if !begun.execution.ended_within(END_WAIT).await.is_some_and(|events| events.iter().all(is_storable_at_once)) {
            let recorded = self.record_acceptance().await;
            return RanAhead::Accepted(Room::Begun(begun), recorded);
        }
        let from = begun.live.as_ref().and_then(LiveTurnHold::state);
        let mut ended = self.run_from(Room::Begun(begun), from, None).await;
        let (record, end) = self.end_of(&mut ended);
        let completed_at = end.completed_at;
        let running_max = self.service.policy().quotas.running_max;
        crash_point::pass("before-commit");
        let recorded = self.service.stores.records.record_turn(self.new_execution(), from, end, running_max).await;
        crash_point::pass("committed");
        let accepted = match recorded {
            Ok(RecordedTurn::Ended { head }) => {
                self.report_end(record, &mut ended, head);
                return RanAhead::Recorded(Box::new(RecordedEnd { ended, head, completed_at }));
            }
            Ok(RecordedTurn::NotEnded(accepted)) => self.check_accepted(accepted),
            Err(error) => Err(error.into()),
        };
        self.discard(ended).await;
        RanAhead::Accepted(Room::Again, accepted)
    }

    /// The run has had no effect.
    async fn discard(&self, ended: Ended) {
        if ended.output.bytes > 0 {
            let (outputs, id) = (self.service.stores.outputs.clone(), self.running.id().clone());
            let removed = blocking(move || {
                outputs.remove(&id);
                Ok(())
            });
            // Only a panic can prevent it, and the retention of outputs removes what is left.
            let _ = removed.await;
        }
        // The process that has its effects is killed; the session stays live with the state before.
        drop(ended.completed);
        ended.live.into_iter().for_each(LiveTurnHold::unchanged);
    }
}

/// Whether the end of the run can follow in a moment: a run that can't be repeated stores its heap first, and one without a worker begins again.
fn is_storable_at_once(event: &Event) -> bool {
    match event {
        Event::Recorded(recording) => recording.recorded.inputs.gaps().next().is_none(),
        Event::Ended(outcome) => !matches!(outcome, Outcome::Failed(Failure::NoWorker(_))),
        Event::Started { .. } | Event::Output(_) | Event::OutputDropped => true,
    }
}
