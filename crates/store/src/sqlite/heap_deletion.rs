//! Deletes a heap on request of its owner, in SQLite.

use super::columns::{is_heap, session_id};
use super::heap_reservations::insert_removal;
use super::heaps::is_named;
use crate::records::{DeletedHeap, HeapUse, Reservation, ReservationId};
use heapstead_types::{ExecutionId, HeapKey};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

pub fn delete(db: &Connection, principal: &str, key: &HeapKey) -> rusqlite::Result<DeletedHeap> {
    let found: Option<(i64, Option<bool>)> = db
        .prepare_cached("SELECT bytes, ours FROM heaps WHERE principal = ? AND key = ?")?
        .query_row(params![principal, key.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((bytes, is_ours)) = found else { return Ok(DeletedHeap::Unknown) };
    if let Some(used_by) = use_of(db, principal, &key.to_string())? {
        return Ok(DeletedHeap::InUse(used_by));
    }
    db.prepare_cached("DELETE FROM tags WHERE principal = ? AND heap = ?")?.execute(params![principal, key.to_string()])?;
    db.prepare_cached("DELETE FROM heaps WHERE principal = ? AND key = ?")?.execute(params![principal, key.to_string()])?;
    bequeath(db, key, is_ours)?;
    if is_named(db, key)? {
        return Ok(DeletedHeap::Disowned);
    }
    Ok(match is_ours {
        // A file that was there before may be another database's: it goes when it is past its retention.
        Some(is_ours) => DeletedHeap::Removing(insert_removal(db, key, !is_ours, None)?),
        None => DeletedHeap::Undecided(reserve_undecided(db, principal, key, bytes)?),
    })
}

/// The first thing of its owner that refers to a heap.
fn use_of(db: &Connection, principal: &str, key: &str) -> rusqlite::Result<Option<HeapUse>> {
    let session = db
        .prepare_cached(concat!(
            "SELECT sid FROM sessions WHERE head = ?2 AND ",
            is_heap!("head"),
            " AND ended_at IS NULL AND principal = ?1
             UNION ALL SELECT sid FROM sessions WHERE checkpoint = ?2 AND ended_at IS NULL AND principal = ?1
             UNION ALL SELECT sid FROM execute_sessions JOIN logical_sessions ON logical_sessions.id = execute_sessions.logical
               JOIN sessions ON sessions.id = logical_sessions.session
               WHERE execute_sessions.head = ?2 AND gone IS NULL AND logical_sessions.principal = ?1 LIMIT 1",
        ))?
        .query_row([principal, key], |row| session_id(row, 0))
        .optional()?;
    if let Some(session) = session {
        return Ok(Some(HeapUse::Head(session)));
    }
    let execution = db
        .prepare_cached("SELECT id FROM executions WHERE status = 'running' AND principal = ? AND input_heap = ? LIMIT 1")?
        .query_row([principal, key], |row| row.get::<_, String>(0))
        .optional()?;
    if let Some(execution) = execution.and_then(|id| id.parse::<ExecutionId>().ok()) {
        return Ok(Some(HeapUse::Execution(execution)));
    }
    // A reservation without a server is not being stored.
    let is_stored = db
        .prepare_cached("SELECT 1 FROM heap_reservations WHERE principal = ? AND key = ? AND process IS NOT NULL")?
        .exists([principal, key])?;
    Ok(is_stored.then_some(HeapUse::Storing))
}

/// The owners that still have a heap are responsible for its file as the one that had it until now.
pub fn bequeath(db: &Connection, key: &HeapKey, is_ours: Option<bool>) -> rusqlite::Result<()> {
    if is_ours == Some(false) {
        return Ok(());
    }
    let heirs = "UPDATE heaps SET ours = ? WHERE key = ? AND ours IS NOT 1";
    db.prepare_cached(heirs)?.execute(params![is_ours, key.to_string()]).map(drop)
}

/// Counts for the owner for as long as the file may stay. It has no server, and is older than any file, so it is decided like one whose
/// server died.
fn reserve_undecided(db: &Connection, principal: &str, key: &HeapKey, bytes: i64) -> rusqlite::Result<Reservation> {
    let (id, created_at) = (ReservationId::new(), Timestamp::UNIX_EPOCH);
    db.prepare_cached("INSERT INTO heap_reservations (id, principal, key, bytes, created_at) VALUES (?, ?, ?, ?, ?)")?.execute(params![
        id.as_str(),
        principal,
        key.to_string(),
        bytes,
        created_at.as_microsecond()
    ])?;
    Ok(Reservation { id, key: Some(*key), server: None, created_at })
}
