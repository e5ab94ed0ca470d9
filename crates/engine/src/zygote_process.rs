//! One zygote process: starts it, sends it fork requests, and abandons it when it dies or does not answer in time.

use crate::cgroup::WorkerGroup;
use crate::engine::EngineInfo;
use crate::live::CloneCount;
use crate::worker::{Worker, ZygoteLife};
use crate::zygote::{ExitStatus, ForkRequest, ZygoteError};
use crate::{Config, Namespaces, Spares};
use heapstead_wire::control::{self, FromZygote, OptionalLayer, StatefulJit, ToZygote};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpgid};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

/// The names of the layers that an operator may require. A mount namespace removes the files of the machine only with an empty root directory.
const NAMESPACES: [&str; 2] = ["namespaces", "empty root directory"];
/// The zygote's descriptor for its control socket.
const CONTROL: i32 = 3;
/// V8 starts in a few milliseconds. This is for machines under heavy load.
pub const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Why a zygote is no longer used.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    Died,
    /// It did not answer a request in time.
    Silent,
    /// The engine was dropped.
    EngineDropped,
}

/// What a zygote reports when it is ready.
pub struct Started {
    pub info: EngineInfo,
    /// The layers of confinement that not every kernel has.
    pub layers: Vec<OptionalLayer>,
    pub stateful_jit: StatefulJit,
    /// Whether workers can be live, or why not.
    pub live: Result<(), String>,
}

/// One zygote process.
pub struct Process {
    family: Family,
    control: Arc<AsyncFd<OwnedFd>>,
    last_worker: u64,
    /// Unanswered fork requests, in order.
    pending: BTreeMap<u64, Pending>,
    fork_timeout: Duration,
    wanted: Spares,
    spares: VecDeque<Worker>,
    /// A fork was refused. No spares are forked until a fork succeeds again, so that jobs get the remaining resources.
    refused: bool,
    /// Live workers, and where to send their exit status.
    alive: HashMap<u64, oneshot::Sender<ExitStatus>>,
    /// Live workers and their clones.
    families: HashMap<u64, Arc<CloneCount>>,
}

struct Pending {
    /// The server's end of the worker's socket.
    socket: OwnedFd,
    requester: Requester,
    asked: Instant,
}

enum Requester {
    Job(oneshot::Sender<Result<Worker, String>>),
    /// A worker forked ahead of need.
    Spare,
}

impl Process {
    pub async fn start(config: &Config, group: Option<&WorkerGroup>) -> Result<(Self, Started), ZygoteError> {
        let artifacts = &config.artifacts;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
        rustix::io::ioctl_fionbio(&theirs, false)?;
        let family = spawn(config, &theirs, group)?;
        drop(theirs);
        // SAFETY: an owned descriptor keeps naming the same socket as long as it lives.
        let control = unsafe { AsyncFd::register(ours) }
            .map_err(|error| ZygoteError::Spawn { path: artifacts.host.display().to_string(), error: error.into() })?;
        let mut process = Self {
            family,
            control: Arc::new(control),
            last_worker: 0,
            pending: BTreeMap::new(),
            fork_timeout: config.fork_timeout,
            wanted: config.spares,
            spares: VecDeque::new(),
            refused: false,
            alive: HashMap::new(),
            families: HashMap::new(),
        };
        match tokio::time::timeout(START_TIMEOUT, process.receive()).await {
            Err(_) => Err(ZygoteError::TooSlow),
            Ok(Some((FromZygote::Ready { engine, natives, layers, stateful_jit, live, cloned }, _))) => {
                process.family.is_ready(cloned);
                check_required(config.namespaces, &layers)?;
                let id = engine.parse().map_err(|_| ZygoteError::Died)?;
                Ok((process, Started { info: EngineInfo { id, natives }, layers, stateful_jit, live }))
            }
            Ok(Some((FromZygote::Unfit { why }, _))) => Err(ZygoteError::Unfit(why)),
            Ok(_) => Err(ZygoteError::Died),
        }
    }

    /// Serves requests until this zygote is abandoned. Requests that are still waiting then get no answer.
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
            // Answers first, because an answer that has arrived is in time.
            biased;
            message = self.receive() => {
                let (message, descriptor) = message.ok_or(Ended::Died)?;
                self.take(message, descriptor).await
            }
            request = incoming.recv() => self.serve_job(request.ok_or(Ended::EngineDropped)?).await,
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

