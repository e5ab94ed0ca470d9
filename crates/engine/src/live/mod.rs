//! Live workers: the heap of a session stays in memory between runs, as a family of processes.
//!
//! ```text
//! base (state n, idle) ── clone, ahead of need ──► turn process: runs turn n + 1
//!                                                    ├─ fails, times out, is cancelled: killed; the base is unchanged
//!                                                    └─ completes, and the caller commits it: is the base (state n + 1); the old one is killed
//! base ── clone ──► snapshot process: writes the heap, exits
//! ```
//! The server decides what is committed: a process of the family only answers requests, on a socket of its own. Each clone is asked for here,
//! counted by the zygote ([`CloneCount`]), and identified by the kernel (`cloned_process.rs`), so there is no process in a family that
//! is not known here.

mod clone_count;
mod cloned_process;
mod memory;

pub use clone_count::CloneCount;

use crate::HeapImage;
use crate::engine::Job;
use crate::run_requests::{self, RunRequest};
use crate::worker::{Worker, WorkerEnd, reason_of};
use crate::zygotes::Lease;
use heapstead_types::{Failure, Stage};
use heapstead_wire::{ClonePurpose, Decoder, FromWorker, RunNumber, SEED_BYTES, ServerState, ToWorker};
use rustix::process::{Pid, setpriority_process};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::Mutex;

/// Of a process that writes a snapshot: the least.
const SNAPSHOT_NICE: i32 = 19;
const READ_BYTES: usize = 4096;

/// Handles to one family. It is killed when the last one is dropped.
#[derive(Debug, Clone)]
pub struct LiveWorker(Arc<Family>);

#[derive(Debug)]
struct Family {
    /// Keeps the zygote of an owner running.
    _zygote: Lease,
    heap_mb: u32,
    /// The process group, which has the number of its first process.
    group: Pid,
    clones: Arc<CloneCount>,
    processes: Mutex<Processes>,
    last_run: AtomicU64,
}

#[derive(Debug)]
struct Processes {
    /// None while it replays a run, and after it has failed.
    base: Option<Process>,
    /// A clone of the base, for the next turn.
    ahead: Option<Process>,
}

/// A process of a family, and what it has been asked for.
#[derive(Debug)]
pub struct Process {
    pub worker: Worker,
    pub state: ServerState,
    /// The run that its state is of.
    run: Option<RunNumber>,
}

/// A run that has completed in a process of its own. If it is dropped, the process is killed, and the run has had no effect.
#[derive(Debug)]
pub struct LiveTurn {
    live: LiveWorker,
    process: Option<Box<Process>>,
    is_committed: bool,
}

impl LiveWorker {
    /// Takes a worker that was forked to be live, and lets it restore the heap, or the base heap.
    pub(crate) async fn open(
        zygote: Lease,
        worker: Worker,
        clones: Arc<CloneCount>,
        heap: Option<&HeapImage>,
        heap_mb: u32,
    ) -> Result<Self, Failure> {
        let gone = || Failure::NoWorker("the worker has ended".into());
        let group = worker.pid().and_then(Pid::from_raw).ok_or_else(gone)?;
        let mut process = Process { worker, state: ServerState::default(), run: None };
        let open = run_requests::open(heap_mb, heap, true);
        process.send(&[open], heap.map(AsFd::as_fd).as_slice()).await?;
        let processes = Mutex::new(Processes { base: Some(process), ahead: None });
        let live = Self(Arc::new(Family { _zygote: zygote, heap_mb, group, clones, processes, last_run: AtomicU64::new(0) }));
        live.clone_ahead();
        Ok(live)
    }

    /// The cap that its runs have.
    pub fn heap_mb(&self) -> u32 {
        self.0.heap_mb
    }

    /// Whether it can serve another run, for tests: waits while it is being cloned.
    pub async fn is_alive(&self) -> bool {
        let processes = self.0.processes.lock().await;
        [&processes.base, &processes.ahead].into_iter().flatten().any(|process| !process.worker.is_dead())
    }

