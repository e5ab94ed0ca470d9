//! Follows one worker through its run: checks its messages, turns them into events, and decides the outcome.

use crate::answers::{AnswerRoom, Answers, SHORT_ANSWER_BYTES};
use crate::engine::{Event, Javascript, Job, Kind, Outcome, Recorded, Recording, RecordingRoom};
use crate::heap_image::HeapImage;
use crate::live::Observed;
use crate::scheduler::Permit;
use crate::worker::{Worker, WorkerEnd};
use heapstead_types::{BudgetHolder, Failure, Stage};
use heapstead_wire::{ANSWER_BYTES_MAX, Decoder, FromWorker, INPUTS_BYTES_MAX, RecordedInputs, SEED_BYTES, ServerState, Written};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Read buffer for messages of a worker.
const READ_BYTES: usize = 64 << 10;
/// One message produces at most this many events: output, and the notice that further output is dropped.
const EVENTS_PER_MESSAGE: usize = 2;

/// Cancel-safe: dropping a future of this loses no message.
pub struct Follower<'a> {
    worker: Worker,
    events: &'a mpsc::Sender<Event>,
    decoder: Decoder,
    state: ServerState,
    buffer: Vec<u8>,
    snapshot: Option<OwnedFd>,
    is_live: bool,
    has_answered: bool,
    stage: Stage,
    seed: [u8; SEED_BYTES],
    /// The parts of the recorded inputs that have come.
    inputs: Vec<u8>,
    /// What is recorded of a run whose heap is being written: a run that is stopped then has no recording.
    recording: Option<Event>,
    javascript: Option<Javascript>,
    result: Option<String>,
    holder: &'a BudgetHolder,
    answers: &'a Answers,
    /// For a long answer, from its first byte on, or for long inputs and an answer.
    room: Option<Arc<AnswerRoom>>,
    is_killed: bool,
    output_bytes_left: u64,
    output_dropped: bool,
    /// Of a turn of a live worker, as long as it is short.
    observed: Option<Observed>,
}

impl<'a> Follower<'a> {
    pub fn new(
        worker: Worker,
        state: ServerState,
        snapshot: Option<OwnedFd>,
        seed: [u8; SEED_BYTES],
        job: &'a Job,
        answers: &'a Answers,
        events: &'a mpsc::Sender<Event>,
    ) -> Self {
        Self {
            worker,
            events,
            decoder: Decoder::default(),
            state,
            buffer: vec![0; READ_BYTES],
            snapshot,
            is_live: matches!(job.kind, Kind::Live(_)),
            has_answered: false,
            stage: Stage::Starting,
            seed,
            inputs: Vec::new(),
            recording: None,
            javascript: None,
            result: None,
            holder: &job.holder,
            answers,
            room: None,
            is_killed: false,
            output_bytes_left: job.limits.output_bytes_max,
            output_dropped: false,
            observed: (matches!(job.kind, Kind::Live(_)) && job.replay.is_none()).then(Observed::default),
        }
    }

    /// Reads messages until the run has ended or the worker has died.
    pub async fn follow(&mut self) -> Followed {
        Followed::Ended(loop {
            match self.next_message().await {
                Ok(Some(outcome)) => break outcome,
                Ok(None) => {}
                Err(Gone::Unread) if !self.has_answered => return Followed::Unread(self.death().await),
                // It was idle before, so something else has ended it, just as the request came.
                Err(Gone::Closed) if self.is_live && !self.has_answered => match self.death().await {
                    killed @ (Failure::WorkerCrashed { signal: Some(libc::SIGKILL), .. } | Failure::ZygoteDied) => {
                        return Followed::Unread(killed);
                    }
                    crashed => break Outcome::Failed(crashed),
                },
                Err(Gone::Closed | Gone::Unread) => break Outcome::Failed(self.death().await),
                Err(Gone::NotAFrame(what)) => break self.misbehaved(&what),
            }
        })
    }

    /// Kills the worker and waits until it is dead.
    pub async fn kill(&mut self) {
        self.is_killed = true;
        self.worker.kill();
        let _ = self.worker.dead().await;
    }

