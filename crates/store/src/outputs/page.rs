//! One page of an output, by lines or by bytes, always with both sets of cursors. The cost depends on the page alone, not on its position.

use super::Extent;
use super::line_index::LineIndex;
use super::output_file::OutputFile;
use std::io;

pub const LINE_LIMIT_DEFAULT: u64 = 100;
/// A page is for reading, by a model or a person; more lines are several pages.
pub const LINE_LIMIT_MAX: u64 = 10_000;
pub const BYTE_LIMIT_DEFAULT: u64 = 4096;
pub const BYTE_LIMIT_MAX: u64 = 4 << 20;
/// A page by lines ends early, after a whole line, before it exceeds this; a single line may be longer.
const LINE_PAGE_BYTES_MAX: u64 = 16 << 20;

/// How many bytes a page by lines may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineBytes {
    /// A page ends early, after a whole line, before it exceeds this; a single line may be longer.
    pub page_max: u64,
    /// A line that is longer is not read: the page is empty, has more, and says where the line begins.
    pub line_max: u64,
    /// No more text than this is read; the cursors are those of the whole page.
    pub data_max: u64,
}

impl Default for LineBytes {
    fn default() -> Self {
        Self { page_max: LINE_PAGE_BYTES_MAX, line_max: u64::MAX, data_max: u64::MAX }
    }
}
/// A character in UTF-8 is no longer.
const CHARACTER_BYTES_MAX: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageRequest {
    /// Whole lines from this one on; the first is 1.
    Lines {
        offset: u64,
        limit: u64,
        bytes: LineBytes,
    },
    Bytes {
        offset: u64,
        limit: u64,
    },
}

impl PageRequest {
    pub fn lines(offset: u64, limit: u64) -> Self {
        Self::Lines { offset, limit, bytes: LineBytes::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPage {
    pub data: String,
    pub start_line: u64,
    pub end_line: u64,
    pub next_line_offset: u64,
    pub total_lines: u64,
    pub start_byte: u64,
    /// Exclusive.
    pub end_byte: u64,
    pub next_byte_offset: u64,
    pub total_bytes: u64,
    pub has_more: bool,
}

pub fn read(text: &OutputFile<'_>, index: &LineIndex<'_>, written: Extent, ended: bool, request: PageRequest) -> io::Result<OutputPage> {
    let reader = Reader { text, index, written, ended };
    match request {
        PageRequest::Lines { offset, limit, bytes } => reader.lines(offset, limit, bytes),
        PageRequest::Bytes { offset, limit } => reader.bytes(offset, limit),
    }
}

/// The page of an output without text.
pub fn empty(request: PageRequest) -> OutputPage {
    match request {
        PageRequest::Lines { offset, .. } => empty_at(Extent::default(), offset, 0),
        PageRequest::Bytes { offset, .. } => empty_at(Extent::default(), 1, offset),
    }
}

/// A page that holds nothing: its cursors stay where they are.
fn empty_at(written: Extent, line: u64, byte: u64) -> OutputPage {
    OutputPage {
        data: String::new(),
        start_line: line,
        end_line: line - 1,
        next_line_offset: line,
        total_lines: written.lines,
        start_byte: byte,
        end_byte: byte,
        next_byte_offset: byte,
        total_bytes: written.bytes,
        has_more: false,
    }
}

struct Reader<'a> {
    text: &'a OutputFile<'a>,
    index: &'a LineIndex<'a>,
    written: Extent,
    ended: bool,
}

impl Reader<'_> {
    fn lines(&self, first: u64, limit: u64, bytes: LineBytes) -> io::Result<OutputPage> {
        let total = self.written.lines;
        if first > total {
            return Ok(empty_at(self.written, first, self.start_of_line(total + 1)?));
        }
        let mut last = total.min(first.saturating_add(limit) - 1);
        let start = self.start_of_line(first)?;
        let mut end = self.start_of_line(last + 1)?;
        if end - start > bytes.page_max {
            // The lines that fit whole, or the one that does not.
            last = self.line_at(start + bytes.page_max)?.max(first + 1) - 1;
            end = self.start_of_line(last + 1)?;
            if end - start > bytes.line_max {
                return Ok(OutputPage { has_more: true, ..empty_at(self.written, first, start) });
            }
        }
        Ok(OutputPage {
            data: self.string(start, end, bytes.data_max)?,
            start_line: first,
            end_line: last,
            next_line_offset: last + 1,
            total_lines: total,
            start_byte: start,
            end_byte: end,
            next_byte_offset: end,
            total_bytes: self.written.bytes,
            has_more: last < total,
        })
    }

    fn bytes(&self, offset: u64, limit: u64) -> io::Result<OutputPage> {
        let total = self.written.bytes;
        if offset >= total {
            return Ok(empty_at(self.written, self.line_after(total)?, offset));
        }
        let from = offset.saturating_sub(CHARACTER_BYTES_MAX - 1);
        let to = total.min(offset.saturating_add(limit.max(CHARACTER_BYTES_MAX)).saturating_add(CHARACTER_BYTES_MAX));
        let bytes = self.text.read(from..to)?;
        let at = |position: u64| (position - from) as usize;
        let is_start = |position: u64| bytes.get(at(position)).is_none_or(|byte| (*byte as i8) >= -0x40);
        let start = (from..=offset).rev().find(|position| is_start(*position)).unwrap_or(offset);
        let bound = to.min(start.saturating_add(limit));
        let first_end = (start + 1..=to).find(|position| is_start(*position)).unwrap_or(to);
        let end = (start + 1..=bound).rev().find(|position| is_start(*position)).unwrap_or(first_end).max(first_end);
        let start_line = self.line_at(start)?;
        let data = into_string(bytes[at(start)..at(end)].to_vec())?;
        let newlines = data.bytes().filter(|byte| *byte == b'\n').count() as u64;
        Ok(OutputPage {
            start_line,
            end_line: start_line + newlines - u64::from(data.ends_with('\n')),
            next_line_offset: if end == total { self.line_after(total)? } else { start_line + newlines },
            total_lines: self.written.lines,
            start_byte: start,
            end_byte: end,
            next_byte_offset: end,
            total_bytes: total,
            has_more: end < total,
            data,
        })
    }

    /// The line that the byte at this offset is in.
    fn line_at(&self, offset: u64) -> io::Result<u64> {
        Ok(self.index.newlines_up_to(self.text, offset)? + 1)
    }

    /// The line that comes next once everything up to the end was read: the unfinished one, while it may still grow.
    fn line_after(&self, total: u64) -> io::Result<u64> {
        if self.ended { Ok(self.written.lines + 1) } else { self.line_at(total) }
    }

    /// Where a line begins; for the one after the last, where the lines end.
    fn start_of_line(&self, line: u64) -> io::Result<u64> {
        if self.ended && line > self.written.lines {
            return Ok(self.written.bytes);
        }
        self.index.after_newline(self.text, self.written.bytes, line - 1)
    }

    /// The text in this range, or as many of its characters as fit in `bytes_max`.
    fn string(&self, start: u64, end: u64, bytes_max: u64) -> io::Result<String> {
        let mut bytes = self.text.read(start..end.min(start.saturating_add(bytes_max)))?;
        if end - start > bytes_max {
            bytes.truncate(str::from_utf8(&bytes).map_or_else(|error| error.valid_up_to(), str::len));
        }
        into_string(bytes)
    }
}

fn into_string(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
