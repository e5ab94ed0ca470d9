//! The worker's end of its socket: receives requests, checks their order, and sends messages.

use heapstead_types::Failure;
use heapstead_wire::{FromWorker, OrderError, ReadError, Reader, RecordedInputs, RunNumber, ToWorker, WorkerState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Messages up to this length are joined.
const JOINED_BYTES_MAX: usize = 64 << 10;

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
    /// `Opened` has not been sent yet. It is sent with the next message, or before this worker waits for a request.
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

    /// Waits for the next request. Returns it with its descriptor, if it has one.
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

    /// Continues on another socket, as a clone of the process that this channel belonged to.
    pub fn continue_on(&self, socket: OwnedFd) {
        // SAFETY: both descriptors are open; the first one stays this channel's own.
        if unsafe { libc::dup3(socket.as_raw_fd(), self.socket.as_raw_fd(), 0) } == -1 {
            quit();
        }
        drop(socket);
        self.opened_due.set(true);
        self.flush_opened();
    }

    /// Whether everything that was received has been handled.
    pub fn is_drained(&self) -> bool {
        !self.reader.borrow().has_more()
    }

    /// Whether a request comes within this time.
    pub fn has_request_within(&self, duration: Duration) -> bool {
        let mut watched = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
        !self.is_drained() || matches!(poll(&mut watched, Some(&timespec(duration))), Ok(1..))
    }

    /// Notes that the heap is restored, so that `Opened` is sent.
    pub fn opened(&self) {
        self.opened_due.set(true);
    }

    /// Sends what the run has read from outside, if that was recorded.
    pub fn inputs(&self, run: RunNumber, inputs: Option<&RecordedInputs>) {
        let Some(inputs) = inputs else { return };
        self.flush_opened();
        if FromWorker::write_inputs(&mut Socket(self.socket.as_raw_fd()), run, inputs).is_err() {
            quit();
        }
    }

    /// Reports that the run has completed with this result, what it has read from outside, and the JavaScript that ran if it differs from the
    /// source. In one write, unless that is long, so that the server wakes up once.
    pub fn completed(&self, run: RunNumber, inputs: Option<&RecordedInputs>, result: String, javascript: Option<String>) {
        let is_short = result.len() + javascript.as_ref().map_or(0, String::len) < JOINED_BYTES_MAX;
        let javascript = javascript.map(|text| FromWorker::Javascript { run, text });
        let ended = FromWorker::Ended { run, outcome: Ok(result) };
        if is_short {
            self.flush_opened();
            let mut bytes = Vec::new();
            // Writing to memory does not fail.
            let _ = inputs.map(|inputs| FromWorker::write_inputs(&mut bytes, run, inputs));
            let _ = javascript.map(|message| message.write_to(&mut bytes));
            let _ = ended.write_to(&mut bytes);
            self.write(&bytes);
        } else {
            self.inputs(run, inputs);
            javascript.iter().chain([&ended]).for_each(|message| self.send(message));
        }
        let mut state = self.state.get();
        state.complete();
        self.state.set(state);
    }

    /// Reports that the run has failed, and exits.
    pub fn fail_and_quit(&self, run: RunNumber, failure: Failure) -> ! {
        self.send(&FromWorker::Ended { run, outcome: Err(failure) });
        quit()
    }

    /// Reports why this worker can't serve, and exits.
    pub fn unfit_and_quit(&self, why: String) -> ! {
        self.send(&FromWorker::Unfit { why });
        quit()
    }

    /// Sends a message. Exits if the server has closed the socket.
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

    /// Sends an encoded message, without allocating memory.
    pub fn send_encoded(&self, message: &[u8]) {
        self.flush_opened();
        self.write(message);
    }

    /// Sends console output immediately, up to the cap. The rest is dropped, which is reported once.
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

    /// Sleeps. Exits if the server closes the socket meanwhile.
    pub fn sleep(&self, duration: Duration) {
        let mut watched = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::empty())];
        if let Ok(1..) = poll(&mut watched, Some(&timespec(duration))) {
            quit();
        }
    }

    pub fn flush_opened(&self) {
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

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
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

/// Exits without running destructors.
pub fn quit() -> ! {
    // SAFETY: always allowed.
    unsafe { libc::_exit(0) }
}