    /// Reads the output that a worker had written before it was killed.
    pub async fn drain(&mut self) {
        while self.next_message().await.is_ok() {}
    }

    /// Waits for one message and handles it. Returns the outcome if it was the last.
    async fn next_message(&mut self) -> Result<Option<Outcome>, Gone> {
        // Reserves room for its events first, so that a decoded message is forwarded immediately, and dropping this future loses nothing.
        let room = self.events.reserve_many(EVENTS_PER_MESSAGE).await.map_err(|_| Gone::Closed)?;
        let message = loop {
            if let Some(message) = self.decoder.next_message().map_err(|error| Gone::NotAFrame(error.to_string()))? {
                break message;
            }
            self.make_room().await?;
            match self.worker.read(&mut self.buffer).await {
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(Gone::Unread),
                Ok(0) | Err(_) => return Err(Gone::Closed),
                Ok(count) => self.decoder.push(&self.buffer[..count]),
            }
        };
        let mut room = room.into_iter();
        let mut emit = |event| {
            if let Some(permit) = room.next() {
                permit.send(event);
            }
        };
        // Live workers answer earlier requests too, and nobody reads that before the next run.
        self.has_answered |= !(self.is_live && matches!(message, FromWorker::Opened | FromWorker::Committed { .. }));
        if let Err(error) = self.state.accept(&message) {
            return Ok(Some(self.misbehaved(&error.to_string())));
        }
        let outcome = match message {
            FromWorker::Opened => None,
            FromWorker::Parsing { .. } => {
                self.stage = Stage::Starting;
                None
            }
            FromWorker::Started { .. } => {
                self.stage = Stage::Running;
                None
            }
            FromWorker::Inputs { part, .. } => {
                self.inputs.extend(part);
                None
            }
            FromWorker::Javascript { text, form, .. } => {
                self.javascript = Some(Javascript { text, form });
                None
            }
            FromWorker::Output { text, .. } => {
                self.output(text, &mut emit);
                // Otherwise a worker that floods output would keep this thread for a hundred messages, while requests of others wait.
                tokio::task::yield_now().await;
                None
            }
            FromWorker::OutputDropped { .. } => {
                self.output_bytes_left = 0;
                self.drop_output(&mut emit);
                None
            }
            // There are no capabilities yet, and the worker's code never calls one. So this worker does not run our code any more.
            FromWorker::Call { kind, .. } => Some(self.misbehaved(&format!("`Call` of kind {kind}, but no capability exists"))),
            FromWorker::Ended { outcome: Ok(result), .. } => {
                self.shrink_room(result.len());
                self.recording = self.recorded();
                self.result = Some(result);
                self.stage = Stage::Saving;
                self.snapshot.is_none().then(|| self.completed(None))
            }
            FromWorker::Snapshot { outcome: Ok(written), .. } => Some(self.seal(written).await),
            FromWorker::Ended { outcome: Err(failure), .. } => {
                self.shrink_room(0);
                self.recording = self.recorded();
                Some(Outcome::Failed(failure))
            }
            FromWorker::Snapshot { outcome: Err(failure), .. } => Some(Outcome::Failed(failure)),
            // Of an earlier run of the same live worker.
            FromWorker::Committed { .. } => None,
            FromWorker::Unfit { why } => Some(Outcome::Failed(Failure::NoWorker(why))),
        };
        // What a worker had sent before it was killed is read too, but its run was stopped.
        if outcome.is_some() && !self.is_killed {
            self.recording.take().into_iter().for_each(emit);
        }
        Ok(outcome)
    }

    /// None if the worker has sent no recording, or none that can be read.
    fn recorded(&mut self) -> Option<Event> {
        let inputs = RecordedInputs::from_bytes(std::mem::take(&mut self.inputs))?;
        let recorded = Recorded { seed: self.seed, inputs };
        if let Some(observed) = &mut self.observed {
            observed.recorded(&recorded);
        }
        let room = RecordingRoom { _room: self.room.clone() };
        Some(Event::Recorded(Recording { recorded, javascript: self.javascript.take(), room }))
    }

