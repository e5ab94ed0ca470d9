//! Heap records in SQLite.

use super::columns::{heap_key, is_heap, timestamp, unreadable};
use super::{Durability, Sqlite, heap_deletion, heap_reservations, owners};
use crate::records::{
    CollectedHeap, DeletedHeap, FoundHeap, HeapRange, HeapRecords, NewHeap, NewHeapEngine, OwnedHeap, RecordedEngine, RecordsError,
    UnusedHeap,
};
use async_trait::async_trait;
use heapstead_types::{EngineId, HeapKey, Principal, ServerId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

/// That nothing of its owner refers to a heap (a row `h` of `heaps`) since `:since`.
const UNUSED: &str = concat!(
    "h.last_used_at < :since
    AND NOT EXISTS (SELECT 1 FROM tags WHERE tags.principal = h.principal AND tags.heap = h.key)
    AND NOT EXISTS (SELECT 1 FROM heap_reservations WHERE heap_reservations.key = h.key AND heap_reservations.principal = h.principal)
    AND NOT EXISTS (SELECT 1 FROM executions WHERE status = 'running' AND input_heap = h.key AND executions.principal = h.principal)
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE head = h.key AND ",
    is_heap!("head"),
    " AND ended_at IS NULL AND sessions.principal = h.principal)
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE checkpoint = h.key AND ended_at IS NULL AND sessions.principal = h.principal)
    AND NOT EXISTS (SELECT 1 FROM execute_sessions JOIN logical_sessions ON logical_sessions.id = execute_sessions.logical
        WHERE execute_sessions.head = h.key AND gone IS NULL AND logical_sessions.principal = h.principal)
    AND NOT EXISTS (SELECT 1 FROM log JOIN sessions ON sessions.id = log.session
        WHERE output_heap = h.key AND ",
    is_heap!("output_heap"),
    " AND timestamp >= :since AND sessions.principal = h.principal)
    AND NOT EXISTS (SELECT 1 FROM log JOIN sessions ON sessions.id = log.session
        WHERE input_heap = h.key AND ",
    is_heap!("input_heap"),
    " AND timestamp >= :since AND sessions.principal = h.principal)"
);
const COLUMNS: &str = "key, bytes, stored_at, engine";

#[async_trait]
impl HeapRecords for Sqlite {
    async fn uses_heap(&self, key: HeapKey, since: Timestamp) -> Result<bool, RecordsError> {
        self.read(move |db| {
            db.prepare_cached(concat!(
                "SELECT 1 FROM tags WHERE heap = ?1
                 UNION ALL SELECT 1 FROM executions WHERE status = 'running' AND input_heap = ?1
                 UNION ALL SELECT 1 FROM heaps WHERE key = ?1 AND last_used_at >= ?2
                 UNION ALL SELECT 1 FROM log WHERE output_heap = ?1 AND ",
                is_heap!("output_heap"),
                " AND timestamp >= ?2
                 UNION ALL SELECT 1 FROM log WHERE input_heap = ?1 AND ",
                is_heap!("input_heap"),
                " AND timestamp >= ?2
                 UNION ALL SELECT 1 FROM sessions WHERE head = ?1 AND ",
                is_heap!("head"),
                " AND ended_at IS NULL
                 UNION ALL SELECT 1 FROM sessions WHERE checkpoint = ?1 AND ended_at IS NULL
                 UNION ALL SELECT 1 FROM execute_sessions WHERE head = ?1 AND gone IS NULL",
            ))?
            .exists(params![key.to_string(), since.as_microsecond()])
        })
        .await
    }

    async fn find_heap(&self, principal: &Principal, key: HeapKey) -> Result<FoundHeap, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| {
            let sql = format!("SELECT {COLUMNS} FROM heaps WHERE principal = ? AND key = ?");
            let own = db.prepare_cached(&sql)?.query_row(params![principal.as_str(), key.to_string()], read_owned_heap).optional()?;
            // The same lookups whether others have it or nobody.
            let is_named = is_named(db, &key)?;
            Ok(match own {
                Some(own) => FoundHeap::Owned(own),
                None if is_named => FoundHeap::OfOthers,
                None => FoundHeap::Unowned,
            })
        })
        .await
    }

    async fn unowned_heaps(&self, keys: Vec<HeapKey>) -> Result<Vec<HeapKey>, RecordsError> {
        self.read(move |db| {
            let mut unowned = Vec::new();
            for key in keys {
                if !is_named(db, &key)? {
                    unowned.push(key);
                }
            }
            Ok(unowned)
        })
        .await
    }

    async fn heaps(&self, principal: &Principal, range: HeapRange) -> Result<(Vec<OwnedHeap>, bool), RecordsError> {
        let principal = principal.clone();
        self.read(move |db| {
            let sql = format!("SELECT {COLUMNS} FROM heaps WHERE principal = ? AND key > ? ORDER BY key LIMIT ?");
            let mut statement = db.prepare_cached(&sql)?;
            // One more than the limit shows whether there are more.
            let limit = range.limit.map_or(-1, |limit| i64::from(limit) + 1);
            let rows = statement.query_map(params![principal.as_str(), after(range), limit], read_owned_heap)?;
            let mut found = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            let has_more = range.limit.is_some_and(|limit| found.len() > limit as usize);
            if has_more {
                found.pop();
            }
            Ok((found, has_more))
        })
        .await
    }

    async fn count_heaps(&self, principal: &Principal) -> Result<u64, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT count(*) FROM heaps WHERE principal = ?")?
                .query_row([principal.as_str()], |row| Ok(row.get::<_, i64>(0)?.max(0) as u64))
        })
        .await
    }

    async fn unused_heaps(&self, principal: &Principal, since: Timestamp, range: HeapRange) -> Result<Vec<UnusedHeap>, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| {
            let sql = format!(
                "SELECT h.key, h.bytes FROM heaps h WHERE h.principal = :principal AND h.key > :after AND {UNUSED} ORDER BY h.key LIMIT :limit"
            );
            let bindings = named_params! {
                ":principal": principal.as_str(), ":after": after(range), ":since": since.as_microsecond(),
                ":limit": range.limit.map_or(-1, i64::from),
            };
            let mut statement = db.prepare_cached(&sql)?;
            let found = statement.query_map(bindings, |row| {
                Ok(UnusedHeap { key: required_key(row, 0)?, bytes: row.get::<_, i64>(1)?.max(0) as u64 })
            })?;
            found.collect()
        })
        .await
    }

    async fn collect_heap(&self, principal: &Principal, key: HeapKey, since: Timestamp) -> Result<CollectedHeap, RecordsError> {
        let (principal, server) = (principal.clone(), self.server().clone());
        self.write(Durability::Process, move |db| collect(db, principal.as_str(), &key, since, &server)).await
    }

    async fn delete_heap(&self, principal: &Principal, key: HeapKey) -> Result<DeletedHeap, RecordsError> {
        let principal = principal.clone();
        self.write(Durability::Power, move |db| heap_deletion::delete(db, principal.as_str(), &key)).await
    }

    async fn own_heap(&self, principal: &Principal, heap: NewHeap, at: Timestamp) -> Result<(), RecordsError> {
        let principal = principal.clone();
        self.write(Durability::Power, move |db| record(db, principal.as_str(), &heap, at)).await
    }

    async fn used_bytes(&self, principal: &Principal) -> Result<u64, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| owners::used_bytes(db, principal.as_str())).await
    }
}

