//! A worker's end of its socket: starts come in, frames go out.

use heapstead_types::Failure;
use heapstead_wire::{Frame, Start, StartError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::Cell;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

pub struct Session {
    socket: OwnedFd,
    output_bytes_left: Cell<u64>,
    dropping: Cell<bool>,
}

impl Session {
    pub fn new(socket: OwnedFd) -> Self {
        Self { socket, output_bytes_left: Cell::new(0), dropping: Cell::new(false) }
    }

    pub fn receive(&self) -> Result<(Start, String, Vec<OwnedFd>), StartError> {
        let (start, code, descriptors) = Start::receive(&self.socket)?;
        self.output_bytes_left.set(start.output_bytes_max);
        self.dropping.set(false);
        Ok((start, code, descriptors))
    }

    /// Sends a frame. A server that is gone has no use for this process any more.
    pub fn send(&self, frame: &Frame) {
        if frame.write_to(&mut Socket(self.socket.as_raw_fd())).is_err() {
            quit();
        }
    }

    /// Sends a frame that was made before.
    pub fn send_bytes(&self, frame: &[u8]) {
        if Socket(self.socket.as_raw_fd()).write_all(frame).is_err() {
            quit();
        }
    }

    /// Sends console output at once, up to the cap; what is past it is dropped and said once.
    pub fn output(&self, text: &str) {
        if self.dropping.get() {
            return;
        }
        let left = self.output_bytes_left.get();
        let fitting = text.floor_char_boundary(usize::try_from(left).unwrap_or(usize::MAX));
        if Frame::write_output(&mut Socket(self.socket.as_raw_fd()), &text.as_bytes()[..fitting]).is_err() {
            quit();
        }
        self.output_bytes_left.set(left - fitting as u64);
        if fitting < text.len() {
            self.dropping.set(true);
            self.send(&Frame::Dropped);
        }
    }

    /// Sleeps, or quits when the server is gone meanwhile.
    pub fn sleep(&self, duration: Duration) {
        let timeout = Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) };
        let mut watched = [PollFd::new(&self.socket, PollFlags::empty())];
        if let Ok(1..) = poll(&mut watched, Some(&timeout)) {
            quit();
        }
    }

    /// The last word of a worker that can't go on.
    pub fn fail_and_quit(&self, failure: Failure) -> ! {
        self.send(&Frame::Failed(failure));
        quit()
    }
}

struct Socket(RawFd);

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // SAFETY: the descriptor is the session's own and open as long as it lives.
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