    /// Returns what neither the result nor the recording needs.
    fn shrink_room(&mut self, result_bytes: usize) {
        if let Some(room) = self.room.as_mut().and_then(Arc::get_mut) {
            room.shrink_to(result_bytes + self.javascript.as_ref().map_or(0, Javascript::bytes) + self.inputs.len());
        }
    }

    /// Waits for room if the message that is being read is a long answer, or if the inputs are long: an answer follows them, and must not have
    /// to wait for room of its own. Nothing is read meanwhile, so the worker waits too.
    async fn make_room(&mut self) -> Result<(), Gone> {
        let bytes = match self.decoder.awaited_bytes() {
            _ if self.inputs.len() >= SHORT_ANSWER_BYTES => INPUTS_BYTES_MAX + ANSWER_BYTES_MAX,
            Some(bytes) if bytes > SHORT_ANSWER_BYTES => bytes,
            _ => return Ok(()),
        };
        if self.room.is_some() {
            return Ok(());
        }
        // Nobody waits for the answer of a worker that was killed.
        if self.is_killed {
            return Err(Gone::Closed);
        }
        let no_room = || Gone::NotAFrame(format!("an answer of {bytes} bytes, for which there is never room"));
        self.room = Some(Arc::new(self.answers.room(self.holder, bytes).await.ok_or_else(no_room)?));
        Ok(())
    }

    /// Forwards output up to the cap. The cap is enforced here, even if the worker does not enforce it.
    fn output(&mut self, mut text: Vec<u8>, mut emit: impl FnMut(Event)) {
        let fitting = self.output_bytes_left.min(text.len() as u64);
        let over = fitting < text.len() as u64;
        text.truncate(fitting as usize);
        self.output_bytes_left -= fitting;
        self.observed = self.observed.take().and_then(|mut observed| observed.output(&text).then_some(observed));
        if !text.is_empty() {
            emit(Event::Output(text));
        }
        if over {
            self.drop_output(emit);
        }
    }

    /// Sends the notice that output is dropped, once.
    fn drop_output(&mut self, mut emit: impl FnMut(Event)) {
        self.observed = None;
        if !std::mem::replace(&mut self.output_dropped, true) {
            emit(Event::OutputDropped);
        }
    }

    /// Seals and hashes the heap that the worker wrote, and compares it with what the worker announced.
    async fn seal(&mut self, announced: Written) -> Outcome {
        let Some(descriptor) = self.snapshot.take() else { return self.misbehaved("a second snapshot") };
        match HeapImage::seal_announced(descriptor, announced).await {
            Ok(heap) => self.completed(Some(heap)),
            Err(what) => self.misbehaved(&what),
        }
    }

    /// The worker, once it has been followed, and what it has been asked for; what was observed of a short turn.
    pub fn into_worker(self) -> ((Worker, ServerState), Option<Observed>) {
        ((self.worker, self.state), self.observed)
    }

    fn completed(&mut self, heap: Option<HeapImage>) -> Outcome {
        Outcome::Completed {
            result: self.result.take().unwrap_or_default(),
            heap,
            turn: None,
            permit: Permit::uncounted().holding(self.room.take()),
        }
    }

    fn misbehaved(&self, what: &str) -> Outcome {
        tracing::warn!(pid = self.worker.pid(), what, "a worker broke the protocol");
        Outcome::Failed(Failure::WorkerMisbehaved(what.to_owned()))
    }

    /// Why the socket closed before the run had ended.
    async fn death(&mut self) -> Failure {
        // The worker may have closed its socket and still be alive.
        self.worker.kill();
        match self.worker.end().await {
            WorkerEnd::WithZygote => Failure::ZygoteDied,
            WorkerEnd::OfItsOwn { signal } => {
                let stage = self.stage;
                tracing::warn!(pid = self.worker.pid(), ?stage, ?signal, "a worker died");
                Failure::WorkerCrashed { stage, signal }
            }
        }
    }
}

/// How following a worker ended.
pub enum Followed {
    Ended(Outcome),
    /// The worker died before it had begun with the run, with this failure. No code has run.
    Unread(Failure),
}

/// Why there are no further messages.
enum Gone {
    Closed,
    /// Closed with requests unread: only then does the kernel reset the socket.
    Unread,
    NotAFrame(String),
}
