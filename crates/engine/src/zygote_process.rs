//! One zygote process: started, asked for forks, and abandoned when it dies or no longer answers.

use crate::engine::EngineInfo;
use crate::worker::Worker;
use crate::zygote::{ExitStatus, ForkRequest, ZygoteError};
use crate::{Artifacts, Config, Spares};
use heapstead_wire::control::{self, FromZygote, ToZygote};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

/// Where the zygote finds its control socket.
const CONTROL: i32 = 3;
/// V8 starts in a few milliseconds; a machine under heavy load gets this long.
pub const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Why a zygote is no longer used.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    Died,
    /// It did not answer a request in time.
    Silent,
    /// The engine was dropped.
    Unneeded,
}

/// One zygote process.
pub struct Process {
    child: Child,
    control: AsyncFd<OwnedFd>,
    last_worker: u64,
    /// Forks asked for and not yet answered, in the order they were asked for.
    pending: BTreeMap<u64, Pending>,
    fork_timeout: Duration,
    wanted: Spares,
    spares: VecDeque<Worker>,
    /// A fork was refused: no spares are forked until one succeeds again, so that jobs get what is left.
    refused: bool,
    /// Workers that are alive, and where to send their exit status.
    alive: HashMap<u64, oneshot::Sender<ExitStatus>>,
}

struct Pending {
    /// Our end of the worker's socket.
    socket: OwnedFd,
    asker: Asker,
    asked: Instant,
}

enum Asker {
    Job(oneshot::Sender<Result<Worker, String>>),
    /// A worker forked ahead of need.
    Spare,
}

impl Process {
    pub async fn start(config: &Config) -> Result<(Self, EngineInfo), ZygoteError> {
        let artifacts = &config.artifacts;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
        rustix::io::ioctl_fionbio(&theirs, false)?;
        let child = spawn(artifacts, &theirs)?;
        drop(theirs);
        // SAFETY: an owned descriptor keeps naming the same socket as long as it lives.
        let control = unsafe { AsyncFd::register(ours) }
            .map_err(|error| ZygoteError::Spawn { path: artifacts.host.display().to_string(), error: error.into() })?;
        let process = Self {
            child,
            control,
            last_worker: 0,
            pending: BTreeMap::new(),
            fork_timeout: config.fork_timeout,
            wanted: config.spares,
            spares: VecDeque::new(),
            refused: false,
            alive: HashMap::new(),
        };
        match tokio::time::timeout(START_TIMEOUT, process.receive()).await {
            Err(_) => Err(ZygoteError::TooSlow),
            Ok(Some((FromZygote::Ready { engine, natives }, _))) => match engine.parse() {
                Ok(id) => Ok((process, EngineInfo { id, natives })),
                Err(_) => Err(ZygoteError::Died),
            },
            Ok(Some((FromZygote::Unfit { why }, _))) => Err(ZygoteError::Unfit(why)),
            Ok(_) => Err(ZygoteError::Died),
        }
    }

    /// Serves requests until this zygote is to be abandoned. Requests that are still waiting then get no answer.
    pub async fn serve(&mut self, incoming: &mut mpsc::Receiver<ForkRequest>) -> Ended {
        loop {
            if let Err(ended) = self.serve_once(incoming).await {
                return ended;
            }
        }
    }

    async fn serve_once(&mut self, incoming: &mut mpsc::Receiver<ForkRequest>) -> Result<(), Ended> {
        self.fork_spares().await?;
        let overdue = self.pending.values().next().map(|oldest| oldest.asked + self.fork_timeout);
        tokio::select! {
            // Answers first: one that has arrived is in time.
            biased;
            message = self.receive() => {
                let (message, descriptor) = message.ok_or(Ended::Died)?;
                self.take(message, descriptor);
                Ok(())
            }
            request = incoming.recv() => self.serve_job(request.ok_or(Ended::Unneeded)?).await,
            () = at(overdue) => Err(Ended::Silent),
        }
    }

    async fn receive(&self) -> Option<(FromZygote, Option<OwnedFd>)> {
        loop {
            let mut ready = self.control.readable().await.ok()?;
            match ready.try_io(|control| Ok(control::receive(control.get_ref())?)) {
                Ok(received) => return received.ok()?,
                Err(_would_block) => {}
            }
        }
    }

    async fn serve_job(&mut self, ForkRequest { heap_mb, answer }: ForkRequest) -> Result<(), Ended> {
        let fitting = || if heap_mb == self.wanted.heap_mb { self.spares.pop_front() } else { None };
        let spare = std::iter::from_fn(fitting).find(|worker| !worker.is_dead());
        match spare {
            Some(worker) => {
                let _ = answer.send(Ok(worker));
                Ok(())
            }
            None => self.ask(heap_mb, Asker::Job(answer)).await,
        }
    }

