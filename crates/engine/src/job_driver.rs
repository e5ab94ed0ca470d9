//! Drives one job from its place in the queue to its outcome: waits for a slot, gets a worker, sends it the requests, follows it, kills it.

use crate::cpu_shares::{CpuShare, CpuShares};
use crate::engine::{Event, Job, Kind, Outcome, Workers};
use crate::follower::{Followed, Follower};
use crate::live::{LiveTurn, LiveWorker, ShortTurn};
use crate::run_requests::OneShotRequests;
use crate::scheduler::Permit;
use crate::worker::{Worker, reason_of};
use crate::zygotes::Lease;
use heapstead_types::Failure;
use heapstead_wire::{RunNumber, SEED_BYTES, ServerState};
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

/// How many workers a job is sent to: a pre-forked worker may have died before it read its requests, and then another worker gets them.
const WORKERS_MAX: usize = 3;

pub async fn drive(
    workers: Workers,
    job: Job,
    permit: oneshot::Receiver<Permit>,
    events: mpsc::Sender<Event>,
    mut cancels: mpsc::Receiver<oneshot::Sender<()>>,
) {
    let mut stops = Stops { cancels: &mut cancels, events: &events, deadline: None };
    let outcome = match run(&workers, &job, permit, &events, &mut stops).await {
        Ok(outcome) => outcome,
        Err(stop) => stop.into_outcome(&job),
    };
    // The run has ended, so a later cancel has no effect.
    cancels.close();
    let _ = events.send(Event::Ended(outcome)).await;
}

/// Waits for a slot, then runs the job on a worker. An error is a stop that came before a worker had received the job.
async fn run(
    workers: &Workers,
    job: &Job,
    permit: oneshot::Receiver<Permit>,
    events: &mpsc::Sender<Event>,
    stops: &mut Stops<'_>,
) -> Result<Outcome, Stop> {
    // Neither the time in the queue nor the wait for the fork counts towards the time limit.
    let Ok(permit) = stops.unless(permit).await? else {
        return Ok(Outcome::Failed(Failure::NoWorker("the engine is shut down".into())));
    };
    let source = match &job.kind {
        Kind::Live(live) => Source::Live(live),
        Kind::Stateful(_) | Kind::Stateless => match stops.unless(workers.zygotes.lease(&job.holder)).await? {
            Ok(zygote) => Source::Zygote(zygote),
            Err(why) => return Ok(Outcome::Failed(Failure::NoWorker(why))),
        },
    };
    let mut failure = Failure::NoWorker("no worker accepted the run".into());
    for _ in 0..WORKERS_MAX {
        stops.deadline = None;
        let begun = match stops.unless(source.begin(&workers.cpu, job)).await? {
            Ok(begun) => begun,
            Err(NotBegun::Refused(why)) => {
                failure = why;
                continue;
            }
            Err(NotBegun::Impossible(why)) => return Ok(Outcome::Failed(why)),
        };
        let began = Instant::now();
        stops.deadline = Some(began + Duration::from_secs(job.limits.timeout_secs.into()));
        // The buffer has room, because no other event is sent before the first output.
        let _ = events.try_send(Event::Started { seed: begun.seed, at: began });
        let mut follower = Follower::new(begun.worker, begun.state, begun.snapshot, begun.seed, job, &workers.answers, events);
        match stops.unless(follower.follow()).await {
            Ok(Followed::Ended(outcome)) => {
                return Ok(source.keep_turn(outcome, job, follower, begun.run, began.elapsed()).with_permit(permit));
            }
            Ok(Followed::Unread(why)) => failure = why,
            Err(stop) => {
                follower.kill().await;
                source.turn_failed(begun.run);
                let outcome = stop.into_outcome(job);
                follower.drain().await;
                return Ok(outcome);
            }
        }
    }
    Ok(Outcome::Failed(failure))
}

/// Where the process for a job comes from.
enum Source<'a> {
    Zygote(Lease),
    Live(&'a LiveWorker),
}

