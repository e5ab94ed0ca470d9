//! Starts a zygote, forwards fork requests to it, and restarts it when it dies.

use crate::Config;
use crate::cgroup::WorkerGroup;
use crate::live::CloneCount;
use crate::worker::Worker;
use crate::zygote_process::{Ended, Process, START_TIMEOUT, Started};
use rustix::io::Errno;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{self, error::TryRecvError};
use tokio::sync::oneshot;

/// Pause between two starts of a zygote that keeps dying.
const RESTART_PAUSE: Duration = Duration::from_millis(100);
/// How many zygotes may die while a job waits for its fork, and how many consecutive starts may fail, before waiting jobs fail.
const ZYGOTES_MAX: usize = 3;
/// Capacity of the queue of fork requests. Each request belongs to a job with a slot.
const REQUESTS_MAX: usize = 1024;

#[derive(Debug, thiserror::Error)]
pub enum ZygoteError {
    #[error("the V8 host {path} can't be started: {error}")]
    Spawn { path: String, error: std::io::Error },
    #[error("a socket can't be made: {0}")]
    Socket(#[from] Errno),
    #[error("the engine refuses to run on this machine: {0}")]
    Unfit(String),
    #[error("namespaces are required (`--namespaces required`), but are not available: {0}")]
    NoNamespaces(String),
    #[error("the zygote ended before it was ready (is the V8 host the right one?)")]
    Died,
    #[error("the zygote was not ready after {} s", START_TIMEOUT.as_secs())]
    TooSlow,
}

/// The wait status of a worker, as `waitpid` returns it.
pub type ExitStatus = i32;

pub struct ForkRequest {
    pub heap_mb: u32,
    /// Of a live worker: counts its clones.
    pub live: Option<Arc<CloneCount>>,
    pub answer: oneshot::Sender<Result<Worker, String>>,
}

#[derive(Debug, Clone)]
pub struct Zygote {
    requests: mpsc::Sender<ForkRequest>,
}

impl Zygote {
    /// Starts a zygote, in this cgroup if there is one, and a task that keeps one alive.
    pub async fn start(config: Config, group: Option<Arc<WorkerGroup>>) -> Result<(Self, Started), ZygoteError> {
        let (process, started) = Process::start(&config, group.as_deref()).await?;
        let (requests, incoming) = mpsc::channel(REQUESTS_MAX);
        tokio::spawn(keep_alive(group, config, process, incoming));
        Ok((Self { requests }, started))
    }

    /// Returns a worker, which confines itself and waits for requests. An error if none can be forked.
    pub async fn fork(&self, heap_mb: u32) -> Result<Worker, String> {
        self.request(heap_mb, None).await
    }

    /// As `fork`, for a worker that can be cloned.
    pub async fn fork_live(&self, heap_mb: u32, clones: Arc<CloneCount>) -> Result<Worker, String> {
        self.request(heap_mb, Some(clones)).await
    }

    async fn request(&self, heap_mb: u32, live: Option<Arc<CloneCount>>) -> Result<Worker, String> {
        for _ in 0..ZYGOTES_MAX {
            let (answer, answered) = oneshot::channel();
            self.requests
                .send(ForkRequest { heap_mb, live: live.clone(), answer })
                .await
                .map_err(|_| "the engine is shut down".to_owned())?;
            // No answer: the zygote died before the fork. No code has run, so the request is sent to the next zygote.
            if let Ok(answer) = answered.await {
                return answer;
            }
        }
        Err("the zygote died or did not answer, and so did its replacements".into())
    }
}

/// Serves fork requests through one zygote after another until the engine is dropped. The group is dropped last, when no process of this zygote
/// is in it.
async fn keep_alive(group: Option<Arc<WorkerGroup>>, config: Config, mut process: Process, mut incoming: mpsc::Receiver<ForkRequest>) {
    loop {
        let why = process.serve(&mut incoming).await;
        if why == Ended::EngineDropped {
            return;
        }
        tracing::warn!(?why, "the zygote has ended; starting another");
        drop(process);
        match start_another(&config, group.as_deref(), &mut incoming).await {
            Ok(another) => process = another,
            Err(_unneeded) => return,
        }
    }
}

/// Retries until a zygote starts. Once [`ZYGOTES_MAX`] consecutive starts have failed, jobs that wait for a fork fail with the reason.
async fn start_another(config: &Config, group: Option<&WorkerGroup>, incoming: &mut mpsc::Receiver<ForkRequest>) -> Result<Process, Ended> {
    let mut failed = 0;
    loop {
        let error = match Process::start(config, group).await {
            Ok((process, _)) => return Ok(process),
            Err(error) => error,
        };
        failed += 1;
        // Logged only a few times, because it is retried ten times per second.
        if failed <= ZYGOTES_MAX {
            tracing::error!(%error, "the zygote can't be started; retrying");
        }
        if failed >= ZYGOTES_MAX {
            refuse_waiting(incoming, &error)?;
        }
        tokio::time::sleep(RESTART_PAUSE).await;
    }
}

fn refuse_waiting(incoming: &mut mpsc::Receiver<ForkRequest>, error: &ZygoteError) -> Result<(), Ended> {
    loop {
        match incoming.try_recv() {
            // The job may have been cancelled.
            Ok(request) => drop(request.answer.send(Err(error.to_string()))),
            Err(TryRecvError::Empty) => return Ok(()),
            Err(TryRecvError::Disconnected) => return Err(Ended::EngineDropped),
        }
    }
}
