//! The zygote as the server sees it: started, asked for forks, started again when it dies.

use crate::Artifacts;
use crate::engine::EngineInfo;
use crate::worker::Worker;
use heapstead_wire::control::{self, FromZygote, ToZygote};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot};

/// Where the zygote finds its control socket.
const CONTROL: i32 = 3;
/// V8 starts in a few milliseconds; a machine under heavy load gets this long.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Between two starts of a zygote that keeps dying.
const RESTART_PAUSE: Duration = Duration::from_millis(100);
/// Fork requests on their way; each belongs to a job that holds a slot.
const REQUESTS_MAX: usize = 1024;

#[derive(Debug, thiserror::Error)]
pub enum ZygoteError {
    #[error("the V8 host {path} can't be started: {error}")]
    Spawn { path: String, error: std::io::Error },
    #[error("a socket can't be made: {0}")]
    Socket(#[from] Errno),
    #[error("the engine refuses to run on this machine: {0}")]
    Unfit(String),
    #[error("the zygote ended before it was ready (is the V8 host the right one?)")]
    Died,
    #[error("the zygote did not get ready in {} s", START_TIMEOUT.as_secs())]
    TooSlow,
}

/// How a worker ended: what `wait` said of it.
pub type ExitStatus = i32;

pub struct ForkRequest {
    pub heap_mb: u32,
    pub answer: oneshot::Sender<Result<Worker, String>>,
}

#[derive(Clone)]
pub struct Zygote {
    requests: mpsc::Sender<ForkRequest>,
}

impl Zygote {
    /// Starts a zygote and a task that keeps one alive.
    pub async fn start(artifacts: Artifacts) -> Result<(Self, EngineInfo), ZygoteError> {
        let (process, info) = Process::start(&artifacts).await?;
        let (requests, incoming) = mpsc::channel(REQUESTS_MAX);
        tokio::spawn(keep_alive(artifacts, process, incoming));
        Ok((Self { requests }, info))
    }

    /// A new worker, confined and waiting for its start. An error when none can be had now.
    pub async fn fork(&self, heap_mb: u32) -> Result<Worker, String> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(ForkRequest { heap_mb, answer }).await.map_err(|_| "the engine is shut down".to_owned())?;
        answered.await.map_err(|_| "the zygote died".to_owned())?
    }
}

/// Serves requests through one zygote after another until the engine is dropped.
async fn keep_alive(artifacts: Artifacts, mut process: Process, mut incoming: mpsc::Receiver<ForkRequest>) {
    while process.serve(&mut incoming).await == Ended::Died {
        tracing::warn!("the zygote died; starting another");
        drop(process);
        process = loop {
            match Process::start(&artifacts).await {
                Ok((process, _)) => break process,
                Err(error) => {
                    tracing::error!(%error, "no zygote can be started");
                    tokio::time::sleep(RESTART_PAUSE).await;
                }
            }
        };
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Died,
    /// Nobody wants forks any more.
    Unneeded,
}

/// One zygote process.
struct Process {
    child: Child,
    control: AsyncFd<OwnedFd>,
    last_worker: u64,
    /// Forks asked for and not yet answered.
    pending: HashMap<u64, (OwnedFd, oneshot::Sender<Result<Worker, String>>)>,
    /// Workers alive, and who wants to know how they end.
    alive: HashMap<u64, oneshot::Sender<ExitStatus>>,
}

impl Process {
    async fn start(artifacts: &Artifacts) -> Result<(Self, EngineInfo), ZygoteError> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
        rustix::io::ioctl_fionbio(&theirs, false)?;
        let child = spawn(artifacts, &theirs)?;
        drop(theirs);
        // SAFETY: an owned descriptor keeps naming the same socket as long as it lives.
        let control = unsafe { AsyncFd::register(ours) }
            .map_err(|error| ZygoteError::Spawn { path: artifacts.host.display().to_string(), error: error.into() })?;
        let process = Self { child, control, last_worker: 0, pending: HashMap::new(), alive: HashMap::new() };
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

    async fn serve(&mut self, incoming: &mut mpsc::Receiver<ForkRequest>) -> Ended {
        loop {
            tokio::select! {
                message = self.receive() => match message {
                    Some((message, descriptor)) => self.take(message, descriptor),
                    None => return Ended::Died,
                },
                request = incoming.recv() => match request {
                    Some(request) => self.ask(request).await,
                    None => return Ended::Unneeded,
                },
            }
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

    async fn ask(&mut self, ForkRequest { heap_mb, answer }: ForkRequest) {
        let sockets = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let (ours, theirs) = match sockets {
            Ok(sockets) => sockets,
            Err(error) => {
                let _ = answer.send(Err(format!("a socket can't be made: {error}")));
                return;
            }
        };
        self.last_worker += 1;
        let worker = self.last_worker;
        let sent = loop {
            let Ok(mut ready) = self.control.writable().await else { break false };
            let message = ToZygote::Fork { worker, heap_mb };
            match ready.try_io(|control| Ok(control::send(control.get_ref(), &message, Some(theirs.as_fd()))?)) {
                Ok(sent) => break sent.is_ok(),
                Err(_would_block) => {}
            }
        };
        if sent {
            self.pending.insert(worker, (ours, answer));
        } else {
            let _ = answer.send(Err("the zygote died".into()));
        }
    }

    fn take(&mut self, message: FromZygote, descriptor: Option<OwnedFd>) {
        match message {
            FromZygote::Forked { worker, pid } => {
                let Some((socket, answer)) = self.pending.remove(&worker) else { return };
                let (exited, exit) = oneshot::channel();
                self.alive.insert(worker, exited);
                let made = match descriptor {
                    Some(pidfd) => Worker::new(pid, socket, pidfd, exit).map_err(|error| error.to_string()),
                    None => Err("no pidfd came with the worker".into()),
                };
                // A job that was cancelled meanwhile drops its worker, which kills it.
                let _ = answer.send(made);
            }
            FromZygote::NotForked { worker, why } => {
                if let Some((_, answer)) = self.pending.remove(&worker) {
                    let _ = answer.send(Err(why));
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
        // Code sees UTC wherever it runs; without this V8 would look for the machine's zone in files it can't open.
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let control = control.as_raw_fd();
    // SAFETY: between fork and exec only async-signal-safe calls are made.
    unsafe {
        command.pre_exec(move || {
            if control == CONTROL {
                // Already in its place: only the close-on-exec flag has to go.
                libc::fcntl(CONTROL, libc::F_SETFD, 0);
            } else if libc::dup2(control, CONTROL) != CONTROL {
                return Err(std::io::Error::last_os_error());
            }
            libc::close_range(CONTROL as u32 + 1, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32);
            Ok(())
        });
    }
    command.spawn().map_err(|error| ZygoteError::Spawn { path: artifacts.host.display().to_string(), error })
}
