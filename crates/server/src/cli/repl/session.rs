//! The session of a REPL: every input is a turn in it. Its state is with whoever runs it, so nothing is lost with the REPL.

use super::opened::{OpenedSession, loss};
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

    /// Undoes turns. Returns the heap that the next turn starts from; none for a fresh one.
    pub async fn undo(&mut self, turns: u32) -> Result<Option<HeapKey>, BackendError> {
        let undone = self.runner.undo(&self.opened.handle, turns).await?;
        // Before the first turn since the start, there is what the session had before.
        self.start = self.start.take().and_then(|Start { heap, turns: since }| Some(Start { heap, turns: since.checked_sub(turns)? }));
        Ok(self.instead_of_head().map_or(key(&undone["head"]), InputHeap::key))
    }

    /// The stored heap that the next turn starts from; none for a fresh one.
    pub async fn heap(&self) -> Result<Option<HeapKey>, BackendError> {
        if let Some(heap) = self.instead_of_head() {
            return Ok(heap.key());
        }
        let view = self.runner.backend.session(&self.opened.handle).await?;
        match (key(&view["head"]), view["tail_turns"].as_u64(), view["runs"].as_u64()) {
            (Some(head), ..) => Ok(Some(head)),
            // An undo stores the heap that it goes back to, so a state without one is that of the last turn.
            (None, Some(1..), Some(turns @ 1..)) => {
                let heap = self.runner.heap_after(&self.opened.handle, turns - 1).await?;
                key(&heap).map(Some).ok_or(BackendError::NotStored)
            }
            (None, ..) => Ok(None),
        }
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
            // A turn of its own, so that the fork has its state even if the user types nothing more.
            let origin: String = self.opened.name.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
            let run = SessionRun {
                session: &fork.handle,
                code: format!("// fork of {origin}"),
                heap: Some(InputHeap::Heap { key, on_missing: OnMissingHeap::Fail }),
                limits: self.limits,
            };
            let turn = self.finish(run, terminal).await?;
            if turn.result.is_none() {
                self.runner.backend.end_session(&fork.handle, EndLogical::Forget).await?;
                return Ok(Some(turn));
            }
            fork.turns += 1;
        }
        (self.opened, self.start) = (fork, None);
        Ok(None)
    }

    /// Writes the code of all turns that were not undone. Returns their number.
    pub async fn save(&self, file: &Path) -> Result<usize, BackendError> {
        let log = self.runner.backend.session_log(&self.opened.handle, Some("code,undone")).await?;
        let entries = log["entries"].as_array().into_iter().flatten();
        let sources: Vec<_> = entries.filter(|entry| entry["undone"] != true).map(|entry| text(&entry["code"])).collect();
        let lines: String = sources.iter().flat_map(|source| [source, "\n"]).collect();
        std::fs::write(file, lines).map_err(|error| BackendError::File { what: "written", path: file.into(), error })?;
        Ok(sources.len())
    }

    /// Ends what runs in this process. A session that was opened for this REPL and has no turn is deleted; returns whether it was.
    pub async fn close(&self) -> bool {
        let is_unused = self.opened.is_new && self.opened.turns == 0;
        let is_deleted = is_unused && self.runner.backend.end_session(&self.opened.handle, EndLogical::Forget).await.is_ok();
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
