//! Reading a part of a stored result: no more of it is read than the answer holds, however long it is.

use super::Executions;
use super::record::{ExecutionRecord, ResultRange};
use crate::long_answers::TEXT_PART_BYTES;
use crate::{Caller, MESSAGE_BYTES_MAX, PageRoom, ServiceError, TextRest};
use std::time::Duration;

/// A character in UTF-8 is no longer.
const CHAR_BYTES_MAX: u64 = 4;

impl Executions<'_> {
    /// The record with a part of its result. Characters are never split: an offset inside a character moves to its start, and a part has at
    /// least one character if there is one.
    pub async fn get_part(&self, caller: &Caller, id: &str, wait: Duration, range: ResultRange) -> Result<ExecutionRecord, ServiceError> {
        let record = self.get(caller, id, wait).await?;
        let (Some(rest), Some(room)) = (record.rest.clone(), caller.room) else {
            return Ok(record.with_part(range, caller.room.filter(|room| !room.is_streamed())));
        };
        let start = self.char_start(caller, &rest, range.offset).await?;
        let mut end = match range.limit {
            Some(limit) => self.char_start(caller, &rest, start.saturating_add(limit)).await?,
            None => rest.end,
        };
        if end == start {
            let first = self.read(caller, &rest, start, CHAR_BYTES_MAX).await?;
            end += first.chars().next().map_or(0, char::len_utf8) as u64;
        }
        let text = self.read(caller, &rest, start, (end - start).min(bytes_max(room))).await?;
        Ok(if room.is_streamed() { record.with_streamed_part(start..end, text) } else { record.with_read_part(start, text, room) })
    }

    /// The start of the character at an offset of a result, or its end.
    async fn char_start(&self, caller: &Caller, result: &TextRest, offset: u64) -> Result<u64, ServiceError> {
        let offset = offset.min(result.end);
        let earliest = offset.saturating_sub(CHAR_BYTES_MAX - 1);
        for start in (earliest + 1..=offset).rev() {
            // Inside a character this is an error.
            if self.read(caller, result, start, CHAR_BYTES_MAX).await.is_ok() {
                return Ok(start);
            }
        }
        self.read(caller, result, earliest, CHAR_BYTES_MAX).await.map(|_| earliest)
    }

    /// At most this much of a result. A character that would be split is left out. Fails if the first one is.
    async fn read(&self, caller: &Caller, result: &TextRest, offset: u64, bytes_max: u64) -> Result<String, ServiceError> {
        let mut rest = TextRest { offset, end: result.end.min(offset + bytes_max), ..result.clone() };
        let mut text = String::new();
        while rest.offset < rest.end {
            match self.0.next_part(caller, &mut rest).await {
                Ok(part) => text.push_str(&part),
                Err(error) if text.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(text)
    }
}

/// How much of a part is read at once.
fn bytes_max(room: PageRoom) -> u64 {
    if room.is_streamed() { TEXT_PART_BYTES as u64 } else { (room.chars() as u64 * CHAR_BYTES_MAX).min(MESSAGE_BYTES_MAX as u64) }
}
