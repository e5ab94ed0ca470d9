//! The end of an execution: committed in one transaction, and reported only then.

use super::{Driver, Ended};
use crate::crash_point;
use crate::executions::journal::RunEnd;
use crate::executions::outcome::ExecutionOutcome;
use crate::executions::record::{ExecutionRecord, HeapState};
use crate::executions::turn_across_servers::RETRY_PAUSE;
use crate::heaps::HeapReservation;
use crate::live::LiveTurnHold;
use heapstead_engine::{Gap, LiveTurn};
use heapstead_store::outputs::Extent;
use heapstead_store::records::{ContinuityReport, EndedExecution, ExecutionEnd, Head, NewHeap, NewHeapEngine, NewLogEntry, RunSession};
use heapstead_types::{Failure, Fault, HeapKey, SharedText, Status};
use jiff::Timestamp;
use std::time::Duration;

/// An end that is recorded.
pub(super) struct RecordedEnd {
    pub(super) ended: Ended,
    /// The new head of its session, if the execution moved it.
    pub(super) head: Option<Head>,
    pub(super) completed_at: Timestamp,
}

impl Driver {
    /// Commits the end, and reports it once it survives a crash.
    pub(super) async fn record_end(self, mut ended: Ended) {
        let (record, end) = self.end_of(&mut ended);
        let (start, output, completed_at) = (self.running.known_start(), ended.output, end.completed_at);
        let (warnings, extends) = (end.warnings.clone(), end.extends);
        crash_point::pass("before-commit");
        let stored = self.service.stores.records.end_execution(self.running.id().clone(), end).await;
        crash_point::pass("committed");
        let error = match stored {
            Ok(EndedExecution::Ended { head }) => {
                self.report_end(record, &mut ended, head);
                return self.settle(RecordedEnd { ended, head, completed_at }).await;
            }
            // Another server took this one for dead. Its record stands.
            Ok(EndedExecution::EndedBefore) => "the execution was ended from elsewhere".to_owned(),
            Err(error) => error.to_string(),
        };
        // The run has failed: without a committed end its heap and log entry do not exist. That is reported now and stored as soon as the
        // database accepts it, with the turn still held; if this process dies first, the next server that finds the run records it as failed.
        tracing::error!(id = %self.running.id(), %error, "the end of an execution can't be stored");
        let failed = ExecutionOutcome::Failed(Failure::Store(error));
        let started_at = Some(start.started_at);
        let record = start.ended_at(failed, completed_at);
        let end = ExecutionEnd {
            started_at,
            completed_at,
            error: record.error.clone(),
            error_code: record.error_code,
            warnings,
            output,
            extends,
            ..ExecutionEnd::bare(record.status)
        };
        self.report(record, output, None);
        while self.service.stores.records.end_execution(self.running.id().clone(), end.clone()).await.is_err() {
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// The record that callers get, and what is to be stored.
    pub(super) fn end_of(&self, ended: &mut Ended) -> (ExecutionRecord, ExecutionEnd) {
        let completed_at = Timestamp::now();
        let start = self.running.known_start();
        let notice = ended.prepared.as_ref().map(|prepared| prepared.notice.clone()).filter(|notice| !notice.continuity.is_unbroken());
        // Results and code may be long: they are moved, and the result is copied once, for the record that callers wait for.
        let outcome = std::mem::replace(&mut ended.outcome, ExecutionOutcome::Cancelled);
        let heap_state = ended.completed.as_ref().filter(|completed| completed.stored.is_none()).map(|_| HeapState::Pending);
        let started_at = start.started_at;
        let record = ExecutionRecord { notice, heap_state, ..start.ended_at(outcome, completed_at) };
        let end = self.execution_end(&record, ended, started_at, completed_at);
        (record, end)
    }

    /// Reports an end that is recorded. Its slot is free then.
    pub(super) fn report_end(&self, record: ExecutionRecord, ended: &mut Ended, head: Option<Head>) {
        drop(ended.completed.as_mut().and_then(|completed| completed.permit.take()));
        self.report(record, ended.output, head);
    }

    /// What is left to do once the end is recorded and reported.
    pub(super) async fn settle(&self, recorded: RecordedEnd) {
        let RecordedEnd { ended, head, completed_at } = recorded;
        let (state, turn, stored_heap) = ended.completed.map_or((None, None, None), |done| (Some(done.heap), done.turn, done.stored));
        let reservations = [stored_heap.map(|stored| stored.reservation), ended.prepared.and_then(|prepared| prepared.reservation)];
        reservations.into_iter().flatten().for_each(HeapReservation::recorded);
        // Those who wait for the record come first: what follows starts processes, which would compete with them.
        tokio::task::yield_now().await;
        let ran = completed_at.duration_since(self.running.known_start().started_at).unsigned_abs();
        self.settle_live(ended.live, turn.zip(state), head.is_some(), ran).await;
        drop(ended.turn);
    }

    /// The worker of a live session continues from the turn, if that is recorded.
    async fn settle_live(&self, live: Option<LiveTurnHold>, turn: Option<(LiveTurn, HeapKey)>, is_head: bool, ran: Duration) {
        let (Some(live), Some(session)) = (live, self.run_session.as_ref().and_then(RunSession::opened)) else { return };
        match turn {
            Some((turn, state)) if is_head => {
                live.commit(turn, state, ran).await;
                crash_point::pass("turn-committed");
                self.service.checkpoint(session);
            }
            // The session has ended meanwhile.
            Some(_) => {}
            None => live.unchanged(),
        }
        // Sessions that were in a turn when others needed their place.
        self.service.make_room(&self.holder, 0);
    }

    fn report(&self, record: ExecutionRecord, output: Extent, head: Option<Head>) {
        self.service.runtime.meter.ended(record.status);
        self.running.end(record, output, head);
    }

    fn execution_end(&self, record: &ExecutionRecord, ended: &mut Ended, started_at: Timestamp, completed_at: Timestamp) -> ExecutionEnd {
        let source = SharedText::new(self.request.code.clone());
        let completed = ended.completed.as_ref();
        let log = completed.zip(self.run_session.as_ref()).map(|(completed, session)| NewLogEntry {
            session: session.clone(),
            input_heap: completed.input_heap,
            instead_of: completed.instead_of,
            output_heap: completed.heap,
            code: ended.recorder.code(&source),
            timestamp: completed_at,
            execution_id: self.running.id().clone(),
        });
        let continuity = record.notice.as_ref().map(|notice| ContinuityReport {
            json: serde_json::to_string(notice).unwrap_or_default(),
            is_delivered: self.running.promise_delivery(),
        });
        let logical = self.run_session.as_ref().and_then(RunSession::logical);
        let opened = self.run_session.as_ref().and_then(RunSession::opened);
        let run_end = RunEnd {
            source,
            limits: self.request.limits,
            engine: self.service.runtime.heaps.engine_id(),
            session: opened,
            is_import: false,
            heap: completed.map(|completed| completed.heap),
            result: record.result.as_deref().or(record.error.as_deref()).unwrap_or_default(),
            gap: gap_of(record),
        };
        ExecutionEnd {
            journal: ended.recorder.entry(run_end),
            status: record.status,
            started_at: Some(started_at),
            completed_at,
            result: record.result.clone(),
            error: record.error.clone(),
            error_code: record.error_code,
            warnings: record.warnings.clone(),
            output: ended.output,
            tags: completed.and(self.request.tags.clone()),
            heap: completed.and_then(|completed| completed.stored.as_ref().map(|stored| (completed.heap, stored))).map(|(key, stored)| {
                NewHeap {
                    key,
                    bytes: stored.bytes,
                    engine: NewHeapEngine::Produced(self.service.runtime.heaps.engine_id().clone()),
                    reservation: Some(stored.reservation.id().clone()),
                }
            }),
            state: completed.filter(|completed| completed.stored.is_none()).map(|completed| completed.heap),
            log,
            extends: logical.map(|logical| (logical, self.service.policy().expiry(completed_at))),
            binding: ended.prepared.as_ref().and_then(|prepared| prepared.binding.clone()),
            continuity,
        }
    }
}

/// Why a run can't be repeated, if it did not come to its own end.
fn gap_of(record: &ExecutionRecord) -> Option<Gap> {
    match record.status {
        Status::TimedOut | Status::Cancelled => Some(Gap::Stopped),
        _ if record.error_code.is_some_and(|code| code.fault() != Fault::Code) => Some(Gap::Lost),
        _ => None,
    }
}
