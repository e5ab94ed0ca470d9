//! Ends and deletes sessions in SQLite. A session disappears in one short transaction; its log, which may be gigabytes, is deleted in batches
//! after that.

use super::columns::{optional_uuid, principal, session_id};
use super::owners::BATCH_BYTES;
use super::session_log;
use crate::records::UnusedSession;
use heapstead_types::{Principal, SessionId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

/// Later than every use: any session is unused since then.
fn microseconds(unused_since: Option<Timestamp>) -> i64 {
    unused_since.map_or(i64::MAX, Timestamp::as_microsecond)
}

pub fn end_named(
    db: &Connection,
    principal: &Principal,
    id: SessionId,
    unused_since: Option<Timestamp>,
    at: Timestamp,
) -> rusqlite::Result<bool> {
    db.prepare_cached(
        "UPDATE sessions INDEXED BY sessions_of_owner SET ended_at = ?1, name = sid
         WHERE principal = ?2 AND sid = ?3 AND opened = 0 AND ended_at IS NULL AND used_at < ?4",
    )?
    .execute(params![at.as_microsecond(), principal.as_str(), id.to_string(), microseconds(unused_since)])
    .map(|changed| changed > 0)
}

pub fn forget_logical(
    db: &Connection,
    principal: &Principal,
    id: Uuid,
    unused_since: Option<Timestamp>,
    at: Timestamp,
) -> rusqlite::Result<bool> {
    let (id, since) = (id.to_string(), microseconds(unused_since));
    let found: Option<(i64, bool)> = db
        .prepare_cached(&format!(
            "SELECT sessions.id, EXISTS (SELECT 1 FROM execute_sessions WHERE execute_sessions.id = execute AND gone IS NULL)
             FROM logical_sessions INDEXED BY logical_sessions_of_owner JOIN sessions ON sessions.id = logical_sessions.session
             WHERE logical_sessions.principal = ?2 AND logical_sessions.id = ?3 AND (?1 = {} OR {UNUSED_LOGICAL})",
            i64::MAX
        ))?
        .query_row(params![since, principal.as_str(), id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((session, has_state)) = found else { return Ok(false) };
    if !has_state {
        // It was not counted any more. Ending it counts it down.
        db.prepare_cached("UPDATE owners SET sessions = sessions + 1 WHERE principal = ?")?.execute([principal.as_str()])?;
    }
    db.prepare_cached("UPDATE sessions SET ended_at = ?, head = NULL WHERE id = ?")?.execute(params![at.as_microsecond(), session])?;
    db.prepare_cached("DELETE FROM session_refs WHERE principal = ? AND logical = ?")?.execute(params![principal.as_str(), id])?;
    db.prepare_cached("DELETE FROM execute_sessions WHERE logical = ?")?.execute([&id])?;
    db.prepare_cached("DELETE FROM logical_sessions WHERE id = ?")?.execute([&id])?;
    Ok(true)
}

/// A logical session in which nothing ran, and whose state was not used, since a time.
const UNUSED_LOGICAL: &str = "(sessions.used_at < ?1
    AND NOT EXISTS (SELECT 1 FROM execute_sessions WHERE execute_sessions.logical = logical_sessions.id AND execute_sessions.expires_at >= ?1)
    AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session = sessions.sid))";

pub fn unused(db: &Connection, since: Timestamp) -> rusqlite::Result<Vec<UnusedSession>> {
    db.prepare_cached(&format!(
        "SELECT * FROM (SELECT principal, sid, NULL FROM sessions WHERE opened = 0 AND ended_at IS NULL AND used_at < ?1 LIMIT 100)
         UNION ALL SELECT * FROM (SELECT sessions.principal, sid, logical_sessions.id FROM sessions
           JOIN logical_sessions ON logical_sessions.session = sessions.id
           WHERE opened = 1 AND sessions.expires_at IS NULL AND ended_at IS NULL AND {UNUSED_LOGICAL} LIMIT 100)"
    ))?
    .query_map([since.as_microsecond()], |row| {
        Ok(UnusedSession { principal: principal(row, 0)?, id: session_id(row, 1)?, logical: optional_uuid(row, 2)? })
    })?
    .collect()
}

pub fn delete_ended_log(db: &Connection, id: SessionId) -> rusqlite::Result<bool> {
    let found: Option<(i64, String)> = db
        .prepare_cached("SELECT id, principal FROM sessions WHERE sid = ? AND ended_at IS NOT NULL")?
        .query_row([id.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((session, principal)) = found else { return Ok(false) };
    if !session_log::delete(db, session, &principal, &mut BATCH_BYTES.clone())? {
        return Ok(true);
    }
    // A named session that was ended has no name any more. An opened one is recognised by its id.
    db.prepare_cached("DELETE FROM sessions WHERE id = ? AND opened = 0")?.execute([session])?;
    Ok(false)
}

pub fn delete_sessions(db: &Connection, before: Timestamp) -> rusqlite::Result<bool> {
    let ended: Vec<(i64, String)> = db
        .prepare_cached(
            "SELECT id, principal FROM sessions WHERE ended_at < ? AND NOT EXISTS (SELECT 1 FROM logical_sessions WHERE session = sessions.id)
             LIMIT 500",
        )?
        .query_map([before.as_microsecond()], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut bytes_left = BATCH_BYTES;
    for (session, principal) in &ended {
        if !session_log::delete(db, *session, principal, &mut bytes_left)? {
            return Ok(true);
        }
        db.prepare_cached("DELETE FROM sessions WHERE id = ?")?.execute([session])?;
    }
    Ok(!ended.is_empty())
}

pub fn delete_execute_sessions(db: &Connection, before: Timestamp) -> rusqlite::Result<bool> {
    db.prepare_cached(
        "DELETE FROM execute_sessions WHERE id IN (SELECT id FROM execute_sessions WHERE gone IS NOT NULL AND expires_at < ?
         AND NOT EXISTS (SELECT 1 FROM logical_sessions WHERE logical_sessions.id = logical AND execute = execute_sessions.id) LIMIT 500)",
    )?
    .execute([before.as_microsecond()])
    .map(|deleted| deleted > 0)
}
