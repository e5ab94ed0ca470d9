//! Live workers: the heap of a session stays in memory between runs, as a family of processes.
//!
//! ```text
//! base (state n) ── runs turn n + 1 ──┬─ completes, and the caller commits it: has state n + 1
//!                                     └─ fails, times out, is cancelled, is not committed: killed; the standby takes its place
//! base ── clone ──► standby (state m ≤ n): repeats turns m + 1 to n when it is needed; replaced when it is far behind
//! base ── clone ──► snapshot process: writes the heap, exits
//! ```
//! A standby behind the base, instead of a clone for each turn, halves the processor time of short turns: most of it would be spent by the kernel
//! on making a process and ending another.
//!
//! The server decides what is committed: a process of the family only answers requests, on a socket of its own. Each clone is asked for here,
//! counted by the zygote ([`CloneCount`]), and identified by the kernel (`cloned_process.rs`), so there is no process in a family that
//! is not known here.

mod clone_count;
mod cloned_process;
mod memory;
mod standby;

pub use clone_count::CloneCount;
pub(crate) use standby::{Observed, ShortTurn};

use crate::HeapImage;
use crate::engine::Job;
use crate::run_requests::{self, RunRequest};
use crate::worker::{Worker, WorkerEnd, reason_of};
use crate::zygotes::Lease;
use heapstead_types::{Failure, Stage};
use heapstead_wire::{Decoder, FromWorker, RunNumber, SEED_BYTES, ServerState, ToWorker};
use rustix::process::{Pid, setpriority_process};
use standby::Standby;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::Mutex;

/// Of a process that writes a snapshot beside the turns: the least.
const SNAPSHOT_NICE: i32 = 19;
const READ_BYTES: usize = 4096;
/// Of all families: the caller keeps by the number of a run what state it led to, and a session may have one family after the other.
static LAST_RUN: AtomicU64 = AtomicU64::new(0);

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
}

#[derive(Debug)]
struct Processes {
    /// Has the state after the last committed turn. None while it runs code, and after that has failed.
    base: Option<Process>,
    /// The run that it was taken for.
    in_turn: Option<RunNumber>,
    standby: Option<Standby>,
}

impl Processes {
    /// Whether a turn can begin: it needs the base, and a standby for the case that it fails.
    fn is_ready(&self) -> bool {
        self.base.as_ref().is_some_and(|base| !base.worker.is_dead())
            && self.standby.as_ref().is_some_and(|standby| !standby.process.worker.is_dead())
    }

    fn all(&self) -> impl Iterator<Item = &Process> {
        self.base.iter().chain(self.standby.as_ref().map(|standby| &standby.process))
    }
}

/// A process of a family, and what it has been asked for.
#[derive(Debug)]
pub struct Process {
    pub worker: Worker,
    pub state: ServerState,
    /// The run that its state is of.
    run: Option<RunNumber>,
    /// The effects of this run stay. It is told with its next request, so that it does not have to wake up for it.
    commit_due: Option<RunNumber>,
}

