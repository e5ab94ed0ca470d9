//! A worker's end of its socket: requests come in, in order, and messages go out.

use heapstead_types::Failure;
use heapstead_wire::{FromWorker, OrderError, ReadError, Reader, RunNumber, ToWorker, WorkerState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Why a request can't be accepted.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("protocol: {0}")]
    Read(#[from] ReadError),
    #[error("protocol: the server sent {0}")]
    Order(#[from] OrderError),
}

pub struct Channel {
    socket: OwnedFd,
    reader: RefCell<Reader>,
    state: Cell<WorkerState>,
    /// `Opened` is to be sent. It leaves with the next message, or when this worker would wait for one.
    opened_due: Cell<bool>,
    output_bytes_left: Cell<u64>,
    output_dropped: Cell<bool>,
}

impl Channel {
    pub fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            reader: RefCell::default(),
            state: Cell::default(),
            opened_due: Cell::new(false),
            output_bytes_left: Cell::new(0),
            output_dropped: Cell::new(false),
        }
    }

    /// Waits for the next request; its descriptor, where it has one.
    pub fn receive(&self) -> Result<(ToWorker<'static>, Option<OwnedFd>), RequestError> {
        let mut reader = self.reader.borrow_mut();
        if !reader.has_more() {
            self.flush_opened();
        }
        let (request, descriptor) = reader.next_message(&self.socket)?;
        let mut state = self.state.get();
        state.accept(&request)?;
        self.state.set(state);
        if let ToWorker::Run { settings, .. } = &request {
            self.output_bytes_left.set(settings.output_bytes_max);
            self.output_dropped.set(false);
        }
        Ok((request, descriptor))
    }

    /// The heap is restored.
    pub fn opened(&self) {
        self.opened_due.set(true);
    }

    /// The run has completed with this result.
    pub fn completed(&self, run: RunNumber, result: String) {
        self.send(&FromWorker::Ended { run, outcome: Ok(result) });
        let mut state = self.state.get();
        state.complete();
        self.state.set(state);
    }

    /// The run has failed, and with it this worker.
    pub fn fail_and_quit(&self, run: RunNumber, failure: Failure) -> ! {
        self.send(&FromWorker::Ended { run, outcome: Err(failure) });
        quit()
    }

    /// The last message of a worker that can't serve.
    pub fn unfit_and_quit(&self, why: String) -> ! {
        self.send(&FromWorker::Unfit { why });
        quit()
    }

    /// Sends a message. Exits if the server is gone.
    pub fn send(&self, message: &FromWorker) {
        if !self.opened_due.get() {
            if message.write_to(&mut Socket(self.socket.as_raw_fd())).is_err() {
                quit();
            }
            return;
        }
        let mut bytes = FromWorker::OPENED.to_vec();
        // Writing to memory does not fail.
        let _ = message.write_to(&mut bytes);
        self.opened_due.set(false);
        self.write(&bytes);
    }

    /// Sends a message that was encoded before, without allocating anything.
    pub fn send_encoded(&self, message: &[u8]) {
        self.flush_opened();
        self.write(message);
    }

    /// Sends console output at once, up to the cap. The rest is dropped, which is said once.
    pub fn output(&self, text: &str) {
        let Some(run) = self.state.get().run() else { return };
        if self.output_dropped.get() {
            return;
        }
        let left = self.output_bytes_left.get();
        let fitting = text.floor_char_boundary(usize::try_from(left).unwrap_or(usize::MAX));
        if FromWorker::write_output(&mut Socket(self.socket.as_raw_fd()), run, &text.as_bytes()[..fitting]).is_err() {
            quit();
        }
        self.output_bytes_left.set(left - fitting as u64);
        if fitting < text.len() {
            self.output_dropped.set(true);
            self.send(&FromWorker::OutputDropped { run });
        }
    }

    /// Sleeps, or exits if the server goes away meanwhile.
    pub fn sleep(&self, duration: Duration) {
        let timeout = Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) };
        let mut watched = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::empty())];
        if let Ok(1..) = poll(&mut watched, Some(&timeout)) {
            quit();
        }
    }

    fn flush_opened(&self) {
        if self.opened_due.replace(false) {
            self.write(&FromWorker::OPENED);
        }
    }

    fn write(&self, bytes: &[u8]) {
        if Socket(self.socket.as_raw_fd()).write_all(bytes).is_err() {
            quit();
        }
    }
}

struct Socket(RawFd);

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // SAFETY: the descriptor is the channel's own and open as long as it lives.
        let socket = unsafe { rustix::fd::BorrowedFd::borrow_raw(self.0) };
        Ok(rustix::io::retry_on_intr(|| rustix::io::write(socket, bytes))?)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Ends this process without running anybody's destructors.
pub fn quit() -> ! {
    // SAFETY: always allowed.
    unsafe { libc::_exit(0) }
}
