//! Console output of an execution, page by page.

use super::Executions;
use super::queries::{Found, PeerWait, note_head};
use crate::error::blocking;
use crate::page_room::Overflow;
use crate::{Caller, LongAnswer, LongText, PageRoom, ServiceError, TextRest};
use heapstead_store::outputs::{self, Extent, PageRequest};
use heapstead_store::peers::Question;
use heapstead_types::{ExecutionId, Status};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;
use tokio::time::Instant;

/// A page of console output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExecutionOutput {
    #[schemars(with = "String")]
    pub execution_id: ExecutionId,
    pub data: String,
    /// The first line on the page; lines are numbered from 1.
    pub start_line: u64,
    /// The last line on the page; one less than `start_line` if the page is empty.
    pub end_line: u64,
    /// Pass this as `line_offset` to read on.
    pub next_line_offset: u64,
    /// Whole lines so far.
    pub total_lines: u64,
    pub start_byte: u64,
    /// Exclusive.
    pub end_byte: u64,
    /// Pass this as `byte_offset` to read on.
    pub next_byte_offset: u64,
    pub total_bytes: u64,
    /// Whether there is more already. While the execution runs, more may follow.
    pub has_more: bool,
    #[schemars(schema_with = "crate::schema::status")]
    pub status: Status,
    /// Set if `data` is only the beginning of the page.
    #[serde(skip)]
    pub rest: Option<TextRest>,
}

impl LongAnswer for ExecutionOutput {
    fn rest(&self) -> Option<&TextRest> {
        self.rest.as_ref()
    }
}

impl Executions<'_> {
    /// A page. If there is nothing at the position yet and the execution still runs, waits at most `wait`.
    pub async fn output(&self, caller: &Caller, id: &str, page: PageRequest, wait: Duration) -> Result<ExecutionOutput, ServiceError> {
        let deadline = Instant::now() + wait;
        let mut peer_wait = PeerWait::default();
        loop {
            let (id, output, status, _permit) = match self.find(caller, id, 0).await? {
                Found::Here(execution) => {
                    let mut progress = execution.watch();
                    let at_position = progress.wait_for(|progress| progress.ended.is_some() || reaches(progress.output, page));
                    let _ = tokio::time::timeout_at(deadline, at_position).await;
                    note_head(caller, &execution);
                    let permit = self.0.reading.acquire(caller.budget_holder()).await;
                    // What was written while it waited is read, too.
                    let progress = progress.borrow();
                    let status = progress.ended.as_ref().map_or(Status::Running, |record| record.status);
                    (execution.id().clone(), progress.output, status, permit)
                }
                Found::Stored(stored) if stored.status.is_terminal() => {
                    let permit = self.0.reading.acquire(caller.budget_holder()).await;
                    (stored.id, stored.output, stored.status, permit)
                }
                Found::Stored(stored) => {
                    let (outputs, id) = (self.0.outputs.clone(), stored.id.clone());
                    let output = blocking(move || Ok(outputs.measure(&id)?)).await?;
                    if !reaches(output, page) && Instant::now() < deadline {
                        if let Some(entered) = &caller.entered {
                            entered.may_have_moved();
                        }
                        peer_wait.wait(self.0, &stored, question(&stored.id, page), deadline).await;
                        continue;
                    }
                    let permit = self.0.reading.acquire(caller.budget_holder()).await;
                    (stored.id, output, stored.status, permit)
                }
            };
            let (outputs, named, room) = (self.0.outputs.clone(), id.clone(), caller.room);
            let read =
                blocking(move || page_within(room, page, |page| Ok(outputs.page(&named, output, status.is_terminal(), page)?))).await?;
            return Ok(shown(id, status, read));
        }
    }
}

fn shown(execution_id: ExecutionId, status: Status, page: outputs::OutputPage) -> ExecutionOutput {
    let offset = page.start_byte + page.data.len() as u64;
    let rest = (offset < page.end_byte).then(|| TextRest { text: LongText::Output(execution_id.clone()), offset, end: page.end_byte });
    ExecutionOutput {
        rest,
        execution_id,
        data: page.data,
        start_line: page.start_line,
        end_line: page.end_line,
        next_line_offset: page.next_line_offset,
        total_lines: page.total_lines,
        start_byte: page.start_byte,
        end_byte: page.end_byte,
        next_byte_offset: page.next_byte_offset,
        total_bytes: page.total_bytes,
        has_more: page.has_more,
        status,
    }
}

fn question(id: &ExecutionId, page: PageRequest) -> Question {
    match page {
        PageRequest::Lines { offset, .. } => Question::Line(id.clone(), offset),
        PageRequest::Bytes { offset, .. } => Question::Byte(id.clone(), offset),
    }
}

/// Whether there is output at the position.
pub fn reaches(output: Extent, page: PageRequest) -> bool {
    match page {
        PageRequest::Lines { offset, .. } => output.lines >= offset,
        PageRequest::Bytes { offset, .. } => output.bytes > offset,
    }
}

/// The page, or as much of it as fits in the answer.
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
