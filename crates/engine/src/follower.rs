//! Follows one worker: frames in, events out, and what they add up to.

use crate::engine::{Event, Outcome};
use crate::heap_image::HeapImage;
use crate::worker::{Worker, signal_of};
use heapstead_types::{Failure, Stage};
use heapstead_wire::{Decoder, Frame};
use rustix::io::Errno;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use tokio::sync::mpsc;

/// Read from a worker at once.
const READ_BYTES: usize = 64 << 10;
/// One frame makes at most this many events: output, and the word that more is dropped.
const EVENTS_PER_FRAME: usize = 2;

/// May be left in the middle and taken up again: nothing that was read is ever lost.
pub struct Follower<'a> {
    worker: Worker,
    events: &'a mpsc::Sender<Event>,
    decoder: Decoder,
    buffer: Vec<u8>,
    snapshot: Option<OwnedFd>,
    stage: Stage,
    javascript: Option<String>,
    result: Option<String>,
    output_bytes_left: u64,
    dropping: bool,
}

impl<'a> Follower<'a> {
    pub fn new(worker: Worker, snapshot: Option<OwnedFd>, output_bytes_max: u64, events: &'a mpsc::Sender<Event>) -> Self {
        Self {
            worker,
            events,
            decoder: Decoder::default(),
            buffer: vec![0; READ_BYTES],
            snapshot,
            stage: Stage::Starting,
            javascript: None,
            result: None,
            output_bytes_left: output_bytes_max,
            dropping: false,
        }
    }

    /// Reads frames until the run has ended, one way or another.
    pub async fn follow(&mut self) -> Followed {
        Followed::Ended(loop {
            match self.next_frame().await {
                Ok(Some(outcome)) => break outcome,
                Ok(None) => {}
                Err(Gone::Unread) if self.stage == Stage::Starting => return Followed::Unread(self.death().await),
                Err(Gone::Closed | Gone::Unread) => break Outcome::Failed(self.death().await),
                Err(Gone::Garbage(what)) => break self.misbehaved(&what),
            }
        })
    }

    /// Kills the worker, waits until it is dead.
    pub async fn kill(&mut self) {
        self.worker.kill();
        let _ = self.worker.dead().await;
    }

    /// Brings home the output that a dead worker had already written.
    pub async fn drain(&mut self) {
        while self.next_frame().await.is_ok() {}
    }

    /// Takes in one frame, waiting for it if need be. An outcome when it was the last.
    async fn next_frame(&mut self) -> Result<Option<Outcome>, Gone> {
        // Room for its events first: what is decoded is passed on at once, so leaving this future loses nothing.
        let room = self.events.reserve_many(EVENTS_PER_FRAME).await.map_err(|_| Gone::Closed)?;
        let frame = loop {
            if let Some(frame) = self.decoder.next_frame().map_err(|error| Gone::Garbage(error.to_string()))? {
                break frame;
            }
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
        Ok(match frame {
            Frame::Output(_) | Frame::Dropped | Frame::Parsing | Frame::Evaluating(_) | Frame::Completed(_) if self.result.is_some() => {
                Some(self.misbehaved("it went on after its result"))
            }
            Frame::Parsing => {
                self.stage = Stage::Starting;
                None
            }
            Frame::Evaluating(javascript) => {
                self.stage = Stage::Running;
                self.javascript = javascript;
                None
            }
            Frame::Output(mut text) => {
                // Up to the cap, whatever the worker thinks the cap is.
                let fitting = self.output_bytes_left.min(text.len() as u64);
                let over = fitting < text.len() as u64;
                text.truncate(fitting as usize);
                self.output_bytes_left -= fitting;
                if !text.is_empty() {
                    emit(Event::Output(text));
                }
                if over && !std::mem::replace(&mut self.dropping, true) {
                    emit(Event::OutputDropped);
                }
                None
            }
            Frame::Dropped => {
                self.output_bytes_left = 0;
                if !std::mem::replace(&mut self.dropping, true) {
                    emit(Event::OutputDropped);
                }
                None
            }
            Frame::Failed(failure) => Some(Outcome::Failed(failure)),
            Frame::Completed(result) => {
                self.result = Some(result);
                self.stage = Stage::Saving;
                self.snapshot.is_none().then(|| self.completed(None))
            }
            Frame::Saved { length, sha256 } => Some(self.saved(length, sha256).await),
        })
    }

    async fn saved(&mut self, length: u64, sha256: [u8; 32]) -> Outcome {
        let (Some(descriptor), true) = (self.snapshot.take(), self.result.is_some()) else {
            return self.misbehaved("it saved a heap that nobody asked for");
        };
        // Hashing a large heap takes a while, in which a cancel must be heard.
        let sealed = tokio::task::spawn_blocking(move || HeapImage::seal(descriptor)).await;
        match sealed.unwrap_or(Err(Errno::CANCELED)) {
            Ok(heap) if heap.length() != length || heap.key().digest() != &sha256 => {
                self.misbehaved("the heap it saved is not the one it announced")
            }
            Ok(heap) => self.completed(Some(heap)),
            Err(error) => self.misbehaved(&format!("the heap it saved can't be sealed: {error}")),
        }
    }

    fn completed(&mut self, heap: Option<HeapImage>) -> Outcome {
        Outcome::Completed { result: self.result.take().unwrap_or_default(), heap, javascript: self.javascript.take() }
    }

    fn misbehaved(&self, what: &str) -> Outcome {
        tracing::warn!(pid = self.worker.pid(), what, "a worker broke the protocol");
        Outcome::Failed(Failure::WorkerMisbehaved(what.to_owned()))
    }

    /// The socket closed before the end was told.
    async fn death(&mut self) -> Failure {
        // It may have closed its socket and live on.
        self.worker.kill();
        match self.worker.exit_status().await {
            None => Failure::ZygoteDied,
            Some(status) => {
                let (stage, signal) = (self.stage, signal_of(status));
                tracing::warn!(pid = self.worker.pid(), ?stage, ?signal, "a worker died");
                Failure::WorkerCrashed { stage, signal }
            }
        }
    }
}

/// What came of following a worker.
pub enum Followed {
    Ended(Outcome),
    /// It died, of this, before it had read its start: nothing of the code has run.
    Unread(Failure),
}

/// Why no further frame comes.
enum Gone {
    Closed,
    /// Closed, with bytes of ours that were never read: the kernel resets the socket then, and only then.
    Unread,
    Garbage(String),
}