    async fn fork_spares(&mut self) -> Result<(), Ended> {
        if self.refused {
            return Ok(());
        }
        let coming = self.pending.values().filter(|pending| matches!(pending.asker, Asker::Spare)).count();
        for _ in self.spares.len() + coming..self.wanted.count {
            self.ask(self.wanted.heap_mb, Asker::Spare).await?;
        }
        Ok(())
    }

    /// Asks the zygote for a worker.
    async fn ask(&mut self, heap_mb: u32, asker: Asker) -> Result<(), Ended> {
        let sockets = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let (ours, theirs) = match sockets {
            Ok(sockets) => sockets,
            Err(error) => {
                asker.refuse(format!("a socket can't be made: {error}"));
                return Ok(());
            }
        };
        self.last_worker += 1;
        let worker = self.last_worker;
        let message = ToZygote::Fork { worker, heap_mb };
        match tokio::time::timeout(self.fork_timeout, self.send(&message, theirs.as_fd())).await {
            Err(_) => return Err(Ended::Silent),
            Ok(Err(_)) => return Err(Ended::Died),
            Ok(Ok(())) => {}
        }
        self.pending.insert(worker, Pending { socket: ours, asker, asked: Instant::now() });
        Ok(())
    }

    async fn send(&self, message: &ToZygote, descriptor: BorrowedFd<'_>) -> std::io::Result<()> {
        loop {
            let mut ready = self.control.writable().await?;
            match ready.try_io(|control| Ok(control::send(control.get_ref(), message, Some(descriptor))?)) {
                Ok(sent) => return sent,
                Err(_would_block) => {}
            }
        }
    }

    fn take(&mut self, message: FromZygote, descriptor: Option<OwnedFd>) {
        match message {
            FromZygote::Forked { worker, pid } => {
                let Some(Pending { socket, asker, .. }) = self.pending.remove(&worker) else { return };
                self.refused = false;
                let (exited, exit) = oneshot::channel();
                self.alive.insert(worker, exited);
                let made = match descriptor {
                    Some(pidfd) => Worker::new(pid, socket, pidfd, exit).map_err(|error| error.to_string()),
                    None => Err("no pidfd came with the worker".into()),
                };
                match (asker, made) {
                    // A job that was cancelled meanwhile drops its worker, which kills it.
                    (Asker::Job(answer), made) => drop(answer.send(made)),
                    (Asker::Spare, Ok(worker)) => self.spares.push_back(worker),
                    (Asker::Spare, Err(why)) => Asker::Spare.refuse(why),
                }
            }
            FromZygote::NotForked { worker, why } => {
                self.refused = true;
                if let Some(pending) = self.pending.remove(&worker) {
                    pending.asker.refuse(why);
                }
            }
            FromZygote::Exited { worker, wait_status } => {
                if let Some(exited) = self.alive.remove(&worker) {
                    let _ = exited.send(wait_status);
                }
            }
            FromZygote::Ready { .. } | FromZygote::Unfit { .. } => {}
        }
    }
}

/// Waits until `instant`; for ever, where there is none.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

impl Asker {
    fn refuse(self, why: String) {
        match self {
            Self::Job(answer) => drop(answer.send(Err(why))),
            Self::Spare => tracing::warn!(why, "no worker could be forked ahead"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the V8 host with the worker library in it, an empty environment, and nothing open but the control socket.
fn spawn(artifacts: &Artifacts, control: &OwnedFd) -> Result<Child, ZygoteError> {
    let mut command = Command::new(&artifacts.host);
    command
        .args(["zygote".as_ref(), artifacts.base_heap.as_os_str()])
        .env_clear()
        .env("LD_PRELOAD", &artifacts.worker)
        // Symbols are looked up once, here, and not by every worker.
        .env("LD_BIND_NOW", "1")
        // Code sees UTC wherever it runs; without this V8 would look for the machine's zone in files it can't open.
        .env("TZ", "UTC")
        // Ctrl-C on a terminal is for the server, which cancels what runs; the zygote ends with it.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let control = control.as_raw_fd();
    // SAFETY: between fork and exec only async-signal-safe calls are made.
    unsafe {
        command.pre_exec(move || {
            if control == CONTROL {
                // Already in its place: only the close-on-exec flag has to go.
                if libc::fcntl(CONTROL, libc::F_SETFD, 0) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
            } else if libc::dup2(control, CONTROL) != CONTROL {
                return Err(std::io::Error::last_os_error());
            }
            // What the server has open is none of the zygote's business: where that can't be kept from it, there is no zygote.
            match libc::close_range(CONTROL as u32 + 1, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    command.spawn().map_err(|error| ZygoteError::Spawn { path: artifacts.host.display().to_string(), error })
}