/// A run that has completed. If it is dropped, its process is killed, and the run has had no effect.
#[derive(Debug)]
pub struct LiveTurn {
    live: LiveWorker,
    run: RunNumber,
    process: Option<Box<Process>>,
    is_kept: bool,
    /// For the standby, which does not have its effects.
    short: Option<Box<ShortTurn>>,
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
        let mut process = Process { worker, state: ServerState::default(), run: None, commit_due: None };
        let open = run_requests::open(heap_mb, heap, true);
        process.send(&[open], heap.map(AsFd::as_fd).as_slice()).await?;
        let processes = Mutex::new(Processes { base: Some(process), in_turn: None, standby: None });
        let live = Self(Arc::new(Family { _zygote: zygote, heap_mb, group, clones, processes }));
        live.keep_ready();
        Ok(live)
    }

    /// Whether both are handles to the same family.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The cap that its runs have.
    pub fn heap_mb(&self) -> u32 {
        self.0.heap_mb
    }

    /// Whether it can serve another run, for tests: waits while it is being cloned.
    pub async fn is_alive(&self) -> bool {
        self.0.processes.lock().await.all().any(|process| !process.worker.is_dead())
    }

    /// Whether it can serve another run, as far as that is known now: a worker that is being cloned is taken to be alive.
    pub fn seems_alive(&self) -> bool {
        let Ok(processes) = self.0.processes.try_lock() else { return true };
        processes.all().any(|process| !process.worker.is_dead())
    }

    /// Memory of all its processes, in KiB: pages that several processes share are divided between them.
    pub async fn memory_kib(&self) -> u64 {
        // Turns need not wait for it: the kernel looks at every page.
        let pids = self.pids().await;
        tokio::task::spawn_blocking(move || pids.into_iter().map(memory::proportional_kib).sum()).await.unwrap_or(0)
    }

    /// Its processes: the base, unless it is in a turn, and the standby.
    pub async fn pids(&self) -> Vec<i32> {
        self.0.processes.lock().await.all().filter_map(|process| process.worker.pid()).collect()
    }

    /// The base, with the request to run the job. A replay needs no standby: if it fails, the family is of no use.
    pub(crate) async fn begin(&self, job: &Job, seed: [u8; SEED_BYTES]) -> Result<(Process, RunNumber), Failure> {
        if job.limits.heap_mb != self.0.heap_mb {
            return Err(Failure::NoWorker(format!("the live worker has a cap of {} MB", self.0.heap_mb)));
        }
        let mut processes = self.0.processes.lock().await;
        if job.replay.is_none() && !processes.is_ready() {
            drop(processes);
            // In a task of its own, which goes on if this run is cancelled.
            let (live, none) = (self.clone(), |_| Err(no_base()));
            tokio::spawn(async move { live.make_ready(&mut *live.0.processes.lock().await).await }).await.unwrap_or_else(none)?;
            processes = self.0.processes.lock().await;
        }
        let mut process = processes.base.take().ok_or_else(no_base)?;
        let run = RunNumber::new(LAST_RUN.fetch_add(1, Relaxed) + 1).ok_or_else(no_base)?;
        processes.in_turn = Some(run);
        drop(processes);
        process.send(&[RunRequest { run, job, seed }.message()], &[]).await?;
        Ok((process, run))
    }

    /// Makes sure that the next turn need not wait for a clone.
    fn keep_ready(&self) {
        let live = self.clone();
        tokio::spawn(async move {
            let mut processes = live.0.processes.lock().await;
            if processes.base.is_some() && !processes.is_ready() {
                // Whoever needs it tries again, and gets the reason.
                let _ = live.make_ready(&mut processes).await;
            }
        });
    }

    /// The process of a run has failed: the standby takes its place before the next turn.
    pub(crate) fn turn_failed(&self, run: RunNumber) {
        let live = self.clone();
        tokio::spawn(async move {
            let mut processes = live.0.processes.lock().await;
            if processes.in_turn == Some(run) {
                let _ = live.make_ready(&mut processes).await;
            }
        });
    }

    /// If there is no base any more, the standby takes its place. If there is no standby, one is made.
    async fn make_ready(&self, processes: &mut Processes) -> Result<(), Failure> {
        if processes.base.as_ref().is_none_or(|base| base.worker.is_dead()) {
            // The turn that it was taken for has failed.
            (processes.base, processes.in_turn) = (None, None);
            let mut standby = processes.standby.take().ok_or_else(no_base)?;
            standby.catch_up().await?;
            processes.base = Some(standby.process);
        }
        if !processes.is_ready() {
            let base = processes.base.as_mut().ok_or_else(no_base)?;
            match self.cloned(base).await {
                Ok(clone) => processes.standby = Some(Standby::new(clone)),
                Err(failure) => {
                    processes.base = None;
                    return Err(failure);
                }
            }
        }
        Ok(())
    }

    async fn cloned(&self, original: &mut Process) -> Result<Process, Failure> {
        match cloned_process::of(original, self.0.group, &self.0.clones).await {
            Ok(process) => Ok(process),
            Err(why) => Err(reason_of(&original.worker).await.unwrap_or(Failure::NoWorker(why))),
        }
    }

    /// Writes the state of the last committed turn, in a clone, and says which one that is. Turns go on meanwhile. None if there was no turn yet.
    pub async fn snapshot(&self) -> Result<Option<(HeapImage, RunNumber)>, Failure> {
        let mut processes = self.0.processes.lock().await;
        if processes.base.as_ref().is_some_and(|base| base.worker.is_dead()) {
            self.make_ready(&mut processes).await?;
        }
        let Processes { base, standby, .. } = &mut *processes;
        let original = match (base, standby) {
            (Some(base), _) => base,
            // The base is in a turn, which may take long.
            (None, Some(standby)) => {
                standby.catch_up().await?;
                &mut standby.process
            }
            (None, None) => return Err(no_base()),
        };
        let Some(run) = original.run else { return Ok(None) };
        let process = self.cloned(original).await?;
        drop(processes);
        if let Some(pid) = process.worker.pid() {
            let _ = setpriority_process(Pid::from_raw(pid), SNAPSHOT_NICE);
        }
        process.write_snapshot(run).await.map(|heap| Some((heap, run)))
    }
}

