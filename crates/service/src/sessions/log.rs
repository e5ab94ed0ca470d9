//! Session logs: what ran in each session, in order.

use super::Sessions;
use crate::{Caller, ListPage, LongAnswer, LongText, PageRoom, ServiceError, TextRest};
use heapstead_store::records::{LogEntry, LogRange, NameRange, OpenedOn};
use heapstead_types::{ExecutionId, HeapKey, SessionName};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// The sessions with at least one log entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionNames {
    /// Sorted: named sessions by name, opened sessions by `session_id` (64 hex digits). `session` of other tools takes both.
    pub sessions: Vec<String>,
    /// Pass this as `cursor` to get the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A page of session names.
#[derive(Debug, Clone, Default)]
pub struct NamesRequest {
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

/// Entries of a session's log, in order, with the requested fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionEntries {
    pub entries: Vec<SessionEntry>,
    /// Pass this as `cursor` to get the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default)]
pub struct SessionEntry {
    /// Why there are no entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Sequence number in the session: 0, 1, 2 …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// The heap that the run started from; null for a fresh one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::optional_heap_key")]
    pub input_heap: Option<Option<HeapKey>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// The heap that the run produced; null if the run was acknowledged before its heap was stored, until it is.
    #[schemars(schema_with = "crate::schema::optional_heap_key")]
    pub output_heap: Option<Option<HeapKey>>,
    /// The JavaScript that ran, after type stripping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    /// True for a turn that was undone (`session_undo`): later turns do not continue from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone: Option<bool>,
    /// True if `code` shows only the beginning: without `fields`, its first 64 KiB; over MCP also what one message can hold. To get all of it,
    /// request `fields=code` over REST.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// Bytes of the whole code, if `truncated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_bytes: Option<u64>,
    /// Set if `code` is only the beginning of what the answer will hold.
    #[serde(skip)]
    pub rest: Option<TextRest>,
}

impl LongAnswer for SessionEntry {
    fn rest(&self) -> Option<&TextRest> {
        self.rest.as_ref()
    }
}

impl ListPage for SessionEntries {
    const MEMBER: &'static str = "entries";
    type Item = SessionEntry;

    fn into_items(self) -> (Vec<SessionEntry>, Option<String>) {
        (self.entries, self.next_cursor)
    }
}

impl LongAnswer for String {}

impl ListPage for SessionNames {
    const MEMBER: &'static str = "sessions";
    type Item = String;

    fn into_items(self) -> (Vec<String>, Option<String>) {
        (self.sessions, self.next_cursor)
    }
}

/// The shortest name, in quotation marks.
const NAME_CHARS_MIN: usize = 4;
/// The shortest entry: one number.
const ENTRY_CHARS_MIN: usize = 10;
/// How much of an entry's code is shown to callers that do not ask for fields: more than a person or a model writes for one run, and little
/// enough that a page of a log with generated code stays readable.
const CODE_BYTES_SHOWN: usize = 64 << 10;

/// A field of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryField {
    Index,
    InputHeap,
    OutputHeap,
    Code,
    Timestamp,
    ExecutionId,
    Undone,
}

impl EntryField {
    const ALL: [(&'static str, Self); 7] = [
        ("index", Self::Index),
        ("input_heap", Self::InputHeap),
        ("output_heap", Self::OutputHeap),
        ("code", Self::Code),
        ("timestamp", Self::Timestamp),
        ("execution_id", Self::ExecutionId),
        ("undone", Self::Undone),
    ];

    /// The default fields of an entry.
    pub const DEFAULT: [Self; 6] = [Self::Index, Self::InputHeap, Self::OutputHeap, Self::Code, Self::Timestamp, Self::Undone];

    /// A comma-separated list of names. Each field is shown once, however often it is named.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, ServiceError> {
        let mut fields = Vec::new();
        for name in text.split(',') {
            let known = Self::ALL.iter().find(|(known, _)| *known == name.trim()).map(|(_, field)| *field);
            let field = known.ok_or_else(|| {
                let names: Vec<_> = Self::ALL.iter().map(|(name, _)| format!("`{name}`")).collect();
                ServiceError::bad_value(
                    "fields",
                    format!("`{text}`"),
                    format!("valid names, separated by commas, are {}", names.join(", ")),
                )
            })?;
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        Ok(fields)
    }
}

#[derive(Debug, Clone)]
pub struct LogRequest {
    pub session: SessionName,
    /// If none, the default fields, with code cut to a length that people write.
    pub fields: Option<Vec<EntryField>>,
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

impl Sessions<'_> {
    pub async fn list_names(&self, caller: &Caller, request: NamesRequest) -> Result<SessionNames, ServiceError> {
        // Anonymous callers share an owner, so each sees only the opened sessions of its own connection.
        let opened = match caller.scope() {
            Some(connection) => OpenedOn::Connection(connection.to_owned()),
            None if caller.principal.is_anonymous() => OpenedOn::None,
            None => OpenedOn::Any,
        };
        let limit = caller.list_limit(request.limit, NAME_CHARS_MIN);
        // One more than is shown, to see whether there are more.
        let after = match request.cursor {
            Some(cursor) if cursor.parse::<SessionName>().is_err() => return Err(ServiceError::bad_cursor(&cursor)),
            cursor => cursor,
        };
        let range = NameRange { after, limit: limit.map(|limit| limit + 1) };
        let mut sessions = self.0.records.session_names(&caller.principal, opened, range, Timestamp::now()).await?;
        let fitting = caller.items_that_fit(&sessions);
        let fitting = limit.map_or(fitting, |limit| fitting.min(limit as usize));
        let has_more = fitting < sessions.len();
        sessions.truncate(fitting);
        let next_cursor = sessions.last().filter(|_| has_more).cloned();
        Ok(SessionNames { sessions, next_cursor })
    }