impl Source<'_> {
    async fn begin(&self, cpu: &CpuShares, job: &Job) -> Result<Begun, NotBegun> {
        match self {
            Self::Zygote(zygote) => begin_one_shot(zygote, cpu, job).await,
            Self::Live(live) => begin_live(live, cpu, job).await,
        }
    }

    /// A completed turn keeps its process, for the caller to commit.
    fn keep_turn(&self, mut outcome: Outcome, job: &Job, follower: Follower<'_>, run: RunNumber, ran: Duration) -> Outcome {
        match (self, &mut outcome) {
            (Self::Live(live), Outcome::Completed { turn, result, .. }) => {
                let (worker, observed) = follower.into_worker();
                let short = observed.and_then(|observed| ShortTurn::new(run, job, observed, result, ran)).map(Box::new);
                *turn = Some(LiveTurn::new((*live).clone(), worker, run, short));
            }
            _ => self.turn_failed(run),
        }
        outcome
    }

    /// The next turn should not have to wait because this one failed.
    fn turn_failed(&self, run: RunNumber) {
        if let Self::Live(live) = self {
            live.turn_failed(run);
        }
    }
}

/// Why a run is stopped before it ends by itself.
enum Stop {
    Cancelled(oneshot::Sender<()>),
    /// The execution was dropped.
    Abandoned,
    TimedOut,
}

impl Stop {
    /// The outcome of a stopped run. Also answers the cancel request, because the worker is dead by now.
    fn into_outcome(self, job: &Job) -> Outcome {
        match self {
            Self::Cancelled(done) => {
                let _ = done.send(());
                Outcome::Cancelled
            }
            Self::Abandoned => Outcome::Cancelled,
            Self::TimedOut => Outcome::TimedOut { timeout_secs: job.limits.timeout_secs },
        }
    }
}

struct Stops<'a> {
    cancels: &'a mut mpsc::Receiver<oneshot::Sender<()>>,
    events: &'a mpsc::Sender<Event>,
    deadline: Option<Instant>,
}

impl Stops<'_> {
    /// Returns the output of `work`, or the stop if one comes first.
    async fn unless<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            stop = self.next() => Err(stop),
            done = work => Ok(done),
        }
    }

    async fn next(&mut self) -> Stop {
        let deadline = self.deadline;
        let timed_out = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(done) = self.cancels.recv() => Stop::Cancelled(done),
            () = self.events.closed() => Stop::Abandoned,
            () = timed_out => Stop::TimedOut,
        }
    }
}

/// Why no worker accepted the job.
enum NotBegun {
    /// The worker was dead or refused. Another worker may accept the job.
    Refused(Failure),
    Impossible(Failure),
}

/// A worker that was sent its requests.
struct Begun {
    worker: Worker,
    _cpu: Option<CpuShare>,
    seed: [u8; SEED_BYTES],
    run: RunNumber,
    state: ServerState,
    snapshot: Option<OwnedFd>,
}

/// Sends the job to a process of a live worker.
async fn begin_live(live: &LiveWorker, cpu: &CpuShares, job: &Job) -> Result<Begun, NotBegun> {
    let seed = heapstead_types::random_bytes();
    let (process, run) = live.begin(job, seed).await.map_err(NotBegun::Refused)?;
    let cpu = process.worker.pid().map(|pid| cpu.add(&job.holder, pid));
    Ok(Begun { worker: process.worker, _cpu: cpu, seed, run, state: process.state, snapshot: None })
}

/// Gets a worker and sends it the requests of the job.
async fn begin_one_shot(zygote: &Lease, cpu: &CpuShares, job: &Job) -> Result<Begun, NotBegun> {
    let impossible = |why: String| NotBegun::Impossible(Failure::NoWorker(why));
    let seed = heapstead_types::random_bytes();
    let requests = OneShotRequests::new(job, seed).map_err(|error| impossible(format!("memory for a heap: {error}")))?;
    let timeout = Duration::from_secs(job.limits.timeout_secs.into());
    let worker = zygote.zygote().fork(job.limits.heap_mb).await.map_err(impossible)?;
    let cpu = worker.pid().map(|pid| cpu.add(&job.holder, pid));
    match tokio::time::timeout(timeout, worker.send(&requests.bytes, &requests.descriptors())).await {
        Ok(Ok(())) => Ok(Begun { worker, _cpu: cpu, seed, run: RunNumber::FIRST, state: requests.state, snapshot: requests.snapshot }),
        Ok(Err(error)) => {
            let why = || Failure::NoWorker(format!("the worker did not accept the run: {error}"));
            Err(NotBegun::Refused(reason_of(&worker).await.unwrap_or_else(why)))
        }
        Err(_) => Err(impossible(format!("the worker did not read the run in {} s", timeout.as_secs()))),
    }
}
