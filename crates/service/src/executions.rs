//! Executions as callers see them: their record, their output page by page, their end on demand, and the list of them.

use crate::live::{Live, Stop};
use crate::neighbours::{self, About, Question};
use crate::page_room::Overflow;
use crate::record::{ExecutionRecord, iso_8601};
use crate::{Archive, Caller, PageRoom, ServiceError, sweep};
use heapstead_store::metadata::{self, Cursor, ExecutionFilter};
use heapstead_store::outputs::{self, Extent, PageRequest};
use heapstead_types::{ExecutionId, SessionName, Status};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How far back a list goes that is asked for without parameters.
const LISTED_SINCE: SignedDuration = SignedDuration::from_hours(24);
/// Ends a cursor of such a list, so that its next page is about the same executions.
pub const RECENT_SUFFIX: &str = "-recent";
/// The shortest summary: all its names, an id and one time.
const SUMMARY_CHARS_MIN: usize = 120;
/// Where another process can't be asked, or its answer is not in the record yet: until the next look at the record.
const ELSEWHERE_INTERVAL: Duration = Duration::from_millis(100);

/// A page of console output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OutputPage {
    #[schemars(with = "String")]
    pub execution_id: ExecutionId,
    pub data: String,
    /// The first line on the page; the first line of all is 1.
    pub start_line: u64,
    /// The last line on the page; one less than `start_line` when the page is empty.
    pub end_line: u64,
    /// Pass this as `line_offset` to go on.
    pub next_line_offset: u64,
    /// Whole lines so far.
    pub total_lines: u64,
    pub start_byte: u64,
    /// Exclusive.
    pub end_byte: u64,
    /// Pass this as `byte_offset` to go on.
    pub next_byte_offset: u64,
    pub total_bytes: u64,
    /// Whether there is more already. While the execution runs, more may still come.
    pub has_more: bool,
    #[schemars(schema_with = "crate::schema::status")]
    pub status: Status,
}

/// Executions, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExecutionList {
    pub executions: Vec<ExecutionSummary>,
    /// Pass this as `cursor` for the rest. Absent when there is no rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExecutionSummary {
    #[schemars(with = "String")]
    pub execution_id: ExecutionId,
    #[schemars(schema_with = "crate::schema::status")]
    pub status: Status,
    pub started_at: String,
    pub completed_at: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    pub status: Option<Status>,
    pub session: Option<SessionName>,
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

/// Where an execution is to be found.
enum Found {
    Here(Arc<Live>),
    Stored(Box<metadata::Execution>),
}

impl Archive {
    /// The record, after at most `wait` if the execution still runs.
    pub async fn execution(&self, caller: &Caller, id: &str, wait: Duration) -> Result<ExecutionRecord, ServiceError> {
        let deadline = Instant::now() + wait;
        let mut asked = Asked::default();
        loop {
            match self.find(caller, id, true).await? {
                Found::Here(live) => {
                    let _ = tokio::time::timeout_at(deadline, live.ended()).await;
                    return Ok(live.record());
                }
                Found::Stored(stored) if stored.status.is_terminal() || Instant::now() >= deadline => return Ok(record_of(*stored)),
                Found::Stored(stored) => asked.wait(self, &stored, About::Ended, deadline).await,
            }
        }
    }

    /// A page, after at most `wait` if there is nothing past the cursor yet and the execution still runs.
    pub async fn output(&self, caller: &Caller, id: &str, page: PageRequest, wait: Duration) -> Result<OutputPage, ServiceError> {
        let deadline = Instant::now() + wait;
        let mut asked = Asked::default();
        loop {
            let (id, output, status) = match self.find(caller, id, false).await? {
                Found::Here(live) => {
                    let mut progress = live.watch();
                    let past_cursor = progress.wait_for(|progress| progress.ended.is_some() || reaches(progress.output, page));
                    let _ = tokio::time::timeout_at(deadline, past_cursor).await;
                    let progress = progress.borrow();
                    let status = progress.ended.as_ref().map_or(Status::Running, |record| record.status);
                    (live.id().clone(), progress.output, status)
                }
                Found::Stored(stored) if stored.status.is_terminal() => (stored.id, stored.output, stored.status),
                Found::Stored(stored) => {
                    let (outputs, id) = (self.0.outputs.clone(), stored.id.clone());
                    let output = blocking(move || Ok(outputs.measure(&id)?)).await?;
                    if !reaches(output, page) && Instant::now() < deadline {
                        asked.wait(self, &stored, About::output(page), deadline).await;
                        continue;
                    }
                    (stored.id, output, stored.status)
                }
            };
            let (outputs, named, room) = (self.0.outputs.clone(), id.clone(), caller.room);
            let read =
                blocking(move || page_within(room, page, |page| Ok(outputs.page(&named, output, status.is_terminal(), page)?))).await?;
            return Ok(OutputPage {
                execution_id: id,
                data: read.data,
                start_line: read.start_line,
                end_line: read.end_line,
                next_line_offset: read.next_line_offset,
                total_lines: read.total_lines,
                start_byte: read.start_byte,
                end_byte: read.end_byte,
                next_byte_offset: read.next_byte_offset,
                total_bytes: read.total_bytes,
                has_more: read.has_more,
                status,
            });
        }
    }

