//! The session of a REPL: every input is a turn in it. Its state is with whoever runs it, so nothing is lost with the REPL.

use super::opened::{OpenedSession, loss};
use super::origin::Origin;
use crate::cli::backend::{BackendError, Runner, SessionRun};
use crate::cli::heaps::text;
use crate::cli::interrupts::{Cancellation, Interrupts};
use crate::cli::screen::Screen;
use heapstead_service::{EndLogical, InputHeap, OnMissingHeap};
use heapstead_types::{ErrorCode, HeapKey, KEEP_RESULT, Limits, Status};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Bytes of output per request.
const PAGE_BYTES: u64 = 256 << 10;
/// Forks of forks whose code `.save` follows.
const FORKS_MAX: usize = 1000;
/// How long a request waits for more output.
const FOLLOW_WAIT: Duration = Duration::from_secs(30);

pub struct ReplSession {
    pub runner: Runner,
    pub opened: OpenedSession,
    limits: Limits,
    /// From which heap the user started, instead of the head.
    start: Option<Start>,
}

/// A heap that takes the place of the head. The session knows it only from its first turn on, and an undo of that turn goes back to the heap.
struct Start {
    heap: InputHeap,
    /// Turns since then that were not undone.
    turns: u32,
}

/// What the next turn starts from.
pub enum State {
    Fresh,
    Heap(HeapKey),
    /// One whose heap can't be stored.
    Unstored,
}

impl State {
    fn of(heap: Option<HeapKey>) -> Self {
        heap.map_or(Self::Fresh, Self::Heap)
    }
}

/// What `.save` has written.
pub struct Saved {
    pub turns: usize,
    /// Why the code from before a fork is missing.
    pub missing: Option<BackendError>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Turn {
    /// None if it did not complete.
    pub result: Option<String>,
    pub error: Option<String>,
    pub error_code: Option<ErrorCode>,
    pub warnings: Vec<String>,
}

impl Turn {
    fn of(record: &Value) -> Self {
        let string = |member: &str| record[member].as_str().map(str::to_owned);
        let warnings = record["warnings"].as_array().into_iter().flatten().map(|warning| text(warning).to_owned());
        Self {
            result: string("result").filter(|_| record["status"] == Status::Completed.as_str()),
            error: string("error"),
            error_code: record["error_code"].as_str().and_then(ErrorCode::from_name),
            warnings: loss(&record["continuity"]).into_iter().chain(warnings).collect(),
        }
    }
}

/// Where a run shows its output, and what cancels it.
pub struct Terminal<'a> {
    pub screen: &'a mut Screen,
    pub interrupts: &'a Interrupts,
}

impl ReplSession {
    pub fn new(runner: Runner, opened: OpenedSession, limits: Limits, start: Option<InputHeap>) -> Self {
        Self { runner, opened, limits, start: start.map(|heap| Start { heap, turns: 0 }) }
    }

    /// What the next turn starts from instead of the head.
    fn instead_of_head(&self) -> Option<InputHeap> {
        self.start.as_ref().filter(|start| start.turns == 0).map(|start| start.heap)
    }

    /// Runs code as the next turn. Only if it completes, the state of the session changes.
    pub async fn run(&mut self, code: &str, terminal: Terminal<'_>) -> Result<Turn, BackendError> {
        let run = SessionRun {
            session: &self.opened.handle,
            code: format!("{code}{KEEP_RESULT}"),
            heap: self.instead_of_head(),
            limits: self.limits,
        };
        let turn = self.finish(run, terminal).await?;
        if turn.result.is_some() {
            self.opened.turns += 1;
            if let Some(start) = &mut self.start {
                start.turns += 1;
            }
        }
        Ok(turn)
    }

    /// Undoes turns. Returns what the next turn starts from.
    pub async fn undo(&mut self, turns: u32) -> Result<State, BackendError> {
        let undone = self.runner.undo(&self.opened.handle, turns).await?;
        // Before the first turn since the start, there is what the session had before.
        self.start = self.start.take().and_then(|Start { heap, turns: since }| Some(Start { heap, turns: since.checked_sub(turns)? }));
        Ok(match self.instead_of_head() {
            Some(heap) => State::of(heap.key()),
            None if undone["heap_error"].is_string() => State::Unstored,
            None => State::of(key(&undone["head"])),
        })
    }

    /// The stored heap that the next turn starts from; none for a fresh one.
    pub async fn heap(&self) -> Result<Option<HeapKey>, BackendError> {
        if let Some(heap) = self.instead_of_head() {
            return Ok(heap.key());
        }
        let view = self.runner.backend.session(&self.opened.handle).await?;
        match (key(&view["head"]), view["tail_turns"].as_u64()) {
            (Some(head), _) => Ok(Some(head)),
            (None, Some(1..)) => {
                let last = self.turns().await?.pop().ok_or(BackendError::NotStored)?;
                let heap = self.runner.heap_after(&self.opened.handle, last).await?;
                key(&heap).map(Some).ok_or(BackendError::NotStored)
            }
            (None, _) => Ok(None),
        }
    }

    /// The turns that were not undone.
    async fn turns(&self) -> Result<Vec<u64>, BackendError> {
        let log = self.runner.backend.session_log(&self.opened.handle, Some("index,undone")).await?;
        let entries = log["entries"].as_array().into_iter().flatten();
        Ok(entries.filter(|entry| entry["undone"] != true).filter_map(|entry| entry["index"].as_u64()).collect())
    }