    /// Whether it can serve another run, as far as that is known now: a worker that is being cloned is taken to be alive.
    pub fn seems_alive(&self) -> bool {
        let Ok(processes) = self.0.processes.try_lock() else { return true };
        [&processes.base, &processes.ahead].into_iter().flatten().any(|process| !process.worker.is_dead())
    }

    /// Memory of all its processes, in KiB: pages that several processes share are divided between them.
    pub async fn memory_kib(&self) -> u64 {
        // Turns need not wait for it: the kernel looks at every page.
        let pids = self.pids().await;
        tokio::task::spawn_blocking(move || pids.into_iter().map(memory::proportional_kib).sum()).await.unwrap_or(0)
    }

    /// Its processes: the base, and the clone for the next turn.
    pub async fn pids(&self) -> Vec<i32> {
        let processes = self.0.processes.lock().await;
        [&processes.base, &processes.ahead].into_iter().flatten().filter_map(|process| process.worker.pid()).collect()
    }

    /// The process for the next turn, with the request to run the job. A replay runs in the base itself: if it fails, the family is of no use.
    pub(crate) async fn begin(&self, job: &Job, seed: [u8; SEED_BYTES]) -> Result<(Process, RunNumber), Failure> {
        if job.limits.heap_mb != self.0.heap_mb {
            return Err(Failure::NoWorker(format!("the live worker has a cap of {} MB", self.0.heap_mb)));
        }
        let mut processes = self.0.processes.lock().await;
        let mut process = match processes.ahead.take().filter(|process| !process.worker.is_dead()) {
            _ if job.replay.is_some() => processes.base.take().ok_or_else(no_base)?,
            Some(process) => process,
            None => self.cloned(&mut processes, ClonePurpose::Run).await?,
        };
        drop(processes);
        let run = RunNumber::new(self.0.last_run.fetch_add(1, Relaxed) + 1).ok_or_else(no_base)?;
        process.send(&[RunRequest { run, job, seed }.message()], &[]).await?;
        Ok((process, run))
    }

    /// Clones the base in the background, so that the next turn need not wait for it.
    pub(crate) fn clone_ahead(&self) {
        let live = self.clone();
        tokio::spawn(async move {
            let mut processes = live.0.processes.lock().await;
            if processes.ahead.is_none() && processes.base.is_some() {
                // Whoever needs it tries again, and gets the reason.
                processes.ahead = live.cloned(&mut processes, ClonePurpose::Run).await.ok();
            }
        });
    }

    async fn cloned(&self, processes: &mut Processes, purpose: ClonePurpose) -> Result<Process, Failure> {
        let Processes { base: Some(base), .. } = processes else { return Err(no_base()) };
        match cloned_process::of(base, self.0.group, &self.0.clones, purpose).await {
            Ok(process) => Ok(process),
            Err(why) => {
                let failure = reason_of(&base.worker).await.unwrap_or(Failure::NoWorker(why));
                processes.base = None;
                Err(failure)
            }
        }
    }

    /// Writes the state of the last committed turn, in a clone, and says which one that is. Turns go on meanwhile. None if there was no turn yet.
    pub async fn snapshot(&self) -> Result<Option<(HeapImage, RunNumber)>, Failure> {
        let process = {
            let mut processes = self.0.processes.lock().await;
            if processes.base.as_ref().is_some_and(|base| base.run.is_none()) {
                return Ok(None);
            }
            self.cloned(&mut processes, ClonePurpose::Snapshot).await?
        };
        let Some(run) = process.run else { return Ok(None) };
        process.write_snapshot(run).await.map(|heap| Some((heap, run)))
    }
}

impl Process {
    async fn write_snapshot(mut self, run: RunNumber) -> Result<HeapImage, Failure> {
        let process = &mut self;
        if let Some(pid) = process.worker.pid() {
            let _ = setpriority_process(Pid::from_raw(pid), SNAPSHOT_NICE);
        }
        let descriptor = HeapImage::blank().map_err(|error| Failure::NoWorker(format!("memory for a heap: {error}")))?;
        process.send(&[ToWorker::Snapshot { run }, ToWorker::Close], &[descriptor.as_fd()]).await?;
        let announced = match process.next_message().await? {
            FromWorker::Snapshot { outcome, .. } => outcome?,
            other => return Err(Failure::WorkerMisbehaved(format!("`{}` instead of a snapshot", other.name()))),
        };
        HeapImage::seal_announced(descriptor, announced).await.map_err(Failure::WorkerMisbehaved)
    }

