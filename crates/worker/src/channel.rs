//! The worker's end of its socket: receives requests, checks their order, and sends messages.

use heapstead_types::Failure;
use heapstead_wire::{FromWorker, OrderError, ReadError, Reader, RecordedInputs, RunNumber, ScriptForm, ToWorker, WorkerState};
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
    /// Messages that are sent with the next one, or before this worker waits for a request.
    due: RefCell<Vec<u8>>,
    output_bytes_left: Cell<u64>,
    output_dropped: Cell<bool>,
}

/// What a replay needs besides the limits and the heap: what the run has read from outside, and what V8 has compiled, if it has.
pub struct Recording {
    pub inputs: RecordedInputs,
    pub javascript: Option<Javascript>,
}

/// The JavaScript that ran, and how it was made from the source.
pub struct Javascript {
    /// Empty if the form says that it is the source.
    pub text: String,
    /// None if it is too long.
    pub form: Option<ScriptForm>,
}

impl Javascript {
    fn bytes(&self) -> usize {
        self.text.len() + self.form.as_ref().map_or(0, |form| form.as_bytes().len())
    }
}

impl Channel {
    pub fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            reader: RefCell::default(),
            state: Cell::default(),
            due: RefCell::default(),
            output_bytes_left: Cell::new(0),
            output_dropped: Cell::new(false),
        }
    }

    /// Waits for the next request. Returns it with its descriptor, if it has one.
    pub fn receive(&self) -> Result<(ToWorker<'static>, Option<OwnedFd>), RequestError> {
        let mut reader = self.reader.borrow_mut();
        if !reader.has_more() {
            self.flush();
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
        // What is due is of the other process.
        self.due.take();
        self.opened();
        self.flush();
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
        self.send_later(&FromWorker::Opened);
    }

    /// Sends a short message with the next one.
    pub fn send_later(&self, message: &FromWorker) {
        // Writing to memory does not fail.
        let _ = message.write_to(&mut *self.due.borrow_mut());
    }

    /// Reports that the run has completed with this result.
    pub fn completed(&self, run: RunNumber, recording: Option<Recording>, result: String) {
        self.ended(run, recording, Ok(result));
        let mut state = self.state.get();
        state.complete();
        self.state.set(state);
    }

    /// Reports that the run has failed, and exits.
    pub fn fail_and_quit(&self, run: RunNumber, recording: Option<Recording>, failure: Failure) -> ! {
        self.ended(run, recording, Err(failure));
        quit()
    }

    /// In one write, unless that is long, so that the server wakes up once.
    fn ended(&self, run: RunNumber, recording: Option<Recording>, outcome: Result<String, Failure>) {
        let (inputs, javascript) = recording.map_or((None, None), |recording| (Some(recording.inputs), recording.javascript));
        let is_short = outcome.as_ref().map_or(0, String::len) + javascript.as_ref().map_or(0, Javascript::bytes) < JOINED_BYTES_MAX;
        let javascript = javascript.map(|Javascript { text, form }| FromWorker::Javascript { run, text, form });
        let ended = FromWorker::Ended { run, outcome };
        self.flush();
        if is_short {
            let mut bytes = Vec::new();
            // Writing to memory does not fail.
            let _ = inputs.map(|inputs| FromWorker::write_inputs(&mut bytes, run, &inputs));
            let _ = javascript.map(|message| message.write_to(&mut bytes));
            let _ = ended.write_to(&mut bytes);
            return self.write(&bytes);
        }
        if let Some(inputs) = inputs
            && FromWorker::write_inputs(&mut Socket(self.socket.as_raw_fd()), run, &inputs).is_err()
        {
            quit();
        }
        javascript.iter().chain([&ended]).for_each(|message| self.send(message));
    }

    /// Reports why this worker can't serve, and exits.
    pub fn unfit_and_quit(&self, why: String) -> ! {
        self.send(&FromWorker::Unfit { why });
        quit()
    }

    /// Sends a message. Exits if the server has closed the socket.
    pub fn send(&self, message: &FromWorker) {
        let mut bytes = self.due.take();
        if bytes.is_empty() {
            if message.write_to(&mut Socket(self.socket.as_raw_fd())).is_err() {
                quit();
            }
            return;
        }
        // Writing to memory does not fail.
        let _ = message.write_to(&mut bytes);
        self.write(&bytes);
    }

    /// Sends an encoded message, without allocating memory.
    pub fn send_encoded(&self, message: &[u8]) {
        self.flush();
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

    /// Sends what is due.
    pub fn flush(&self) {
        let due = self.due.take();
        if !due.is_empty() {
            self.write(&due);
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
