//! The SQL of the context tables, one function per statement.

use crate::store::CONTEXT_BYTES;
use crate::{SessionId, Timestamp};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Result, params};
use std::sync::Arc;

/// Maximum number of quarantined records.
const QUARANTINED_MAX: i64 = 1000;
const QUARANTINED_MS_MAX: i64 = 7 * 24 * 60 * 60 * 1000;

/// A column may hold values of any type if another program wrote them. This reads any value as bytes, so that it fails to parse and is
/// quarantined.
const RECORD: &str = "CAST(record AS BLOB)";
/// Reads a malformed time as the current time, so that the row is found.
const USED_AT: &str = "iif(typeof(used_at) = 'integer', used_at, CAST(unixepoch() * 1000 AS INTEGER))";

/// Passes a session's row to `read`. The record is borrowed from SQLite, so that a cached one is not copied.
pub fn select<T>(db: &Connection, session: &SessionId, read: impl FnOnce(Timestamp, &[u8]) -> T) -> Result<Option<T>> {
    let mut statement = db.prepare_cached("SELECT used_at, record FROM context_records WHERE session_id = ?1")?;
    let mut rows = statement.query([session.as_bytes()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    match (row.get_ref(0)?, row.get_ref(1)?) {
        (ValueRef::Integer(used_at), ValueRef::Blob(record)) => Ok(Some(read(Timestamp::from_ms(used_at), record))),
        _ => Ok(select_any(db, session)?.map(|(used_at, record)| read(used_at, &record))),
    }
}

/// Reads a row with unexpected types, written by another program.
fn select_any(db: &Connection, session: &SessionId) -> Result<Option<(Timestamp, Vec<u8>)>> {
    let mut statement = db.prepare_cached(&format!("SELECT {USED_AT}, {RECORD} FROM context_records WHERE session_id = ?1"))?;
    let row = |row: &rusqlite::Row<'_>| Ok((Timestamp::from_ms(row.get(0)?), row.get(1)?));
    statement.query_row([session.as_bytes()], row).optional()
}

/// An owner that is not given stays as it is.
pub fn update(db: &Connection, session: &SessionId, owner: &str, expected: &[u8], new: &[u8], now: Timestamp) -> Result<bool> {
    let mut statement = db.prepare_cached(
        "UPDATE context_records SET used_at = ?4, record = ?3, owner = iif(?5 = '', owner, ?5)
         WHERE session_id = ?1 AND CAST(record AS BLOB) = ?2",
    )?;
    Ok(statement.execute(params![session.as_bytes(), expected, new, now.ms(), owner])? == 1)
}

pub fn insert(db: &Connection, session: &SessionId, owner: &str, new: &[u8], now: Timestamp) -> Result<bool> {
    let mut statement = db.prepare_cached(
        "INSERT INTO context_records (session_id, used_at, record, owner) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
    )?;
    Ok(statement.execute(params![session.as_bytes(), now.ms(), new, owner])? == 1)
}

/// Inserts or replaces. An owner that is not given stays as it is.
pub fn put(db: &Connection, session: &SessionId, owner: &str, new: &[u8], used_at: Timestamp) -> Result<()> {
    let mut statement = db.prepare_cached(
        "INSERT INTO context_records (session_id, used_at, record, owner) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (session_id) DO UPDATE SET used_at = excluded.used_at, record = excluded.record,
         owner = iif(excluded.owner = '', owner, excluded.owner)",
    )?;
    statement.execute(params![session.as_bytes(), used_at.ms(), new, owner]).map(drop)
}

pub fn owner_bytes(db: &Connection, owner: &str) -> Result<u64> {
    let bytes = db.prepare_cached("SELECT bytes FROM context_owners WHERE owner = ?1")?.query_row([owner], |row| row.get(0)).optional()?;
    Ok(bytes.map_or(0, |bytes: i64| bytes.max(0) as u64))
}

/// What a context counts for this owner; none if there is none, or it counts for another owner.
pub fn counted_bytes(db: &Connection, session: &SessionId, owner: &str) -> Result<Option<u64>> {
    let bytes = db
        .prepare_cached("SELECT octet_length(record) FROM context_records WHERE session_id = ?1 AND owner = ?2")?
        .query_row(params![session.as_bytes(), owner], |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(bytes.map(|bytes| bytes.max(0) as u64 + CONTEXT_BYTES))
}

pub fn touch(db: &Connection, session: &SessionId, now: Timestamp) -> Result<()> {
    let mut statement = db.prepare_cached("UPDATE context_records SET used_at = ?2 WHERE session_id = ?1 AND used_at < ?2")?;
    statement.execute(params![session.as_bytes(), now.ms()]).map(drop)
}

pub fn remove(db: &Connection, session: &SessionId) -> Result<bool> {
    Ok(db.prepare_cached("DELETE FROM context_records WHERE session_id = ?1")?.execute([session.as_bytes()])? == 1)
}

pub fn remove_dead(db: &Connection, session: &SessionId, dead_before: i64) -> Result<u64> {
    let mut statement = db.prepare_cached("DELETE FROM context_records WHERE session_id = ?1 AND used_at <= ?2")?;
    Ok(statement.execute(params![session.as_bytes(), dead_before])? as u64)
}

pub fn quarantine(db: &Connection, session: &SessionId, found: &[u8], why: &str, now: Timestamp) -> Result<bool> {
    let moved = db
        .prepare_cached(
            "INSERT INTO context_quarantine (session_id, at, why, record)
             SELECT session_id, ?3, ?4, record FROM context_records WHERE session_id = ?1 AND CAST(record AS BLOB) = ?2",
        )?
        .execute(params![session.as_bytes(), found, now.ms(), why])?;
    if moved > 0 {
        remove(db, session)?;
    }
    Ok(moved > 0)
}

/// Returns how many had expired and how many were evicted.
pub fn sweep(db: &Connection, dead_before: i64, sessions_max: Option<usize>, now: Timestamp) -> Result<(u64, u64)> {
    let idle = db.prepare_cached("DELETE FROM context_records WHERE used_at <= ?1")?.execute([dead_before])?;
    let lru = match sessions_max {
        None => 0,
        Some(max) => db
            .prepare_cached(
                "DELETE FROM context_records WHERE rowid IN
                 (SELECT rowid FROM context_records ORDER BY used_at DESC LIMIT -1 OFFSET ?1)",
            )?
            .execute([max as i64])?,
    };
    db.prepare_cached("DELETE FROM context_quarantine WHERE at <= ?1 OR id <= (SELECT max(id) FROM context_quarantine) - ?2")?
        .execute([now.ms() - QUARANTINED_MS_MAX, QUARANTINED_MAX])?;
    Ok((idle as u64, lru as u64))
}

pub fn count(db: &Connection, dead_before: i64) -> Result<u64> {
    let counted: i64 =
        db.prepare_cached("SELECT count(*) FROM context_records WHERE used_at > ?1")?.query_row([dead_before], |row| row.get(0))?;
    Ok(counted as u64)
}

type Row = (SessionId, Timestamp, Vec<u8>, Arc<str>);

pub fn page(db: &Connection, after: Option<SessionId>, limit: usize) -> Result<Vec<Row>> {
    let after: &[u8] = after.as_ref().map_or(&[], |session| session.as_bytes());
    let mut statement = db.prepare_cached(&format!(
        "SELECT session_id, {USED_AT}, {RECORD}, CAST(owner AS TEXT) FROM context_records
             WHERE session_id > ?1 AND typeof(session_id) = 'blob' AND length(session_id) = 32 ORDER BY session_id LIMIT ?2"
    ))?;
    let rows = statement.query_map(params![after, limit as i64], |row| {
        Ok((SessionId::from_bytes(row.get(0)?), Timestamp::from_ms(row.get(1)?), row.get(2)?, row.get(3)?))
    })?;
    rows.collect()
}

pub fn has_tables(db: &Connection) -> Result<bool> {
    db.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'context_state'", [], |row| row.get::<_, i64>(0)).map(|count| count > 0)
}

pub fn state(db: &Connection, name: &str) -> Result<Option<i64>> {
    db.prepare_cached("SELECT value FROM context_state WHERE name = ?1")?.query_row([name], |row| row.get(0)).optional()
}

pub fn set_state(db: &Connection, name: &str, value: i64) -> Result<()> {
    db.prepare_cached("INSERT OR REPLACE INTO context_state (name, value) VALUES (?1, ?2)")?.execute(params![name, value]).map(drop)
}
