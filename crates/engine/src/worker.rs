//! One worker: its socket, its pidfd, and how it ended.

use crate::zygote::ExitStatus;
use heapstead_types::Failure;
use heapstead_wire::{Decoder, FromWorker, send_with_descriptors};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};
use std::io::{ErrorKind, Result};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::sync::oneshot;

#[derive(Debug)]
pub struct Worker {
    pid: Option<i32>,
    socket: UnixStream,
    pidfd: AsyncFd<OwnedFd>,
    exit: Exit,
    zygote: ZygoteLife,
}

/// The control socket of the zygote that forked a worker, or forked what the worker is a clone of.
#[derive(Debug, Clone)]
pub struct ZygoteLife(pub Arc<AsyncFd<OwnedFd>>);

impl ZygoteLife {
    /// Whether the zygote has ended. The kernel closes its socket before it kills the processes of its PID namespace, so this is known before the
    /// end of any of them is.
    fn is_over(&self) -> bool {
        let mut watched = [PollFd::new(self.0.get_ref(), PollFlags::empty())];
        matches!(poll(&mut watched, Some(&NOW)), Ok(1..)) && watched[0].revents().contains(PollFlags::HUP)
    }
}

/// Where its exit status comes from.
#[derive(Debug)]
enum Exit {
    /// The zygote, which forked it.
    Reported(oneshot::Receiver<ExitStatus>),
    /// The kernel, for a clone of a worker.
    OfClone,
}

impl Worker {
    pub fn new(socket: OwnedFd, pidfd: OwnedFd, exit: oneshot::Receiver<ExitStatus>, zygote: ZygoteLife) -> Result<Self> {
        Self::with_exit(socket, pidfd, Exit::Reported(exit), zygote)
    }

    /// A clone of this worker.
    pub fn cloned(&self, socket: OwnedFd, pidfd: OwnedFd) -> Result<Self> {
        Self::with_exit(socket, pidfd, Exit::OfClone, self.zygote.clone())
    }

    fn with_exit(socket: OwnedFd, pidfd: OwnedFd, exit: Exit, zygote: ZygoteLife) -> Result<Self> {
        let socket = StdStream::from(socket);
        socket.set_nonblocking(true)?;
        // SAFETY: an owned descriptor keeps naming the same process as long as it lives.
        let pidfd = unsafe { AsyncFd::register(pidfd) }?;
        Ok(Self { pid: pid_of(&pidfd), socket: UnixStream::from_std(socket)?, pidfd, exit, zygote })
    }

    /// Its process id, for the log. None if it had already exited when it was forked.
    pub fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// Sends encoded requests, with the descriptors attached to the first byte.
    pub async fn send(&self, requests: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        let mut sent = 0;
        while sent < requests.len() {
            self.socket.writable().await?;
            let attached = if sent == 0 { descriptors } else { &[] };
            match self.socket.try_io(Interest::WRITABLE, || Ok(send_with_descriptors(&self.socket, &requests[sent..], attached)?)) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads what has arrived, with a plain `read`, so this process never receives descriptors that a worker might send. `ConnectionReset` means
    /// that the worker exited with requests unread.
    pub async fn read(&self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            self.socket.readable().await?;
            match self.socket.try_read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    pub fn kill(&self) {
        let _ = pidfd_send_signal(self.pidfd.get_ref(), Signal::KILL);
    }

    /// Waits until the process is dead, reaped or not.
    pub async fn dead(&self) -> Result<()> {
        self.pidfd.readable().await.map(drop)
    }

    /// Whether the process has ended.
    pub fn is_dead(&self) -> bool {
        let mut watched = [PollFd::new(self.pidfd.get_ref(), PollFlags::IN)];
        matches!(poll(&mut watched, Some(&NOW)), Ok(1..))
    }

    /// Waits until the process has ended, and says how.
    pub async fn end(&mut self) -> WorkerEnd {
        let is_clone = matches!(self.exit, Exit::OfClone);
        match self.exit_status().await {
            None if !is_clone => WorkerEnd::WithZygote,
            // The kernel tells the status of a clone, but not who killed it.
            status if is_clone && status.is_none_or(|status| signal_of(status) == Some(libc::SIGKILL)) && self.zygote.is_over() => {
                WorkerEnd::WithZygote
            }
            status => WorkerEnd::OfItsOwn { signal: status.and_then(signal_of) },
        }
    }

    /// Waits until the process has ended. Returns its exit status, if that is known: not if the zygote is dead too, and not that of a clone on a
    /// kernel before 6.15.
    pub async fn exit_status(&mut self) -> Option<ExitStatus> {
        match &mut self.exit {
            Exit::Reported(exit) => exit.await.ok(),
            Exit::OfClone => {
                self.dead().await.ok()?;
                pidfd_exit_status(self.pidfd.get_ref()).await
            }
        }
    }
}

/// How a worker has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEnd {
    /// By itself, or by this signal if that is known.
    OfItsOwn { signal: Option<i32> },
    /// Because its zygote did.
    WithZygote,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The process id as this process sees it. The zygote sees another one, in its own PID namespace.
fn pid_of(pidfd: &AsyncFd<OwnedFd>) -> Option<i32> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    info.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok()).filter(|pid| *pid > 0)
}

/// The kernel knows the exit status once the zygote has reaped the process, which takes a moment.
async fn pidfd_exit_status(pidfd: &OwnedFd) -> Option<ExitStatus> {
    for _ in 0..REAP_TRIES {
        // SAFETY: all zeros is a valid value.
        let mut info: libc::pidfd_info = unsafe { std::mem::zeroed() };
        info.mask = u64::from(libc::PIDFD_INFO_EXIT);
        // SAFETY: a live structure, which the kernel fills in.
        match unsafe { libc::ioctl(pidfd.as_raw_fd(), libc::PIDFD_GET_INFO, &raw mut info) } {
            // While the process is being reaped, the kernel may find neither the process nor its status.
            -1 if std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH) => {}
            -1 => return None,
            _ if info.mask & u64::from(libc::PIDFD_INFO_EXIT) != 0 => return Some(info.exit_code),
            _ => {}
        }
        tokio::time::sleep(REAP_PAUSE).await;
    }
    None
}

/// For `poll`: does not wait.
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
const REAP_TRIES: usize = 1000;
const REAP_PAUSE: Duration = Duration::from_millis(1);
/// Read buffer for the message of a worker that refused its requests.
const REASON_BYTES: usize = 4096;

/// Why a worker refused its requests, if it sent a reason before it exited: for example, it could not be confined.
pub async fn reason_of(worker: &Worker) -> Option<Failure> {
    worker.kill();
    // A `Vec`, because an array would enlarge the future of every job, which is moved a few times.
    let (mut decoder, mut buffer) = (Decoder::default(), vec![0; REASON_BYTES]);
    while let Ok(count @ 1..) = worker.read(&mut buffer).await {
        decoder.push(&buffer[..count]);
    }
    while let Ok(Some(message)) = decoder.next_message() {
        if let FromWorker::Unfit { why } = message {
            return Some(Failure::NoWorker(why));
        }
    }
    None
}

/// The signal that ended the process, if one did.
pub fn signal_of(status: ExitStatus) -> Option<i32> {
    libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
}