    pub async fn log(&self, caller: &Caller, request: LogRequest) -> Result<SessionEntries, ServiceError> {
        let from = request.first_index()?;
        let limit = caller.list_limit(request.limit, ENTRY_CHARS_MIN);
        let range = LogRange {
            from,
            limit,
            code_bytes_each: request.code_bytes_each(caller.room),
            code_bytes_max: caller.room.map(PageRoom::list_chars),
        };
        let (read, has_more) = self.0.records.session_log(&caller.principal, &request.session, range).await?;
        let first = read.first().map_or(from, |entry| entry.index);
        let mut entries: Vec<_> = read.into_iter().map(|entry| request.shown(entry, caller.room)).collect();
        let fitting = caller.items_that_fit(&entries);
        // Indexes have no gaps.
        let next_cursor = (has_more || fitting < entries.len()).then(|| first.saturating_add(fitting as u64).to_string());
        entries.truncate(fitting);
        Ok(SessionEntries { entries, next_cursor })
    }

    /// The executions on a page of a log whose heaps are not stored.
    pub(crate) async fn unstored_in_log(&self, caller: &Caller, request: &LogRequest) -> Result<Vec<ExecutionId>, ServiceError> {
        let range = LogRange { from: request.first_index()?, limit: request.limit, code_bytes_each: Some(0), code_bytes_max: None };
        let (entries, _) = self.0.records.session_log(&caller.principal, &request.session, range).await?;
        Ok(entries.into_iter().filter(|entry| entry.output_heap.is_none()).map(|entry| entry.execution_id).collect())
    }
}

impl LogRequest {
    fn first_index(&self) -> Result<u64, ServiceError> {
        match &self.cursor {
            None => Ok(0),
            Some(text) => text.parse().map_err(|_| ServiceError::bad_cursor(text)),
        }
    }

    fn has_code(&self) -> bool {
        self.fields.as_ref().is_none_or(|fields| fields.contains(&EntryField::Code))
    }

    /// How much of the code of an entry to read; none means all.
    fn code_bytes_each(&self, room: Option<PageRoom>) -> Option<usize> {
        if !self.has_code() {
            return Some(0);
        }
        let shown = self.fields.is_none().then_some(CODE_BYTES_SHOWN);
        shown.into_iter().chain(room.map(PageRoom::longest_text_bytes)).min()
    }

    fn shown(&self, mut entry: LogEntry, room: Option<PageRoom>) -> SessionEntry {
        if let Some(room) = room {
            entry.code.truncate(room.longest_text(&entry.code).len());
        }
        let read = entry.code.len() as u64;
        let is_cut = self.has_code() && read < entry.code_bytes;
        let is_streamed = self.fields.is_some() && room.is_some_and(PageRoom::is_streamed);
        let text = LongText::Code { session: self.session.clone(), index: entry.index };
        let rest = (is_cut && is_streamed).then_some(TextRest { text, offset: read, end: entry.code_bytes });
        let is_truncated = is_cut && !is_streamed;
        SessionEntry {
            truncated: is_truncated.then_some(true),
            code_bytes: is_truncated.then_some(entry.code_bytes),
            rest,
            ..fields(entry, self.fields.as_deref().unwrap_or(&EntryField::DEFAULT))
        }
    }
}

fn fields(entry: LogEntry, fields: &[EntryField]) -> SessionEntry {
    let mut shown = SessionEntry::default();
    for field in fields {
        match field {
            EntryField::Index => shown.index = Some(entry.index),
            EntryField::InputHeap => shown.input_heap = Some(entry.input_heap),
            EntryField::OutputHeap => shown.output_heap = Some(entry.output_heap),
            EntryField::Code => shown.code = Some(entry.code.clone()),
            EntryField::Timestamp => shown.timestamp = Some(crate::executions::iso_8601(entry.timestamp)),
            EntryField::ExecutionId => shown.execution_id = Some(entry.execution_id.to_string()),
            EntryField::Undone => shown.undone = entry.is_undone.then_some(true),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code of every entry was copied as often as a request named it, which may have been millions of times.
    #[test]
    fn a_field_that_is_named_often_is_shown_once() {
        let fields = EntryField::parse_list(&format!("index,{}code", "code, ".repeat(1000))).expect("fields");
        assert_eq!(fields, [EntryField::Index, EntryField::Code]);
        assert!(EntryField::parse_list("").is_err() && EntryField::parse_list("code,").is_err());
    }
}
