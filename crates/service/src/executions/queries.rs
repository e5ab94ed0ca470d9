//! Records of executions: looked up, waited for, listed, and cancelled.

use super::Executions;
use super::orphans;
use super::record::{ExecutionRecord, HeapState, iso_8601};
use super::running::{RunningExecution, StopReason};
use crate::error::{Noun, blocking};
use crate::{Caller, ListPage, LongAnswer, LongText, MESSAGE_BYTES_MAX, PageRoom, ServiceError, Stores, TextRest};
use heapstead_store::peers::Question;
use heapstead_store::records::{self, Cursor, DeletedExecution, ExecutionFilter};
use heapstead_types::{ErrorCode, ExecutionId, ServerId, SessionName, Status};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How far back a list without parameters goes.
const LISTED_SINCE: SignedDuration = SignedDuration::from_hours(24);
/// Suffix of the cursors of such a list, so that its next page has the same filter.
pub const RECENT_SUFFIX: &str = "-recent";
/// The shortest summary: all its names, an id and one timestamp.
const SUMMARY_CHARS_MIN: usize = 120;
/// If another server can't be asked, or its answer is not in the record yet: pause before the record is read again.
const PEER_PAUSE: Duration = Duration::from_millis(100);

/// Executions, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExecutionList {
    pub executions: Vec<ExecutionSummary>,
    /// Pass this as `cursor` to get the next page. Absent on the last page.
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

/// Where an execution was found.
pub(super) enum Found {
    Here(Arc<RunningExecution>),
    Stored(Box<records::Execution>),
}

impl LongAnswer for ExecutionSummary {}

impl ListPage for ExecutionList {
    const MEMBER: &'static str = "executions";
    type Item = ExecutionSummary;

    fn into_items(self) -> (Vec<ExecutionSummary>, Option<String>) {
        (self.executions, self.next_cursor)
    }
}

impl Executions<'_> {
    /// The record. If the execution still runs, waits for its end, at most `wait`.
    pub async fn get(&self, caller: &Caller, id: &str, wait: Duration) -> Result<ExecutionRecord, ServiceError> {
        let deadline = Instant::now() + wait;
        let mut peer_wait = PeerWait::default();
        loop {
            match self.find(caller, id, result_bytes_max(caller.room)).await? {
                Found::Here(execution) => {
                    let _ = tokio::time::timeout_at(deadline, execution.ended()).await;
                    note_head(caller, &execution);
                    return Ok(execution.record());
                }
                Found::Stored(stored) if stored.status.is_terminal() || Instant::now() >= deadline => return Ok(record_of(*stored)),
                Found::Stored(stored) => {
                    // It may move the head of the caller's session from another server.
                    if let Some(entered) = &caller.entered {
                        entered.may_have_moved();
                    }
                    peer_wait.wait(self.0, &stored, Question::Ended(stored.id.clone()), deadline).await;
                }
            }
        }
    }

    /// Cancels an execution. When this returns, its worker is dead and its status is `cancelled`; an error says what the status is instead.
    pub async fn cancel(&self, caller: &Caller, id: &str) -> Result<(), ServiceError> {
        let status = match self.find(caller, id, 0).await? {
            // It stays registered for a moment after its end.
            Found::Here(execution) if let Some(ended) = &execution.watch().borrow().ended => ended.status,
            Found::Here(execution) => {
                execution.stop(StopReason::Cancelled);
                match execution.ended().await.status {
                    Status::Cancelled => return Ok(()),
                    status => status,
                }
            }
            Found::Stored(stored) if stored.status.is_terminal() => stored.status,
            Found::Stored(stored) => {
                match self.0.peers.ask(&stored.server, &Question::Cancel(stored.id)).await {
                    Ok(true) => return Ok(()),
                    // It ended before, or its server did; the record says how.
                    Ok(false) | Err(_) => match self.find(caller, id, 0).await? {
                        Found::Stored(stored) if stored.status.is_terminal() => stored.status,
                        _ => {
                            let text = format!("execution `{id}` runs in another server process, which can't be reached: cancel it there");
                            return Err(ServiceError::Unavailable(text));
                        }
                    },
                }
            }
        };
        let text = format!("execution `{id}` is not running: it is {}", status.as_str());
        Err(ServiceError::conflict(ErrorCode::ExecutionEnded, text))
    }

    /// Deletes the record and the output of an execution that has ended. Its heap stays until it is collected, its log entry as long as its
    /// session.
    pub async fn delete(&self, caller: &Caller, id: &str) -> Result<(), ServiceError> {
        let execution = match self.find(caller, id, 0).await? {
            Found::Here(execution) => execution.id().clone(),
            Found::Stored(stored) => stored.id,
        };
        match self.0.records.delete_execution(&caller.principal, &execution).await? {
            DeletedExecution::Deleted => {}
            DeletedExecution::Unknown => return Err(ServiceError::not_found(Noun::Execution, id)),
            DeletedExecution::IsRunning => {
                let text = format!("execution `{id}` is running: cancel it, or wait until it ends");
                return Err(ServiceError::conflict(ErrorCode::ExecutionRunning, text));
            }
        }
        let outputs = self.0.outputs.clone();
        blocking(move || {
            outputs.remove(&execution);
            Ok(())
        })
        .await
    }

    /// Without parameters: running executions, and those that ended in the last 24 hours.
    pub async fn list(&self, caller: &Caller, request: ListRequest) -> Result<ExecutionList, ServiceError> {
        let is_plain = request.status.is_none() && request.session.is_none() && request.limit.is_none();
        let (before, is_recent) = match request.cursor.as_deref() {
            None => (None, is_plain),
            Some(cursor) => {
                let last = cursor.strip_suffix(RECENT_SUFFIX);
                (Some(self.position_after(caller, last.unwrap_or(cursor), cursor).await?), last.is_some())
            }
        };
        let filter = ExecutionFilter {
            status: request.status,
            session: request.session,
            ended_since: is_recent.then(|| Timestamp::now() - LISTED_SINCE),
            before,
            limit: caller.list_limit(request.limit, SUMMARY_CHARS_MIN),
        };
        let (stored, next) = self.0.records.executions(&caller.principal, filter).await?;
        let mut executions: Vec<_> = stored.into_iter().map(|stored| self.summary(stored)).collect();
        let fitting = caller.items_that_fit(&executions);
        let has_more = next.is_some() || fitting < executions.len();
        executions.truncate(fitting);
        // An id and not a row number, which would reveal how much other owners run.
        let suffix = if is_recent { RECENT_SUFFIX } else { "" };
        let next_cursor = executions.last().filter(|_| has_more).map(|last| format!("{}{suffix}", last.execution_id));
        Ok(ExecutionList { executions, next_cursor })
    }

    /// A cursor of another owner is not valid.
    async fn position_after(&self, caller: &Caller, last: &str, cursor: &str) -> Result<Cursor, ServiceError> {
        let found = match last.parse() {
            Ok(id) => self.0.records.cursor_after(&caller.principal, &id).await?,
            Err(_) => None,
        };
        found.ok_or_else(|| ServiceError::bad_cursor(cursor))
    }

    /// An execution that runs in this process; none if it runs elsewhere or has ended.
    pub fn running(&self, caller: &Caller, id: &str) -> Option<Arc<RunningExecution>> {
        self.0.running.find(&caller.principal, &id.parse().ok()?)
    }

    /// The record gets the time at which the code started only at the end; until then the process that runs it has it.
    fn summary(&self, stored: records::ExecutionSummary) -> ExecutionSummary {
        let running = if stored.completed_at.is_none() { self.0.running.get(&stored.id) } else { None };
        ExecutionSummary {
            started_at: iso_8601(running.map_or(stored.started_at, |execution| execution.known_start().started_at)),
            execution_id: stored.id,
            status: stored.status,
            completed_at: stored.completed_at.map(iso_8601),
        }
    }

    pub(super) async fn find(&self, caller: &Caller, text: &str, result_bytes_max: usize) -> Result<Found, ServiceError> {
        let unknown = || ServiceError::not_found(Noun::Execution, text);
        let id: ExecutionId = text.parse().map_err(|_| unknown())?;
        if let Some(execution) = self.0.running.find(&caller.principal, &id) {
            return Ok(Found::Here(execution));
        }
        loop {
            match self.0.records.execution_with_part(&caller.principal, &id, result_bytes_max).await? {
                None => return Err(unknown()),
                // Its server has died since this one started.
                Some(stored) if stored.status == Status::Running && !self.0.peers.is_alive(&stored.server) => {
                    orphans::fail(self.0, &id).await?;
                }
                Some(stored) => return Ok(Found::Stored(Box::new(stored))),
            }
        }
    }

    /// Stops an execution wherever it runs, and waits until it has ended.
    pub(crate) async fn stop_everywhere(&self, id: &ExecutionId, server: &ServerId) {
        match self.0.running.get(id) {
            Some(execution) => {
                execution.stop(StopReason::Cancelled);
                execution.ended().await;
            }
            // A server that can't be asked has died, and its executions with it.
            None => drop(self.0.peers.ask(server, &Question::Cancel(id.clone())).await),
        }
    }
}

