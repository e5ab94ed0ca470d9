//! Column readers: values of our own types as they are stored in text and integers.

use heapstead_types::{ErrorCode, ExecutionId, HeapKey, Principal, ServerId, SessionId, Status};
use jiff::Timestamp;
use rusqlite::Row;
use rusqlite::types::Type;
use std::error::Error;
use std::str::FromStr;
use uuid::Uuid;

/// Condition that a column has the key of a heap, not the id of a state. The indexes by heap have no others, and SQLite uses them only if a query
/// says so too (`migrations/0016_indexes_without_states.sql`).
macro_rules! is_heap {
    ($column:literal) => {
        concat!($column, " NOT GLOB '6865617073746561643a207374617465*'")
    };
}
pub(super) use is_heap;

pub fn execution_id(row: &Row<'_>, index: usize) -> rusqlite::Result<ExecutionId> {
    parsed(row, index)
}

pub fn session_id(row: &Row<'_>, index: usize) -> rusqlite::Result<SessionId> {
    parsed(row, index)
}

pub fn optional_session_id(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<SessionId>> {
    optional(row, index)
}

pub fn server_id(row: &Row<'_>, index: usize) -> rusqlite::Result<ServerId> {
    parsed(row, index)
}

pub fn optional_server_id(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<ServerId>> {
    optional(row, index)
}

pub fn uuid(row: &Row<'_>, index: usize) -> rusqlite::Result<Uuid> {
    parsed(row, index)
}

pub fn optional_uuid(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Uuid>> {
    optional(row, index)
}

pub fn heap_key(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<HeapKey>> {
    optional(row, index)
}

/// The anonymous principal is stored as the empty string.
pub fn principal(row: &Row<'_>, index: usize) -> rusqlite::Result<Principal> {
    if row.get_ref(index)?.as_str()?.is_empty() { Ok(Principal::anonymous()) } else { parsed(row, index) }
}

pub fn timestamp(row: &Row<'_>, index: usize) -> rusqlite::Result<Timestamp> {
    Timestamp::from_microsecond(row.get(index)?).map_err(|error| unreadable(index, error))
}

pub fn optional_timestamp(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Timestamp>> {
    row.get::<_, Option<i64>>(index)?.map(|time| Timestamp::from_microsecond(time).map_err(|error| unreadable(index, error))).transpose()
}

pub fn status(row: &Row<'_>, index: usize) -> rusqlite::Result<Status> {
    let name: String = row.get(index)?;
    Status::from_name(&name).ok_or_else(|| unreadable(index, format!("`{name}` is not a status")))
}

/// None for a code that a newer version wrote: the text of the error is still there.
pub fn error_code(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<ErrorCode>> {
    Ok(row.get::<_, Option<String>>(index)?.and_then(|name| ErrorCode::from_name(&name)))
}

pub fn unreadable(index: usize, why: impl Into<Box<dyn Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(index, Type::Text, why.into())
}

fn parsed<T: FromStr<Err: Error + Send + Sync + 'static>>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    row.get_ref(index)?.as_str()?.parse().map_err(|error| unreadable(index, error))
}

fn optional<T: FromStr<Err: Error + Send + Sync + 'static>>(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<T>> {
    row.get_ref(index)?.as_str_or_null()?.map(|text| text.parse().map_err(|error| unreadable(index, error))).transpose()
}