/// Whether a record, a reservation or a removal of any owner names this heap.
pub fn is_named(db: &Connection, key: &HeapKey) -> rusqlite::Result<bool> {
    db.prepare_cached(
        "SELECT 1 FROM heaps WHERE key = ?1 UNION ALL SELECT 1 FROM heap_reservations WHERE key = ?1
         UNION ALL SELECT 1 FROM heap_removals WHERE key = ?1",
    )?
    .exists([key.to_string()])
}

fn collect(db: &Connection, principal: &str, key: &HeapKey, since: Timestamp, server: &ServerId) -> rusqlite::Result<CollectedHeap> {
    let sql = format!("DELETE FROM heaps AS h WHERE h.principal = :principal AND h.key = :key AND {UNUSED} RETURNING ours");
    let bindings = named_params! { ":principal": principal, ":key": key.to_string(), ":since": since.as_microsecond() };
    let Some(is_ours) = db.prepare_cached(&sql)?.query_row(bindings, |row| row.get(0)).optional()? else {
        return Ok(CollectedHeap::Kept);
    };
    heap_deletion::bequeath(db, key, is_ours)?;
    let removal = heap_reservations::begin_removal_if_last(db, key, true, server)?;
    Ok(removal.map_or(CollectedHeap::Disowned, CollectedHeap::Removing))
}