    async fn send(&mut self, requests: &[ToWorker<'_>], descriptors: &[BorrowedFd<'_>]) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        for request in requests {
            self.state.sent(request);
            // Writing to memory does not fail.
            let _ = request.write_to(&mut bytes);
        }
        match self.worker.send(&bytes, descriptors).await {
            Ok(()) => Ok(()),
            Err(error) => {
                Err(reason_of(&self.worker).await.unwrap_or_else(|| Failure::NoWorker(format!("the live worker does not answer: {error}"))))
            }
        }
    }

    /// Why a process that wrote a snapshot has ended.
    async fn crashed(&mut self) -> Failure {
        self.worker.kill();
        match self.worker.end().await {
            WorkerEnd::WithZygote => Failure::ZygoteDied,
            WorkerEnd::OfItsOwn { signal } => Failure::WorkerCrashed { stage: Stage::Saving, signal },
        }
    }

    /// Waits for one message of a process that sends one.
    async fn next_message(&mut self) -> Result<FromWorker, Failure> {
        let (mut decoder, mut buffer) = (Decoder::default(), vec![0; READ_BYTES]);
        let misbehaved = |what: String| Failure::WorkerMisbehaved(what);
        loop {
            if let Some(message) = decoder.next_message().map_err(|error| misbehaved(error.to_string()))? {
                self.state.accept(&message).map_err(|error| misbehaved(error.to_string()))?;
                return Ok(message);
            }
            match self.worker.read(&mut buffer).await {
                Ok(0) | Err(_) => return Err(self.crashed().await),
                Ok(count) => decoder.push(&buffer[..count]),
            }
        }
    }
}

impl LiveTurn {
    pub(crate) fn new(live: LiveWorker, (worker, state): (Worker, ServerState), run: RunNumber) -> Self {
        Self { live, process: Some(Box::new(Process { worker, state, run: Some(run) })), is_committed: false }
    }

    /// The number of the run among those of its worker.
    pub fn run(&self) -> Option<RunNumber> {
        self.process.as_ref().and_then(|process| process.run)
    }

    /// Writes the state after the run, before it is committed.
    pub async fn snapshot(&mut self) -> Result<HeapImage, Failure> {
        self.tell().await?;
        let Family { group, clones, .. } = &*self.live.0;
        let Some(process) = &mut self.process else { return Err(no_base()) };
        let clone = cloned_process::of(process, *group, clones, ClonePurpose::Snapshot).await.map_err(Failure::NoWorker)?;
        let run = clone.run.ok_or_else(no_base)?;
        clone.write_snapshot(run).await
    }

    /// Tells the process that the effects of the run stay, once: only then can it be cloned.
    async fn tell(&mut self) -> Result<(), Failure> {
        let Some(process) = &mut self.process else { return Err(no_base()) };
        let run = process.run.ok_or_else(no_base)?;
        match std::mem::replace(&mut self.is_committed, true) {
            true => Ok(()),
            false => process.send(&[ToWorker::Commit { run }], &[]).await,
        }
    }

    /// Keeps the effects of the run: later ones continue from them.
    pub async fn commit(self) -> Result<(), Failure> {
        let live = self.live.clone();
        self.commit_replay().await?;
        live.clone_ahead();
        Ok(())
    }

    /// As [`Self::commit`], of a run that is likely to be followed by another replay, which needs no clone.
    pub async fn commit_replay(mut self) -> Result<(), Failure> {
        self.tell().await?;
        let Some(process) = self.process.take() else { return Ok(()) };
        // The old ones are killed.
        *self.live.0.processes.lock().await = Processes { base: Some(*process), ahead: None };
        Ok(())
    }
}

impl Drop for LiveTurn {
    fn drop(&mut self) {
        if self.process.take().is_some() {
            self.live.clone_ahead();
        }
    }
}

fn no_base() -> Failure {
    Failure::NoWorker("the live worker has ended".into())
}
