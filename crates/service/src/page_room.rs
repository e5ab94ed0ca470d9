//! How much of a list, an output or a result one answer may show. Lists and pages are made to fit, so that a cursor counts exactly what was
//! shown.

use crate::long_answers::TEXT_PART_BYTES;
use heapstead_store::outputs::{LineBytes, OutputPage, PageRequest};
use heapstead_types::JsonMeasure;
use serde::Serialize;

/// The longest message over MCP, encoded as JSON: some clients reject server-sent events of 1 MiB. No more of a result is read for one.
pub const MESSAGE_BYTES_MAX: usize = 900_000;
/// The longest page, whatever the operator allows: as text and as structured content it has at most 8 bytes per character, which fits in one
/// message.
const PAGE_CHARS_MAX: usize = 100_000;
/// Reserved for the rest of an answer with a text: names, numbers, ids, cursors.
const FRAME_CHARS: usize = 700;
/// The same for an answer with a list, whose cursor may be the name of a session.
const LIST_FRAME_CHARS: usize = 350;
/// Lower bound, so that every page makes progress.
const ROOM_CHARS_MIN: usize = 300;
/// A single line may be as long as a message has room for, as text and as structured content.
const LINE_BYTES_MAX: usize = 860_000;
/// A character in UTF-8 is no longer.
const CHAR_BYTES_MAX: usize = 4;

/// One page of an answer that is sent while it is read: large enough that few reads are made, small compared to the memory of a connection.
const STREAMED_CHARS: usize = 256 << 10;

/// The room of one answer, counted in characters of JSON. Callers without one get everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRoom {
    answer_chars: usize,
    is_streamed: bool,
}

/// Why a page does not fit.
#[derive(Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Request this instead.
    Smaller(PageRequest),
    /// One line is longer than any answer.
    Line { line: u64, start_byte: u64 },
}

impl PageRoom {
    pub fn new(answer_chars_max: usize) -> Self {
        Self { answer_chars: answer_chars_max.min(PAGE_CHARS_MAX), is_streamed: false }
    }

    /// For an answer that a program reads: as much as a message holds.
    pub fn message() -> Self {
        Self { answer_chars: MESSAGE_BYTES_MAX, is_streamed: false }
    }

    /// For an answer that is sent page by page, and a long text in it part by part (`long_answers.rs`).
    pub fn streamed() -> Self {
        Self { answer_chars: STREAMED_CHARS, is_streamed: true }
    }

    pub fn is_streamed(self) -> bool {
        self.is_streamed
    }

    /// Room for a text.
    pub fn chars(self) -> usize {
        self.answer_chars.saturating_sub(FRAME_CHARS).max(ROOM_CHARS_MIN)
    }

    /// Room for the items of a list.
    pub fn list_chars(self) -> usize {
        self.answer_chars.saturating_sub(LIST_FRAME_CHARS).max(ROOM_CHARS_MIN)
    }

    /// How many items of at least this length can fit.
    pub fn items_max(self, item_chars_min: usize) -> u32 {
        u32::try_from(self.list_chars() / item_chars_min).unwrap_or(u32::MAX).max(1)
    }

    /// How many of these items fit, from the first on. The first always does.
    pub fn items_that_fit<T: Serialize>(self, items: &[T]) -> usize {
        let mut used = 0;
        let fitting = items.iter().take_while(|item| {
            let json = serde_json::to_string(item).unwrap_or_default();
            used += JsonMeasure::Chars.json(&json) + ",".len();
            used <= self.list_chars()
        });
        fitting.count().max(1).min(items.len())
    }

    /// What an answer shows of a text in an item.
    pub fn longest_text(self, text: &str) -> &str {
        if self.is_streamed { text } else { JsonMeasure::Chars.prefix(text, PAGE_CHARS_MAX - FRAME_CHARS) }
    }

    /// How much of such a text to read.
    pub fn longest_text_bytes(self) -> usize {
        if self.is_streamed { TEXT_PART_BYTES } else { (PAGE_CHARS_MAX - FRAME_CHARS) * CHAR_BYTES_MAX }
    }

    /// The same page, of which no more is read than could fit.
    pub fn bounded(self, page: PageRequest) -> PageRequest {
        let bytes_max = (self.chars() * CHAR_BYTES_MAX) as u64;
        match page {
            PageRequest::Lines { offset, limit, bytes } if self.is_streamed => {
                PageRequest::Lines { offset, limit, bytes: LineBytes { data_max: TEXT_PART_BYTES as u64, ..bytes } }
            }
            PageRequest::Bytes { .. } if self.is_streamed => page,
            PageRequest::Lines { offset, limit, .. } => {
                let bytes = LineBytes { page_max: bytes_max, line_max: LINE_BYTES_MAX as u64 / 2, data_max: u64::MAX };
                PageRequest::Lines { offset, limit, bytes }
            }
            PageRequest::Bytes { offset, limit } => PageRequest::Bytes { offset, limit: limit.min(bytes_max) },
        }
    }

    /// What to do where a page turns out to be too long; nothing where it fits.
    pub fn overflow(self, request: PageRequest, page: &OutputPage) -> Option<Overflow> {
        if self.is_streamed {
            return None;
        }
        let shown = JsonMeasure::Chars.prefix(&page.data, self.chars());
        match request {
            PageRequest::Lines { offset, .. } if page.data.is_empty() && page.has_more => {
                Some(Overflow::Line { line: offset, start_byte: page.start_byte })
            }
            _ if shown.len() == page.data.len() => None,
            PageRequest::Bytes { .. } => {
                let first = page.data.chars().next().map_or(1, char::len_utf8);
                let limit = shown.len().max(first) as u64;
                (limit < page.data.len() as u64).then_some(Overflow::Smaller(PageRequest::Bytes { offset: page.start_byte, limit }))
            }
            PageRequest::Lines { offset, bytes, .. } => {
                let lines = shown.bytes().filter(|byte| *byte == b'\n').count() as u64;
                match page.end_line - page.start_line {
                    0 if message_bytes(&page.data) > LINE_BYTES_MAX => Some(Overflow::Line { line: offset, start_byte: page.start_byte }),
                    0 => None,
                    _ => Some(Overflow::Smaller(PageRequest::Lines { offset, limit: lines.max(1), bytes })),
                }
            }
        }
    }
}

/// What a text takes up in a message that has it as text and as structured content.
fn message_bytes(text: &str) -> usize {
    JsonMeasure::Bytes.content(text) + JsonMeasure::NestedBytes.content(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_fill_the_room_and_the_first_always_fits() {
        let room = PageRoom::new(2_000);
        for (items, fitting) in [(vec![], 0), (vec!["x".repeat(5_000), "y".into()], 1), (vec!["x".repeat(97); 50], 16)] {
            assert_eq!(room.items_that_fit(&items), fitting);
        }
    }

    #[test]
    fn the_room_is_bounded_both_ways() {
        assert_eq!(PageRoom::new(usize::MAX).chars(), PAGE_CHARS_MAX - FRAME_CHARS);
        assert_eq!((PageRoom::new(0).chars(), PageRoom::new(0).list_chars()), (ROOM_CHARS_MIN, ROOM_CHARS_MIN));
        assert_eq!(PageRoom::new(0).items_max(1_000), 1);
    }
}
