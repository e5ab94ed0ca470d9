//! Follows the code of a run: records what it reads, writes its output, stops it.

use super::Driver;
use crate::executions::journal::RunRecorder;
use crate::executions::output_quota::OutputQuota;
use crate::executions::output_text::OutputText;
use crate::executions::running::{RunningExecution, StopReason};
use heapstead_engine::{Event, Execution, Outcome};
use heapstead_store::outputs::OutputWriter;
use heapstead_types::Failure;
use tokio::time::Instant;

/// The console output of a run.
pub(super) struct RunOutput<'a> {
    pub(super) writer: OutputWriter,
    /// Where callers see it. None while the execution is not recorded: then they see it at its end.
    pub(super) shown_in: Option<&'a RunningExecution>,
}

impl RunOutput<'_> {
    fn append(&mut self, bytes: Vec<u8>) -> Result<(), Failure> {
        self.writer.append(bytes).map_err(|error| Failure::Store(error.to_string()))?;
        if let Some(running) = self.shown_in {
            running.wrote(self.writer.extent());
        }
        Ok(())
    }
}

impl Driver {
    /// Follows the code, and writes its output as it arrives. Sets `began` when the code starts.
    pub(super) async fn follow(
        &self,
        mut execution: Execution,
        recorder: &mut RunRecorder,
        output: &mut RunOutput<'_>,
        began: &mut Instant,
    ) -> Result<Outcome, Failure> {
        let mut text = OutputText::new(&self.request.limits);
        let mut quota = OutputQuota::of(&self.running.principal);
        let canceller = execution.canceller();
        let meter = &self.service.runtime.meter;
        let (mut stop_reason, mut is_started) = (None, false);
        loop {
            let event = tokio::select! {
                biased;
                stop = self.running.stop_requested(), if stop_reason.is_none() => {
                    stop_reason = Some(stop);
                    // The outcome tells whether this came in time.
                    canceller.cancel().await;
                    continue;
                }
                event = execution.next_event() => event,
            };
            if let Some(Event::Output(bytes)) = &event {
                recorder.output(bytes);
            }
            if is_started && matches!(event, Some(Event::Ended(_))) {
                meter.run.record(began.elapsed());
            }
            let bytes = match event {
                Some(Event::Started { seed, at }) => {
                    recorder.started(seed);
                    (*began, is_started) = (at, true);
                    let started_at = self.running.code_started(at.elapsed());
                    meter.queue.record(started_at.duration_since(self.running.start.started_at).unsigned_abs());
                    continue;
                }
                Some(Event::Recorded(recording)) => {
                    recorder.recorded(recording);
                    continue;
                }
                Some(Event::Output(bytes)) => match quota.admit(&self.service.stores, output.writer.extent(), bytes, &mut text).await {
                    Some(bytes) => bytes,
                    None => continue,
                },
                Some(Event::OutputDropped) if quota.is_exceeded() => continue,
                Some(Event::OutputDropped) => text.dropped(),
                Some(Event::Ended(Outcome::Cancelled)) if stop_reason == Some(StopReason::Shutdown) => return Err(Failure::ServerStopped),
                Some(Event::Ended(outcome)) => return Ok(outcome),
                None => return Err(Failure::NoWorker("the engine is shut down".into())),
            };
            // An error drops the execution, which stops it.
            output.append(bytes)?;
            // As in the engine: a flood of output must not keep this thread.
            tokio::task::yield_now().await;
        }
    }
}
