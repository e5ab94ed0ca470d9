//! The record of an execution, as `get_execution` returns it.

use crate::long_answers::TEXT_PART_BYTES;
use crate::sessions::SessionNotice;
use crate::{LongAnswer, LongText, MESSAGE_BYTES_MAX, PageRoom, TextRest};
use heapstead_store::records::StateHeap;
use heapstead_types::{ErrorCode, ExecutionId, HeapKey, JsonMeasure, Status};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Range;

/// The record of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExecutionRecord {
    #[schemars(with = "String")]
    pub execution_id: ExecutionId,
    #[schemars(schema_with = "crate::schema::status")]
    pub status: Status,
    /// The serialised completion value when `completed`, else null.
    pub result: Option<String>,
    /// Key of the heap that the run produced; null unless `completed`.
    #[schemars(schema_with = "crate::schema::optional_heap_key")]
    pub heap: Option<HeapKey>,
    /// Of a turn in an opened session that was acknowledged before its heap was stored: `pending`, `stored`, or `skipped` if the heap of a later
    /// turn was stored instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap_state: Option<HeapState>,
    /// Why a `pending` heap could not be stored; it is tried again with the next turn. Absent if nothing failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap_error: Option<String>,
    /// What went wrong if `failed`, `timed_out` or `cancelled`, else null.
    pub error: Option<String>,
    /// Stable code of the error. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub error_code: Option<ErrorCode>,
    /// ISO 8601. While the run is queued, the time it was accepted.
    pub started_at: String,
    /// ISO 8601; null while running.
    pub completed_at: Option<String>,
    /// Warnings for the caller. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub warnings: Vec<String>,
    /// What happened to the run's logical session, if the client has to know.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub notice: Option<SessionNotice>,
    /// Set if `result` is only a part of the result.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub part: Option<ResultPart>,
    /// Set if `result` is only the beginning of what the answer will hold.
    #[serde(skip)]
    pub rest: Option<TextRest>,
}

/// Whether the heap of a turn is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeapState {
    Pending,
    Stored,
    Skipped,
}

impl From<StateHeap> for HeapState {
    fn from(heap: StateHeap) -> Self {
        match heap {
            StateHeap::Pending => Self::Pending,
            StateHeap::Stored(_) => Self::Stored,
            StateHeap::Skipped => Self::Skipped,
        }
    }
}

impl LongAnswer for ExecutionRecord {
    fn rest(&self) -> Option<&TextRest> {
        self.rest.as_ref()
    }
}

/// Which part of a result is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ResultPart {
    /// Whether there is more of the result after this part.
    pub truncated: bool,
    /// Where the part begins, in bytes of UTF-8.
    pub result_offset: u64,
    /// Where it ends: pass this as `result_offset` to get_execution to read on.
    pub next_result_offset: u64,
    /// Bytes of the whole result.
    pub result_bytes: u64,
    /// How to read the rest. Absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
}

impl ResultPart {
    pub fn new(execution_id: &str, range: Range<usize>, result_bytes: usize) -> Self {
        let truncated = range.end < result_bytes;
        let rest = truncated.then(|| {
            format!(
                "call get_execution with `result_offset` {next}, or read the resource {RESULTS}/{execution_id}/result?byte_offset={next}",
                next = range.end
            )
        });
        let [result_offset, next_result_offset, result_bytes] = [range.start, range.end, result_bytes].map(|bytes| bytes as u64);
        Self { truncated, result_offset, next_result_offset, result_bytes, rest }
    }
}

/// Prefix of the resource URIs of executions.
const RESULTS: &str = "heapstead://executions";

/// Which part of a result is asked for, in bytes of UTF-8.
#[derive(Debug, Clone, Copy)]
pub struct ResultRange {
    pub offset: u64,
    pub limit: Option<u64>,
}

impl ExecutionRecord {
    /// The record with the beginning of a long result or part; the rest is read while the answer is sent.
    pub fn streamed(mut self) -> Self {
        let start = self.part.as_ref().map_or(0, |part| part.result_offset);
        if let Some(result) = self.result.as_mut().filter(|result| result.len() > TEXT_PART_BYTES) {
            let end = start + result.len() as u64;
            result.truncate(result.floor_char_boundary(TEXT_PART_BYTES));
            result.shrink_to_fit();
            let offset = start + result.len() as u64;
            self.rest = Some(TextRest { text: LongText::Result(self.execution_id.clone()), offset, end });
        }
        self
    }

