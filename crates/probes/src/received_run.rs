//! The requests of a one-shot run, as a worker receives them.

use heapstead_wire::{Open, Reader, RunNumber, ToWorker};
use std::os::fd::{AsFd, OwnedFd};

/// Everything that the server sends with one write: `Open`, `Run`, `Snapshot` if the run is stateful, `Close`.
pub struct ReceivedRun {
    pub open: Open,
    /// The heap that the run starts from, unless it is the base heap.
    pub heap: Option<OwnedFd>,
    pub run: RunNumber,
    pub code: String,
    /// Where to write the new heap, if the run is stateful.
    pub snapshot: Option<OwnedFd>,
}

impl ReceivedRun {
    /// Reads from a worker's socket. None if the requests are not those of a one-shot run.
    pub fn receive(socket: impl AsFd) -> Option<Self> {
        let mut reader = Reader::default();
        let mut next = || reader.next_message(&socket).ok();
        let (ToWorker::Open(open), heap) = next()? else { return None };
        let (ToWorker::Run { run, code, .. }, None) = next()? else { return None };
        let snapshot = match next()? {
            (ToWorker::Snapshot { .. }, descriptor) => {
                let (ToWorker::Close, None) = next()? else { return None };
                descriptor
            }
            (ToWorker::Close, None) => None,
            _ => return None,
        };
        Some(Self { open, heap, run, code: code.into_owned(), snapshot })
    }
}
