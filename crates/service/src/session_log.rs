//! The logs of sessions: what ran in each, in order.

use crate::{Archive, Caller, ServiceError};
use heapstead_store::metadata::LogEntry;
use heapstead_types::{HeapKey, SessionName};
use schemars::JsonSchema;
use serde::Serialize;

/// The names of sessions that have at least one entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionNames {
    pub sessions: Vec<String>,
}

/// Entries of a session's log, in order, each with the fields that were asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionEntries {
    pub entries: Vec<SessionEntry>,
    /// Pass this as `cursor` for the rest. Absent when there is no rest.
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
    /// The heap the run was given; null when none was.
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
}

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

    /// What an entry shows unless something else is asked for.
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

impl Archive {
    pub async fn sessions(&self, caller: &Caller) -> Result<SessionNames, ServiceError> {
        Ok(SessionNames { sessions: self.0.metadata.sessions(&caller.principal).await? })
    }

    pub async fn session_log(&self, caller: &Caller, request: LogRequest) -> Result<SessionEntries, ServiceError> {
        let from = match &request.cursor {
            None => 0,
            Some(text) => text.parse().map_err(|_| ServiceError::bad_cursor(text))?,
        };
        // One more than asked for tells whether there are more.
        let limit = request.limit.map(|limit| limit + 1);
        let mut entries = self.0.metadata.log(&caller.principal, &request.session, from, limit).await?;
        let more = request.limit.is_some_and(|limit| entries.len() > limit as usize);
        let next_cursor = if more { entries.pop().map(|next| next.index.to_string()) } else { None };
        Ok(SessionEntries { entries: entries.into_iter().map(|entry| shown(entry, &request.fields)).collect(), next_cursor })
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
            EntryField::Timestamp => shown.timestamp = Some(crate::record::iso_8601(entry.timestamp)),
            EntryField::ExecutionId => shown.execution_id = Some(entry.execution_id.to_string()),
        }
    }
    shown
}
