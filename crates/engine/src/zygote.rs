//! The zygote as the server sees it: started, asked for forks, started again when it dies.

use crate::engine::EngineInfo;
use crate::worker::Worker;
use crate::{Artifacts, Spares};
use heapstead_wire::control::{self, FromZygote, ToZygote};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::{HashMap, VecDeque};
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
/// Zygotes that a job asks for its worker, each dead before it answered.
const ZYGOTES_MAX: usize = 3;
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
    pub async fn start(artifacts: Artifacts, spares: Spares) -> Result<(Self, EngineInfo), ZygoteError> {
        let (process, info) = Process::start(&artifacts, spares).await?;
        let (requests, incoming) = mpsc::channel(REQUESTS_MAX);
        tokio::spawn(keep_alive(artifacts, spares, process, incoming));
        Ok((Self { requests }, info))
    }

    /// A new worker, confined and waiting for its start. An error when none can be had now.
    pub async fn fork(&self, heap_mb: u32) -> Result<Worker, String> {
        for _ in 0..ZYGOTES_MAX {
            let (answer, answered) = oneshot::channel();
            self.requests.send(ForkRequest { heap_mb, answer }).await.map_err(|_| "the engine is shut down".to_owned())?;
            // No answer: the zygote died with the request. Nothing has run, so the next one is asked.
            if let Ok(answer) = answered.await {
                return answer;
            }
        }
        Err("the zygote died".into())
    }
}

/// Serves requests through one zygote after another until the engine is dropped.
async fn keep_alive(artifacts: Artifacts, spares: Spares, mut process: Process, mut incoming: mpsc::Receiver<ForkRequest>) {
    while process.serve(&mut incoming).await == Ended::Died {
        tracing::warn!("the zygote died; starting another");
        drop(process);
        process = loop {
            match Process::start(&artifacts, spares).await {
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
    /// Forks asked for and not yet answered: our end of the worker's socket, and who asked.
    pending: HashMap<u64, (OwnedFd, Asker)>,
    wanted: Spares,
    spares: VecDeque<Worker>,
    /// After a refused fork nothing is forked ahead until one succeeds again: what is short is for jobs.
    refused: bool,
    /// Workers alive, and who wants to know how they end.
    alive: HashMap<u64, oneshot::Sender<ExitStatus>>,
}

enum Asker {
    Job(oneshot::Sender<Result<Worker, String>>),
    /// Nobody yet.
    Spare,
}

impl Process {
    async fn start(artifacts: &Artifacts, wanted: Spares) -> Result<(Self, EngineInfo), ZygoteError> {
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
            pending: HashMap::new(),
            wanted,
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

    async fn serve(&mut self, incoming: &mut mpsc::Receiver<ForkRequest>) -> Ended {
        loop {
            if !self.fork_spares().await {
                return Ended::Died;
            }
            tokio::select! {
                message = self.receive() => match message {
                    Some((message, descriptor)) => self.take(message, descriptor),
                    None => return Ended::Died,
                },
                request = incoming.recv() => match request {
                    Some(request) => {
                        if !self.serve_job(request).await {
                            return Ended::Died;
                        }
                    }
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

    /// False when the zygote is dead; whoever asked then gets no answer.
    async fn serve_job(&mut self, ForkRequest { heap_mb, answer }: ForkRequest) -> bool {
        let fitting = || if heap_mb == self.wanted.heap_mb { self.spares.pop_front() } else { None };
        let spare = std::iter::from_fn(fitting).find(|worker| !worker.is_dead());
        match spare {
            Some(worker) => {
                let _ = answer.send(Ok(worker));
                true
            }
            None => self.ask(heap_mb, Asker::Job(answer)).await,
        }
    }

    /// False when the zygote is dead.
    async fn fork_spares(&mut self) -> bool {
        if self.refused {
            return true;
        }
        let coming = self.pending.values().filter(|(_, asker)| matches!(asker, Asker::Spare)).count();
        for _ in self.spares.len() + coming..self.wanted.count {
            if !self.ask(self.wanted.heap_mb, Asker::Spare).await {
                return false;
            }
        }
        true
    }

    /// Asks the zygote for a worker. False when it is dead.
    async fn ask(&mut self, heap_mb: u32, asker: Asker) -> bool {
        let sockets = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let (ours, theirs) = match sockets {
            Ok(sockets) => sockets,
            Err(error) => {
                asker.refuse(format!("a socket can't be made: {error}"));
                return true;
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
            self.pending.insert(worker, (ours, asker));
        }
        sent
    }

    fn take(&mut self, message: FromZygote, descriptor: Option<OwnedFd>) {
        match message {
            FromZygote::Forked { worker, pid } => {
                let Some((socket, asker)) = self.pending.remove(&worker) else { return };
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
                if let Some((_, asker)) = self.pending.remove(&worker) {
                    asker.refuse(why);
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