    /// Ends an execution. When this returns its worker is dead and its end is `cancelled`; an error says what it was instead.
    pub async fn cancel(&self, caller: &Caller, id: &str) -> Result<(), ServiceError> {
        let status = match self.find(caller, id, false).await? {
            // It stays in the registry for a moment after its end.
            Found::Here(live) if let Some(ended) = &live.watch().borrow().ended => ended.status,
            Found::Here(live) => {
                live.stop(Stop::Caller);
                match live.ended().await.status {
                    Status::Cancelled => return Ok(()),
                    status => status,
                }
            }
            Found::Stored(stored) if stored.status.is_terminal() => stored.status,
            Found::Stored(stored) => {
                let question = Question { id: stored.id, about: About::Cancel };
                match neighbours::ask(self, &stored.process, &question).await {
                    Ok(true) => return Ok(()),
                    // It ended before, or its process did; the record says how.
                    Ok(false) | Err(_) => match self.find(caller, id, false).await? {
                        Found::Stored(stored) if stored.status.is_terminal() => stored.status,
                        _ => {
                            let text = format!("execution `{id}` runs in another server process, which can't be reached: cancel it there");
                            return Err(ServiceError::Unavailable(text));
                        }
                    },
                }
            }
        };
        Err(ServiceError::WrongState(format!("execution `{id}` is not running: it is {}", status.as_str())))
    }

    /// Without parameters: all that run, and all that ended in the last 24 hours.
    pub async fn executions(&self, caller: &Caller, request: ListRequest) -> Result<ExecutionList, ServiceError> {
        let plain = request.status.is_none() && request.session.is_none() && request.limit.is_none();
        let (before, recent) = match request.cursor.as_deref() {
            None => (None, plain),
            Some(cursor) => {
                let last = cursor.strip_suffix(RECENT_SUFFIX);
                (Some(self.after(caller, last.unwrap_or(cursor), cursor).await?), last.is_some())
            }
        };
        let filter = ExecutionFilter {
            status: request.status,
            session: request.session,
            ended_since: recent.then(|| Timestamp::now() - LISTED_SINCE),
            before,
            limit: caller.list_limit(request.limit, SUMMARY_CHARS_MIN),
        };
        let (stored, next) = self.0.metadata.executions(&caller.principal, filter).await?;
        let mut executions: Vec<_> = stored.into_iter().map(|stored| self.summary(stored)).collect();
        let fitting = caller.items_that_fit(&executions);
        let has_more = next.is_some() || fitting < executions.len();
        executions.truncate(fitting);
        // Not the row itself, which would tell how much others run.
        let suffix = if recent { RECENT_SUFFIX } else { "" };
        let next_cursor = executions.last().filter(|_| has_more).map(|last| format!("{}{suffix}", last.execution_id));
        Ok(ExecutionList { executions, next_cursor })
    }

    /// Where a list goes on. A cursor that is somebody else's is none.
    async fn after(&self, caller: &Caller, last: &str, cursor: &str) -> Result<Cursor, ServiceError> {
        let found = match last.parse() {
            Ok(id) => self.0.metadata.after_execution(&caller.principal, &id).await?,
            Err(_) => None,
        };
        found.ok_or_else(|| ServiceError::bad_cursor(cursor))
    }

    /// Follows an execution of this process by its progress; none when it runs elsewhere or has ended.
    pub fn live(&self, caller: &Caller, id: &str) -> Option<Arc<Live>> {
        self.0.live.find(&caller.principal, &id.parse().ok()?)
    }