/// How much of a stored result is read. Callers without a room get all of it.
fn result_bytes_max(room: Option<PageRoom>) -> usize {
    match room {
        None => usize::MAX,
        Some(room) if room.is_streamed() => room.longest_text_bytes(),
        Some(_) => MESSAGE_BYTES_MAX,
    }
}

/// An execution that ended may have moved the head of the caller's session.
pub(crate) fn note_head(caller: &Caller, execution: &RunningExecution) {
    if let (Some(entered), Some(head)) = (&caller.entered, execution.head())
        && execution.session == Some(entered.id())
    {
        entered.moved_to(head);
    }
}

/// Waiting for an execution of another server.
#[derive(Default)]
pub(super) struct PeerWait {
    asked_before: bool,
}

impl PeerWait {
    /// Waits until there may be news, at most until the deadline.
    pub async fn wait(&mut self, stores: &Stores, stored: &records::Execution, question: Question, deadline: Instant) {
        let news = async {
            // An answer that is not in the record yet is not asked for again at once.
            if self.asked_before || stores.peers.ask(&stored.server, &question).await.is_err() {
                tokio::time::sleep(PEER_PAUSE).await;
            }
        };
        let _ = tokio::time::timeout_at(deadline, news).await;
        self.asked_before = !self.asked_before;
    }
}

fn record_of(stored: records::Execution) -> ExecutionRecord {
    let offset = stored.result.as_ref().map_or(0, String::len) as u64;
    let rest = TextRest { text: LongText::Result(stored.id.clone()), offset, end: stored.result_bytes };
    ExecutionRecord {
        rest: (rest.offset < rest.end).then_some(rest),
        execution_id: stored.id,
        status: stored.status,
        result: stored.result,
        heap: stored.heap,
        heap_state: stored.state_heap.map(HeapState::from),
        heap_error: stored.heap_error,
        error: stored.error,
        error_code: stored.error_code,
        started_at: iso_8601(stored.started_at),
        completed_at: stored.completed_at.map(iso_8601),
        warnings: stored.warnings,
        notice: stored.continuity.and_then(|json| serde_json::from_str(&json).ok()),
        part: None,
    }
}
