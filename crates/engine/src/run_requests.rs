//! The requests of runs: those of a one-shot run are all sent with one write, `Open`, `Run`, `Snapshot` if it is stateful, `Close`.

use crate::engine::{Job, Kind, Replay};
use crate::heap_image::HeapImage;
use heapstead_types::HeapKey;
use heapstead_wire::{Open, RunNumber, RunSettings, SEED_BYTES, ServerState, ToWorker};
use std::borrow::Cow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

pub struct OneShotRequests<'a> {
    /// The requests, encoded.
    pub bytes: Vec<u8>,
    /// Which answers to expect.
    pub state: ServerState,
    /// Where the worker writes the new heap. None for a stateless run.
    pub snapshot: Option<OwnedFd>,
    heap: Option<&'a HeapImage>,
}

impl<'a> OneShotRequests<'a> {
    /// The requests of a run with this seed, unless it is a replay.
    pub fn new(job: &'a Job, seed: [u8; SEED_BYTES]) -> std::io::Result<Self> {
        let (heap, snapshot) = match &job.kind {
            Kind::Stateful(heap) => (heap.as_ref(), Some(HeapImage::blank()?)),
            Kind::Stateless | Kind::Live(_) => (None, None),
        };
        let mut requests = Self { bytes: Vec::new(), state: ServerState::default(), snapshot, heap };
        let run = RunNumber::FIRST;
        requests.push(&open(job.limits.heap_mb, heap, requests.snapshot.is_some()))?;
        requests.push(&RunRequest { run, job, seed }.message())?;
        if requests.snapshot.is_some() {
            requests.push(&ToWorker::Snapshot { run })?;
        }
        requests.push(&ToWorker::Close)?;
        Ok(requests)
    }

    fn push(&mut self, request: &ToWorker<'_>) -> std::io::Result<()> {
        self.state.sent(request);
        request.write_to(&mut self.bytes)
    }

    /// The descriptors to send with the first byte, in the order of the requests that need them.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.heap.map(AsFd::as_fd).into_iter().chain(self.snapshot.as_ref().map(AsFd::as_fd)).collect()
    }
}

/// The request to restore a heap, or the base heap.
pub fn open(heap_mb: u32, heap: Option<&HeapImage>, stateful: bool) -> ToWorker<'static> {
    ToWorker::Open(Open {
        heap_mb,
        heap_bytes: heap.map(HeapImage::length),
        identity_seed: heap.map_or(0, |heap| identity_seed(heap.key())),
        stateful,
    })
}

/// The request to run a job.
pub struct RunRequest<'a> {
    pub run: RunNumber,
    pub job: &'a Job,
    /// Of the run, unless it is a replay.
    pub seed: [u8; SEED_BYTES],
}

impl<'a> RunRequest<'a> {
    pub fn message(&self) -> ToWorker<'a> {
        let (seed, replay) = match &self.job.replay {
            Some(Replay { recorded, form }) => {
                let inputs = Cow::Borrowed(&recorded.inputs);
                (recorded.seed, Some(heapstead_wire::Replay { inputs, form: form.as_ref().map(Cow::Borrowed) }))
            }
            None => (self.seed, None),
        };
        let settings = RunSettings { output_bytes_max: self.job.limits.output_bytes_max, seed, headers: self.job.headers.clone() };
        ToWorker::Run { run: self.run, settings: Cow::Owned(settings), replay, code: Cow::Borrowed(&self.job.code) }
    }
}

fn identity_seed(key: HeapKey) -> u64 {
    let [b0, b1, b2, b3, b4, b5, b6, b7, ..] = *key.digest();
    u64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7])
}
