//! Session logs: what ran in each session, in order.

use super::Sessions;
use crate::{Caller, PageRoom, ServiceError};
use heapstead_store::records::{LogEntry, LogRange, NameRange, OpenedOn};
use heapstead_types::{HeapKey, SessionName};
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
    #[schemars(schema_with = "crate::schema::heap_key")]
    pub output_heap: Option<HeapKey>,
    /// The JavaScript that ran, after type stripping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    /// True if `code` is longer than one message can be and is shown in part. REST returns all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
}

/// The shortest name, in quotation marks.
const NAME_CHARS_MIN: usize = 4;
/// The shortest entry: one number.
const ENTRY_CHARS_MIN: usize = 10;

/// A field of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryField {
    Index,
    InputHeap,
    OutputHeap,
    Code,
    Timestamp,
    ExecutionId,
}

impl EntryField {
    const ALL: [(&'static str, Self); 6] = [
        ("index", Self::Index),
        ("input_heap", Self::InputHeap),
        ("output_heap", Self::OutputHeap),
        ("code", Self::Code),
        ("timestamp", Self::Timestamp),
        ("execution_id", Self::ExecutionId),
    ];

    /// The default fields of an entry.
    pub const DEFAULT: [Self; 5] = [Self::Index, Self::InputHeap, Self::OutputHeap, Self::Code, Self::Timestamp];

    /// A comma-separated list of names.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, ServiceError> {
        text.split(',')
            .map(|name| {
                let known = Self::ALL.iter().find(|(known, _)| *known == name.trim()).map(|(_, field)| *field);
                known.ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|(name, _)| format!("`{name}`")).collect();
                    ServiceError::bad_value(
                        "fields",
                        format!("`{text}`"),
                        format!("valid names, separated by commas, are {}", names.join(", ")),
                    )
                })
            })
            .collect()
    }
}

#[derive(Debug, Clone)]
pub struct LogRequest {
    pub session: SessionName,
    pub fields: Vec<EntryField>,
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
        let from = match &request.cursor {
            None => 0,
            Some(text) => text.parse().map_err(|_| ServiceError::bad_cursor(text))?,
        };
        let with_code = request.fields.contains(&EntryField::Code);
        let limit = caller.list_limit(request.limit, ENTRY_CHARS_MIN);
        // One more than is shown, to see whether there are more.
        let range = LogRange {
            from,
            limit: limit.map(|limit| limit + 1),
            code_bytes_max: caller.room.filter(|_| with_code).map(PageRoom::list_chars),
        };
        let read = self.0.records.session_log(&caller.principal, &request.session, range).await?;
        let indexes: Vec<_> = read.iter().map(|entry| entry.index).collect();
        let mut entries: Vec<_> = read.into_iter().map(|entry| shown(entry, &request.fields)).collect();
        if caller.room.is_some() {
            entries.iter_mut().for_each(SessionEntry::shorten);
        }
        let fitting = caller.items_that_fit(&entries);
        entries.truncate(limit.map_or(fitting, |limit| fitting.min(limit as usize)));
        let next_cursor = indexes.get(entries.len()).map(ToString::to_string);
        Ok(SessionEntries { entries, next_cursor })
    }
}

impl SessionEntry {
    /// Cuts code that no answer could hold.
    fn shorten(&mut self) {
        let Some(code) = &mut self.code else { return };
        let shown = PageRoom::longest_text(code).len();
        if shown < code.len() {
            code.truncate(shown);
            self.truncated = Some(true);
        }
    }
}

fn shown(entry: LogEntry, fields: &[EntryField]) -> SessionEntry {
    let mut shown = SessionEntry::default();
    for field in fields {
        match field {
            EntryField::Index => shown.index = Some(entry.index),
            EntryField::InputHeap => shown.input_heap = Some(entry.input_heap),
            EntryField::OutputHeap => shown.output_heap = Some(entry.output_heap),
            EntryField::Code => shown.code = Some(entry.code.clone()),
            EntryField::Timestamp => shown.timestamp = Some(crate::executions::iso_8601(entry.timestamp)),
            EntryField::ExecutionId => shown.execution_id = Some(entry.execution_id.to_string()),
        }
    }
    shown
}