    /// The record as a message over MCP can hold it: with the beginning of a long result, which says that it is one.
    pub fn for_message(mut self) -> Self {
        let Some(result) = &mut self.result else { return self };
        let result_bytes = self.rest.take().map_or(result.len(), |rest| rest.end as usize);
        if result_bytes > MESSAGE_BYTES_MAX && self.part.is_none() {
            result.truncate(result.floor_char_boundary(MESSAGE_BYTES_MAX));
            result.shrink_to_fit();
            self.part = Some(ResultPart::new(self.execution_id.as_str(), 0..result.len(), result_bytes));
        }
        self
    }

    /// The record with a part of its result that was read on its own. It begins at `offset` and is at most as long as was asked for.
    pub fn with_read_part(mut self, offset: u64, text: String, room: PageRoom) -> Self {
        let result_bytes = self.rest.take().map_or(0, |rest| rest.end);
        let shown = JsonMeasure::Chars.prefix(&text, room.chars());
        let first = text.chars().next().map_or(0, char::len_utf8);
        let end = shown.len().max(first);
        let range = offset as usize..offset as usize + end;
        self.part = Some(ResultPart::new(self.execution_id.as_str(), range, result_bytes as usize));
        self.result = text.get(..end).map(str::to_owned);
        self
    }

    /// The record with this part of its result, of which the beginning was read; the rest is read while the answer is sent.
    pub fn with_streamed_part(mut self, range: Range<u64>, text: String) -> Self {
        if let Some(rest) = &mut self.rest {
            self.part = Some(ResultPart::new(self.execution_id.as_str(), range.start as usize..range.end as usize, rest.end as usize));
            (rest.offset, rest.end) = (range.start + text.len() as u64, range.end);
        }
        self.rest = self.rest.filter(|rest| rest.offset < rest.end);
        self.result = Some(text);
        self
    }

    /// The record with this part of its result, or as much of it as fits. Characters are never split: an offset inside a character moves to
    /// its start, and a part has at least one character if there is one.
    pub fn with_part(mut self, range: ResultRange, room: Option<PageRoom>) -> Self {
        let Some(result) = &self.result else { return self };
        let start = result.floor_char_boundary(usize::try_from(range.offset).unwrap_or(usize::MAX));
        let limit = range.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let end = result.floor_char_boundary(start.saturating_add(limit));
        let fitting = room.map_or(&result[start..end], |room| JsonMeasure::Chars.prefix(&result[start..end], room.chars()));
        let first = result[start..].chars().next().map_or(0, char::len_utf8);
        let end = start + fitting.len().max(first);
        self.part = Some(ResultPart::new(self.execution_id.as_str(), start..end, result.len()));
        self.result = Some(result[start..end].to_owned());
        self
    }
}

/// The format of all timestamps in answers.
pub fn iso_8601(time: Timestamp) -> String {
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(result: &str) -> ExecutionRecord {
        ExecutionRecord {
            execution_id: "0f".repeat(16).parse().expect("an id"),
            status: Status::Completed,
            result: Some(result.to_owned()),
            heap: None,
            heap_state: None,
            heap_error: None,
            error: None,
            error_code: None,
            started_at: String::new(),
            completed_at: None,
            warnings: Vec::new(),
            notice: None,
            part: None,
            rest: None,
        }
    }

    #[test]
    fn parts_of_a_result_follow_each_other_without_gap() {
        let result = "a\"é\n€😀\\z".repeat(300);
        for (limit, room) in
            [(None, None), (Some(1), None), (Some(7), None), (None, Some(PageRoom::new(0))), (Some(4096), Some(PageRoom::new(0)))]
        {
            let (mut read, mut offset) = (String::new(), 0);
            loop {
                let page = record(&result).with_part(ResultRange { offset, limit }, room);
                let part = page.part.expect("a part");
                assert_eq!((part.result_offset, part.result_bytes), (offset, result.len() as u64));
                assert_eq!(part.rest.is_some(), part.truncated);
                read += &page.result.expect("a result");
                assert_eq!(read.len() as u64, part.next_result_offset);
                if !part.truncated {
                    break;
                }
                assert!(part.next_result_offset > offset);
                offset = part.next_result_offset;
            }
            assert_eq!(read, result);
        }
    }

    #[test]
    fn an_offset_inside_a_character_goes_back_and_one_past_the_end_finds_nothing() {
        for (offset, begins, shown) in [(0, 0, "€uro"), (1, 0, "€uro"), (2, 0, "€uro"), (3, 3, "uro"), (6, 6, ""), (999, 6, "")] {
            let page = record("€uro").with_part(ResultRange { offset, limit: None }, None);
            assert_eq!((page.part.expect("a part").result_offset, page.result.as_deref()), (begins, Some(shown)));
        }
    }
}