    /// The table learns only at the end when the code began; until then whoever runs it knows.
    fn summary(&self, stored: metadata::ExecutionSummary) -> ExecutionSummary {
        let live = if stored.completed_at.is_none() { self.0.live.get(&stored.id) } else { None };
        ExecutionSummary {
            started_at: iso_8601(live.map_or(stored.started_at, |live| live.told().started_at)),
            execution_id: stored.id,
            status: stored.status,
            completed_at: stored.completed_at.map(iso_8601),
        }
    }

    async fn find(&self, caller: &Caller, text: &str, with_result: bool) -> Result<Found, ServiceError> {
        let unknown = || ServiceError::NotFound { what: "execution", name: text.chars().take(80).collect() };
        let id: ExecutionId = text.parse().map_err(|_| unknown())?;
        if let Some(live) = self.0.live.find(&caller.principal, &id) {
            return Ok(Found::Here(live));
        }
        loop {
            let stored = match with_result {
                true => self.0.metadata.execution(&caller.principal, &id).await?,
                false => self.0.metadata.execution_without_result(&caller.principal, &id).await?,
            };
            match stored {
                None => return Err(unknown()),
                // The process that ran it has died since this one started.
                Some(stored) if stored.status == Status::Running && !self.0.metadata.lives(&stored.process) => {
                    sweep::fail_orphan(self, &id).await?;
                }
                Some(stored) => return Ok(Found::Stored(Box::new(stored))),
            }
        }
    }
}

/// Has an execution stopped, wherever it runs, and waits until it is over.
pub async fn stop_everywhere(archive: &Archive, id: &ExecutionId, process: &str, stop: Stop) {
    match archive.0.live.get(id) {
        Some(live) => {
            live.stop(stop);
            live.ended().await;
        }
        // A process that can't be asked has died, and its executions with it.
        None => drop(neighbours::ask(archive, process, &Question { id: id.clone(), about: About::Cancel }).await),
    }
}

/// Waits for the end of an execution of another process, or for that process's.
pub async fn await_elsewhere(archive: &Archive, id: &ExecutionId, process: &str) {
    if neighbours::ask(archive, process, &Question { id: id.clone(), about: About::Ended }).await.is_err() {
        tokio::time::sleep(ELSEWHERE_INTERVAL).await;
    }
}

/// Waiting for an execution that runs in another process.
#[derive(Default)]
struct Asked {
    before: bool,
}

impl Asked {
    /// Waits until there may be news, at most until the deadline.
    async fn wait(&mut self, archive: &Archive, stored: &metadata::Execution, about: About, deadline: Instant) {
        let question = Question { id: stored.id.clone(), about };
        let news = async {
            // An answer that is not in the record yet is not asked for again at once.
            if self.before || neighbours::ask(archive, &stored.process, &question).await.is_err() {
                tokio::time::sleep(ELSEWHERE_INTERVAL).await;
            }
        };
        let _ = tokio::time::timeout_at(deadline, news).await;
        self.before = !self.before;
    }
}

/// The page, or as much of it as fits in the room for it.
fn page_within(
    room: Option<PageRoom>,
    page: PageRequest,
    read: impl Fn(PageRequest) -> Result<outputs::OutputPage, ServiceError>,
) -> Result<outputs::OutputPage, ServiceError> {
    let Some(room) = room else { return read(page) };
    let mut page = room.bounded(page);
    loop {
        let read = read(page)?;
        match room.overflow(page, &read) {
            None => return Ok(read),
            Some(Overflow::Smaller(smaller)) => page = smaller,
            Some(Overflow::Line { line, start_byte }) => {
                return Err(ServiceError::BadInput(format!(
                    "line {line} of the output is longer than one answer can be: read it in parts with `byte_offset` {start_byte}"
                )));
            }
        }
    }
}

/// Whether there is anything at the cursor.
pub fn reaches(output: Extent, page: PageRequest) -> bool {
    match page {
        PageRequest::Lines { offset, .. } => output.lines >= offset,
        PageRequest::Bytes { offset, .. } => output.bytes > offset,
    }
}

pub fn record_of(stored: metadata::Execution) -> ExecutionRecord {
    ExecutionRecord {
        execution_id: stored.id,
        status: stored.status,
        result: stored.result,
        heap: stored.heap,
        error: stored.error,
        started_at: iso_8601(stored.started_at),
        completed_at: stored.completed_at.map(iso_8601),
        warnings: stored.warnings,
        told: stored.continuity.and_then(|json| serde_json::from_str(&json).ok()),
        part: None,
    }
}

pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, ServiceError> + Send + 'static) -> Result<T, ServiceError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(ServiceError::Unavailable(error.to_string())))
}
