//! Drives one job from its place in the queue to its one end: waits, forks, starts, follows, kills.

use crate::engine::{Event, Job, Kind, Outcome};
use crate::follower::{Followed, Follower};
use crate::heap_image::HeapImage;
use crate::scheduler::Permit;
use crate::worker::Worker;
use crate::zygote::Zygote;
use heapstead_types::{Failure, HeapKey};
use heapstead_wire::{Decoder, Frame, Start};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

/// A worker that was forked ahead may have died since; another one is asked for then.
const STARTS_MAX: usize = 3;

pub async fn drive(
    zygote: Zygote,
    job: Job,
    permit: oneshot::Receiver<Permit>,
    events: mpsc::Sender<Event>,
    mut cancels: mpsc::Receiver<oneshot::Sender<()>>,
) {
    let mut stops = Stops { cancels: &mut cancels, events: &events, deadline: None };
    let outcome = match run(&zygote, &job, permit, &events, &mut stops).await {
        Ok(outcome) => outcome,
        Err(stop) => stop.into_outcome(&job),
    };
    // From here on the run has ended: a cancel that comes now finds nobody.
    cancels.close();
    let _ = events.send(Event::Ended(outcome)).await;
}

/// Waits for the job's turn, then has a worker run it; a stop when it comes before a worker has begun.
async fn run(
    zygote: &Zygote,
    job: &Job,
    permit: oneshot::Receiver<Permit>,
    events: &mpsc::Sender<Event>,
    stops: &mut Stops<'_>,
) -> Result<Outcome, Stop> {
    // Queued, and then waiting for the fork: neither counts towards the time limit.
    let Ok(_permit) = stops.unless(permit).await? else {
        return Ok(Outcome::Failed(Failure::NoWorker("the engine is shut down".into())));
    };
    let mut failure = Failure::NoWorker("the worker took no start".into());
    for _ in 0..STARTS_MAX {
        stops.deadline = None;
        let (worker, snapshot) = match stops.unless(begin(zygote, job)).await? {
            Ok(begun) => begun,
            Err(NotBegun::Untaken(why)) => {
                failure = why;
                continue;
            }
            Err(NotBegun::Impossible(why)) => return Ok(Outcome::Failed(why)),
        };
        stops.deadline = Some(Instant::now() + Duration::from_secs(job.limits.timeout_secs.into()));
        // There is room: nothing but these comes before the first output.
        let _ = events.try_send(Event::Started);
        let mut follower = Follower::new(worker, snapshot, job.limits.output_bytes_max, events);
        match stops.unless(follower.follow()).await {
            Ok(Followed::Ended(outcome)) => return Ok(outcome),
            Ok(Followed::Unread(why)) => failure = why,
            Err(stop) => {
                follower.kill().await;
                let outcome = stop.into_outcome(job);
                follower.drain().await;
                return Ok(outcome);
            }
        }
    }
    Ok(Outcome::Failed(failure))
}

/// Why a run is stopped from outside.
enum Stop {
    Cancelled(oneshot::Sender<()>),
    /// Nobody follows it any more.
    Abandoned,
    TimedOut,
}

impl Stop {
    /// What that makes of the run. Whoever cancelled it is told now: by then the worker is dead.
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
    /// What comes of `work`, unless a stop comes first.
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

fn identity_seed(key: HeapKey) -> u64 {
    let [b0, b1, b2, b3, b4, b5, b6, b7, ..] = *key.digest();
    u64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7])
}

/// Why no worker runs the job.
enum NotBegun {
    /// The worker was dead, or would not have it; another one might.
    Untaken(Failure),
    Impossible(Failure),
}

/// Gets a worker and starts it.
async fn begin(zygote: &Zygote, job: &Job) -> Result<(Worker, Option<OwnedFd>), NotBegun> {
    let impossible = |why: String| NotBegun::Impossible(Failure::NoWorker(why));
    let (heap, snapshot) = match &job.kind {
        Kind::Stateless => (None, None),
        Kind::Stateful(heap) => {
            let blank = HeapImage::blank().map_err(|error| impossible(format!("memory for a heap: {error}")))?;
            (heap.as_ref(), Some(blank))
        }
    };
    let start = Start {
        heap_mb: job.limits.heap_mb,
        output_bytes_max: job.limits.output_bytes_max,
        heap_bytes: heap.map(HeapImage::length),
        identity_seed: heap.map_or(0, |heap| identity_seed(heap.key())),
        snapshot: snapshot.is_some(),
        headers: job.headers.clone(),
    };
    let descriptors: Vec<_> = heap.map(AsFd::as_fd).into_iter().chain(snapshot.as_ref().map(AsFd::as_fd)).collect();
    let patience = Duration::from_secs(job.limits.timeout_secs.into());
    let worker = zygote.fork(job.limits.heap_mb).await.map_err(impossible)?;
    match tokio::time::timeout(patience, worker.start(&start, &job.code, &descriptors)).await {
        Ok(Ok(())) => Ok((worker, snapshot)),
        Ok(Err(error)) => {
            let why = || Failure::NoWorker(format!("the worker took no start: {error}"));
            Err(NotBegun::Untaken(last_words(&worker).await.unwrap_or_else(why)))
        }
        Err(_) => Err(impossible(format!("the worker did not read its start in {} s", patience.as_secs()))),
    }
}

/// What a worker that took no start has to say for itself: why it could not be confined, for one.
async fn last_words(worker: &Worker) -> Option<Failure> {
    worker.kill();
    let (mut decoder, mut buffer) = (Decoder::default(), [0; 4096]);
    while let Ok(count @ 1..) = worker.read(&mut buffer).await {
        decoder.push(&buffer[..count]);
    }
    match decoder.next_frame() {
        Ok(Some(Frame::Failed(failure))) => Some(failure),
        _ => None,
    }
}