/// Adds a heap to an owner, or updates its last use. It takes the place of its reservation.
pub fn record(db: &Connection, principal: &str, heap: &NewHeap, at: Timestamp) -> rusqlite::Result<()> {
    let is_ours: Option<bool> = match &heap.reservation {
        None => None,
        // An error if it is gone: another server took this one for dead and may have removed the file.
        Some(id) => db
            .prepare_cached("DELETE FROM heap_reservations WHERE id = ?1 RETURNING iif(ours = ?2, 0, ours)")?
            .query_row(params![id.as_str(), heap_reservations::ADOPTED], |row| row.get(0))?,
    };
    let (engine, is_produced) = match &heap.engine {
        NewHeapEngine::Produced(engine) => (Some(engine), true),
        NewHeapEngine::Named(engine) => (engine.as_ref(), false),
    };
    db.prepare_cached(
        "INSERT INTO heaps (principal, key, bytes, last_used_at, stored_at, engine, ours) VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?7)
         ON CONFLICT (principal, key) DO UPDATE SET last_used_at = excluded.last_used_at, stored_at = excluded.stored_at,
         engine = CASE WHEN ?6 THEN excluded.engine ELSE coalesce(engine, excluded.engine) END,
         ours = CASE WHEN excluded.ours = 1 THEN 1 ELSE ours END",
    )?
    .execute(params![
        principal,
        heap.key.to_string(),
        heap.bytes as i64,
        at.as_microsecond(),
        engine.map(ToString::to_string),
        is_produced,
        is_ours,
    ])
    .map(drop)
}

/// Updates the last use of a heap, if the owner has it.
pub fn note_again(db: &Connection, principal: &str, key: &HeapKey, at: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE heaps SET last_used_at = ? WHERE principal = ? AND key = ?")?
        .execute(params![at.as_microsecond(), principal, key.to_string()])
        .map(drop)
}

/// No key is less than or equal to the empty text.
fn after(range: HeapRange) -> String {
    range.after.map(|key| key.to_string()).unwrap_or_default()
}

fn required_key(row: &Row<'_>, index: usize) -> rusqlite::Result<HeapKey> {
    heap_key(row, index)?.ok_or(rusqlite::Error::InvalidQuery)
}

fn read_owned_heap(row: &Row<'_>) -> rusqlite::Result<OwnedHeap> {
    let engine = match row.get::<_, Option<String>>(3)? {
        None => RecordedEngine::Known(None),
        Some(empty) if empty.is_empty() => RecordedEngine::InFile,
        Some(id) => RecordedEngine::Known(Some(id.parse::<EngineId>().map_err(|error| unreadable(3, error))?)),
    };
    Ok(OwnedHeap { key: required_key(row, 0)?, bytes: row.get::<_, i64>(1)?.max(0) as u64, stored_at: timestamp(row, 2)?, engine })
}