    /// Continues in a new session with the same state. Returns how the turn ended that brought the state there, if it did not complete.
    pub async fn fork(&mut self, name: Option<&str>, terminal: Terminal<'_>) -> Result<Option<Turn>, BackendError> {
        let heap = self.heap().await?;
        let opened = match name {
            Some(name) => OpenedSession::find(&self.runner, name).await?,
            None => OpenedSession::invent(&self.runner).await?,
        };
        if !opened.is_new {
            return Err(BackendError::SessionExists { name: opened.name });
        }
        let mut fork = opened;
        if let Some(key) = heap {
            let turn = self.take_over(&fork, key, terminal).await;
            if !matches!(&turn, Ok(Turn { result: Some(_), .. })) {
                self.runner.backend.end_session(&fork.handle, EndLogical::Forget).await?;
                return turn.map(Some);
            }
            fork.turns += 1;
        }
        self.delete_unused().await;
        (self.opened, self.start) = (fork, None);
        Ok(None)
    }

    /// Runs the first turn of a fork, so that it has its state even if the user types nothing more.
    async fn take_over(&self, fork: &OpenedSession, key: HeapKey, terminal: Terminal<'_>) -> Result<Turn, BackendError> {
        let origin = Origin::new(&self.opened.handle, self.turns().await?);
        let run = SessionRun {
            session: &fork.handle,
            code: origin.code(&self.opened.name),
            heap: Some(InputHeap::Heap { key, on_missing: OnMissingHeap::Fail }),
            limits: self.limits,
        };
        self.finish(run, terminal).await
    }

    /// Writes the code of all turns that were not undone, and in a fork those before it.
    pub async fn save(&self, file: &Path) -> Result<Saved, BackendError> {
        let (mut turns, mut missing) = (self.sources(&self.opened.handle, None).await?, None);
        for _ in 0..FORKS_MAX {
            let Some(origin) = turns.first().and_then(|first| Origin::parse(first)) else { break };
            turns.remove(0);
            match self.sources(&origin.session, Some(&origin)).await {
                Ok(before) => turns.splice(..0, before),
                Err(error) => {
                    missing = Some(error);
                    break;
                }
            };
        }
        let lines: String = turns.iter().flat_map(|source| [source.as_str(), "\n"]).collect();
        std::fs::write(file, lines).map_err(|error| BackendError::File { what: "written", path: file.into(), error })?;
        Ok(Saved { turns: turns.len(), missing })
    }

    /// The code of the turns of a session that led to a fork of it, or to its state now.
    async fn sources(&self, session: &str, to: Option<&Origin>) -> Result<Vec<String>, BackendError> {
        let log = self.runner.backend.session_log(session, Some("index,code,undone")).await?;
        let is_wanted = |entry: &&Value| match to {
            Some(origin) => entry["index"].as_u64().is_some_and(|turn| origin.has(turn)),
            None => entry["undone"] != true,
        };
        Ok(log["entries"].as_array().into_iter().flatten().filter(is_wanted).map(|entry| text(&entry["code"]).to_owned()).collect())
    }

    /// Whether it was opened for this REPL and has no turn.
    pub fn is_unused(&self) -> bool {
        self.opened.is_new && self.opened.turns == 0
    }

    /// Deletes a session that is left before anything ran in it. Returns whether it did.
    async fn delete_unused(&self) -> bool {
        self.is_unused() && self.runner.backend.end_session(&self.opened.handle, EndLogical::Forget).await.is_ok()
    }

    /// Ends what runs in this process. A session that is not used is deleted; returns whether it was.
    pub async fn close(&self) -> bool {
        let is_deleted = self.delete_unused().await;
        self.runner.close().await;
        is_deleted
    }

    /// Starts a run and follows it to its end.
    async fn finish(&self, run: SessionRun<'_>, terminal: Terminal<'_>) -> Result<Turn, BackendError> {
        let cancelled = CancellationToken::new();
        let _watch = terminal.interrupts.watch(Some(Cancellation::Request(cancelled.clone())));
        let accepted = self.runner.run(run).await?;
        let id = text(&accepted["execution_id"]);
        self.follow(id, terminal.screen, &cancelled).await?;
        Ok(Turn::of(&self.runner.record(id).await?))
    }

    async fn follow(&self, id: &str, screen: &mut Screen, cancelled: &CancellationToken) -> Result<(), BackendError> {
        let backend = &self.runner.backend;
        let (mut at, mut is_cancelled) = (0, false);
        loop {
            let page = tokio::select! {
                page = backend.output(id, at, PAGE_BYTES, FOLLOW_WAIT) => page?,
                () = cancelled.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    // Refused if the run has ended meanwhile, which the next page shows.
                    let _ = backend.cancel(id).await;
                    continue;
                }
            };
            at = page["next_byte_offset"].as_u64().unwrap_or(at);
            screen.output(text(&page["data"]).as_bytes());
            let status = Status::from_name(text(&page["status"])).unwrap_or(Status::Failed);
            if page["has_more"] != true && status.is_terminal() {
                return Ok(());
            }
        }
    }
}

fn key(value: &Value) -> Option<HeapKey> {
    value.as_str()?.parse().ok()
}