impl Process {
    async fn write_snapshot(mut self, run: RunNumber) -> Result<HeapImage, Failure> {
        let process = &mut self;
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
        let commit = self.commit_due.take().map(|run| ToWorker::Commit { run });
        for request in commit.iter().chain(requests) {
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
    pub(crate) fn new(live: LiveWorker, (worker, state): (Worker, ServerState), run: RunNumber, short: Option<Box<ShortTurn>>) -> Self {
        let process = Some(Box::new(Process { worker, state, run: Some(run), commit_due: None }));
        Self { live, run, process, is_kept: false, short }
    }

    /// The number of the run among those of all live workers.
    pub fn run(&self) -> RunNumber {
        self.run
    }

    /// Writes the state after the run, before it is committed. The caller waits for it, so it has the priority of a run.
    pub async fn snapshot(&mut self) -> Result<HeapImage, Failure> {
        // Only then can the process be cloned. If the run is not committed after all, it is killed.
        self.keep();
        let Some(process) = &mut self.process else { return Err(no_base()) };
        let clone = self.live.cloned(process).await?;
        clone.write_snapshot(self.run).await
    }

    /// The process keeps the effects of the run. It is told once.
    fn keep(&mut self) {
        if let Some(process) = &mut self.process
            && !std::mem::replace(&mut self.is_kept, true)
        {
            process.commit_due = Some(self.run);
        }
    }

    /// Its process, which keeps the effects of the run. Fails if it has died.
    async fn into_base(mut self) -> Result<(LiveWorker, Process, Option<Box<ShortTurn>>), Failure> {
        self.keep();
        let process = *self.process.take().ok_or_else(no_base)?;
        if process.worker.is_dead() {
            self.live.turn_failed(self.run);
            return Err(reason_of(&process.worker).await.unwrap_or_else(no_base));
        }
        Ok((self.live.clone(), process, self.short.take()))
    }

    /// Keeps the effects of the run: later ones continue from them.
    pub async fn commit(self) -> Result<(), Failure> {
        let (live, base, short) = self.into_base().await?;
        let mut processes = live.0.processes.lock().await;
        (processes.base, processes.in_turn) = (Some(base), None);
        let is_useful = match (&mut processes.standby, short) {
            (Some(standby), Some(turn)) => standby.note(*turn),
            _ => false,
        };
        if !is_useful {
            processes.standby = None;
            live.keep_ready();
        }
        Ok(())
    }

    /// As [`Self::commit`], of a run that is likely to be followed by another replay, which needs no standby.
    pub async fn commit_replay(self) -> Result<(), Failure> {
        let (live, base, _) = self.into_base().await?;
        *live.0.processes.lock().await = Processes { base: Some(base), in_turn: None, standby: None };
        Ok(())
    }
}

impl Drop for LiveTurn {
    fn drop(&mut self) {
        if self.process.take().is_some() {
            self.live.turn_failed(self.run);
        }
    }
}

fn no_base() -> Failure {
    Failure::NoWorker("the live worker has ended".into())
}