    async fn serve_job(&mut self, ForkRequest { heap_mb, live, answer }: ForkRequest) -> Result<(), Ended> {
        let fitting = || if heap_mb == self.wanted.heap_mb && live.is_none() { self.spares.pop_front() } else { None };
        let spare = std::iter::from_fn(fitting).find(|worker| !worker.is_dead());
        match spare {
            Some(worker) => {
                let _ = answer.send(Ok(worker));
                Ok(())
            }
            None => self.ask(heap_mb, live, Requester::Job(answer)).await,
        }
    }

    async fn fork_spares(&mut self) -> Result<(), Ended> {
        if self.refused {
            return Ok(());
        }
        let coming = self.pending.values().filter(|pending| matches!(pending.requester, Requester::Spare)).count();
        for _ in self.spares.len() + coming..self.wanted.count {
            self.ask(self.wanted.heap_mb, None, Requester::Spare).await?;
        }
        Ok(())
    }

    /// Sends a fork request to the zygote.
    async fn ask(&mut self, heap_mb: u32, live: Option<Arc<CloneCount>>, requester: Requester) -> Result<(), Ended> {
        let sockets = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let (ours, theirs) = match sockets {
            Ok(sockets) => sockets,
            Err(error) => {
                requester.refuse(format!("a socket can't be made: {error}"));
                return Ok(());
            }
        };
        self.last_worker += 1;
        let worker = self.last_worker;
        self.tell(&ToZygote::Fork { worker, heap_mb, live: live.is_some() }, Some(theirs.as_fd())).await?;
        // Known before the worker can be cloned.
        if let Some(clones) = live {
            self.families.insert(worker, clones);
        }
        self.pending.insert(worker, Pending { socket: ours, requester, asked: Instant::now() });
        Ok(())
    }

    async fn tell(&self, message: &ToZygote, descriptor: Option<BorrowedFd<'_>>) -> Result<(), Ended> {
        match tokio::time::timeout(self.fork_timeout, self.send(message, descriptor)).await {
            Err(_) => Err(Ended::Silent),
            Ok(Err(_)) => Err(Ended::Died),
            Ok(Ok(())) => Ok(()),
        }
    }

    async fn send(&self, message: &ToZygote, descriptor: Option<BorrowedFd<'_>>) -> std::io::Result<()> {
        loop {
            let mut ready = self.control.writable().await?;
            match ready.try_io(|control| Ok(control::send(control.get_ref(), message, descriptor)?)) {
                Ok(sent) => return sent,
                Err(_would_block) => {}
            }
        }
    }

    async fn take(&mut self, message: FromZygote, descriptor: Option<OwnedFd>) -> Result<(), Ended> {
        match message {
            FromZygote::Forked { worker } => {
                let Some(Pending { socket, requester, .. }) = self.pending.remove(&worker) else { return Ok(()) };
                self.refused = false;
                let (exited, exit) = oneshot::channel();
                self.alive.insert(worker, exited);
                let made = match descriptor {
                    Some(pidfd) => Worker::new(socket, pidfd, exit, ZygoteLife(self.control.clone())).map_err(|error| error.to_string()),
                    None => Err("no pidfd came with the worker".into()),
                };
                match (requester, made) {
                    // A job that was cancelled meanwhile drops its worker, which kills the worker.
                    (Requester::Job(answer), made) => drop(answer.send(made)),
                    (Requester::Spare, Ok(worker)) => self.spares.push_back(worker),
                    (Requester::Spare, Err(why)) => Requester::Spare.refuse(why),
                }
            }
            FromZygote::NotForked { worker, why } => {
                self.refused = true;
                self.families.remove(&worker);
                if let Some(pending) = self.pending.remove(&worker) {
                    pending.requester.refuse(why);
                }
            }
            FromZygote::Exited { worker, wait_status } => {
                if let Some(exited) = self.alive.remove(&worker) {
                    let _ = exited.send(wait_status);
                }
            }
            FromZygote::Cloned { worker } => {
                if self.families.get(&worker).is_some_and(|clones| !clones.allow()) {
                    tracing::warn!(worker, "a live worker was cloned and nobody asked for it; it is killed");
                    self.tell(&ToZygote::KillFamily { worker }, None).await?;
                }
            }
            FromZygote::FamilyEnded { worker } => drop(self.families.remove(&worker)),
            FromZygote::Ready { .. } | FromZygote::Unfit { .. } => {}
        }
        Ok(())
    }
}

/// Waits until `instant`, or forever if there is none.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

impl Requester {
    fn refuse(self, why: String) {
        match self {
            Self::Job(answer) => drop(answer.send(Err(why))),
            Self::Spare => tracing::warn!(why, "no worker could be forked ahead"),
        }
    }
}

