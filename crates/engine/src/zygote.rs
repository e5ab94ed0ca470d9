//! The zygote as the server sees it: started, asked for forks, started again when it dies.

use crate::Config;
use crate::engine::EngineInfo;
use crate::worker::Worker;
use crate::zygote_process::{Ended, Process, START_TIMEOUT};
use rustix::io::Errno;
use std::time::Duration;
use tokio::sync::mpsc::{self, error::TryRecvError};
use tokio::sync::oneshot;

/// Between two starts of a zygote that keeps dying.
const RESTART_PAUSE: Duration = Duration::from_millis(100);
/// How many zygotes a job asks for its worker, each gone before it answered; and how many starts in a row may fail before waiting jobs fail.
const ZYGOTES_MAX: usize = 3;
/// Fork requests that are queued; each belongs to a job that holds a slot.
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
    pub async fn start(config: Config) -> Result<(Self, EngineInfo), ZygoteError> {
        let (process, info) = Process::start(&config).await?;
        let (requests, incoming) = mpsc::channel(REQUESTS_MAX);
        tokio::spawn(keep_alive(config, process, incoming));
        Ok((Self { requests }, info))
    }

    /// A new worker, which confines itself and waits for requests. An error when none can be had now.
    pub async fn fork(&self, heap_mb: u32) -> Result<Worker, String> {
        for _ in 0..ZYGOTES_MAX {
            let (answer, answered) = oneshot::channel();
            self.requests.send(ForkRequest { heap_mb, answer }).await.map_err(|_| "the engine is shut down".to_owned())?;
            // No answer: the zygote died before the fork. Nothing has run, so the next one is asked.
            if let Ok(answer) = answered.await {
                return answer;
            }
        }
        Err("the zygote died or gave no answer, and so did the ones after it".into())
    }
}

/// Serves fork requests through one zygote after another until the engine is dropped.
async fn keep_alive(config: Config, mut process: Process, mut incoming: mpsc::Receiver<ForkRequest>) {
    loop {
        let why = process.serve(&mut incoming).await;
        if why == Ended::Unneeded {
            return;
        }
        tracing::warn!(?why, "the zygote is gone; starting another");
        drop(process);
        match start_another(&config, &mut incoming).await {
            Ok(another) => process = another,
            Err(_unneeded) => return,
        }
    }
}

/// Tries until a zygote starts. Jobs that wait for a fork meanwhile fail with the reason once [`ZYGOTES_MAX`] starts in a row have failed.
async fn start_another(config: &Config, incoming: &mut mpsc::Receiver<ForkRequest>) -> Result<Process, Ended> {
    let mut failed = 0;
    loop {
        let error = match Process::start(config).await {
            Ok((process, _)) => return Ok(process),
            Err(error) => error,
        };
        failed += 1;
        // Logged a few times only: it is tried ten times a second.
        if failed <= ZYGOTES_MAX {
            tracing::error!(%error, "no zygote can be started; trying again until one can");
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
            Err(TryRecvError::Disconnected) => return Err(Ended::Unneeded),
        }
    }
}