fn check_required(namespaces: Namespaces, layers: &[OptionalLayer]) -> Result<(), ZygoteError> {
    let mut required = layers.iter().filter(|layer| NAMESPACES.contains(&layer.name.as_str()));
    let missing = required.find_map(|layer| Some(format!("{}: {}", layer.name, layer.outcome.as_ref().err()?)));
    match (namespaces, missing) {
        (Namespaces::Required, Some(missing)) => Err(ZygoteError::NoNamespaces(missing)),
        _ => Ok(()),
    }
}

/// The process that this server started, and its clone in a PID namespace, if it is one. They and all workers are a process group.
struct Family {
    started: Child,
    group: Pid,
}

impl Family {
    /// The zygote is ready. If it is a clone, the process that was started exits, if it has not done so yet.
    fn is_ready(&mut self, cloned: bool) {
        if cloned {
            let _ = self.started.wait();
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        // The group exists as long as one of its processes was not waited for, so its number is not reused meanwhile.
        let _ = kill_process_group(self.group, Signal::KILL);
        while matches!(waitpgid(self.group, WaitOptions::empty()), Ok(Some(_)) | Err(Errno::INTR)) {}
    }
}

/// Writes a short text to a file of the kernel, between fork and exec.
fn write_in_child(path: &CStr, text: &[u8]) -> std::io::Result<()> {
    // SAFETY: both calls are async-signal-safe, and the pointers are valid for their lengths.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        let written = if file < 0 { -1 } else { libc::write(file, text.as_ptr().cast(), text.len()) };
        if written == text.len() as isize { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }
}

/// Starts the V8 host with the worker library preloaded, no other environment variables of the server, and only the control socket open.
fn spawn(config: &Config, control: &OwnedFd, group: Option<&WorkerGroup>) -> Result<Family, ZygoteError> {
    let artifacts = &config.artifacts;
    let entrance = group.and_then(|group| CString::new(group.entrance().into_os_string().into_vec()).ok());
    let mut command = Command::new(&artifacts.host);
    command
        .args(["zygote".as_ref(), artifacts.base_heap.as_os_str(), config.settings.to_word().as_ref()])
        .env_clear()
        .env("LD_PRELOAD", &artifacts.worker)
        // Symbols are resolved once, in the zygote, and not in every worker.
        .env("LD_BIND_NOW", "1")
        // The time zone is UTC on every machine. Without this, V8 would read the machine's time zone from files that it can't open.
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let control = control.as_raw_fd();
    // SAFETY: between fork and exec only async-signal-safe calls are made.
    unsafe {
        command.pre_exec(move || {
            if control == CONTROL {
                // The descriptor is already the right one. Only its close-on-exec flag is cleared.
                if libc::fcntl(CONTROL, libc::F_SETFD, 0) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
            } else if libc::dup2(control, CONTROL) != CONTROL {
                return Err(std::io::Error::last_os_error());
            }
            // Ctrl-C on a terminal must reach only the server, which cancels its runs. The zygote ends with the server. It stays in the session
            // of the server: where the kernel shares the cores between sessions (autogroup), all workers would have one share, whoever they
            // belong to, and a short run of one owner would wait for the loops of another.
            if libc::setpgid(0, 0) == -1 {
                return Err(std::io::Error::last_os_error());
            }
            // If the machine runs out of memory, the kernel kills workers before anything else. Workers inherit it. Where `/proc` can't be
            // written, `warn_without_oom_score` says so.
            let _ = write_in_child(c"/proc/self/oom_score_adj", OOM_SCORE.as_bytes());
            if let Some(entrance) = &entrance {
                write_in_child(entrance, b"0")?;
            }
            // The zygote must not inherit other descriptors of the server. If they can't be closed, the zygote does not start.
            match libc::close_range(CONTROL as u32 + 1, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let failed = |error| ZygoteError::Spawn { path: artifacts.host.display().to_string(), error };
    let started = command.spawn().map_err(failed)?;
    warn_without_oom_score(started.id());
    let group = i32::try_from(started.id()).ok().and_then(Pid::from_raw).ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
    Ok(Family { started, group })
}

/// The largest: processes with it are killed first.
const OOM_SCORE: &str = "1000";

fn warn_without_oom_score(pid: u32) {
    // No file: the process has ended, and its zygote inherited the value.
    if let Ok(score) = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj"))
        && score.trim() != OOM_SCORE
    {
        tracing::warn!(
            "oom_score_adj of workers is {}, not {OOM_SCORE}: out of memory, the kernel may kill the server before them",
            score.trim()
        );
    }
}
