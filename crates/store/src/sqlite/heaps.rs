//! Heap records in SQLite.

use super::{Durability, Sqlite};
use crate::records::{HeapRecords, RecordsError};
use async_trait::async_trait;
use heapstead_types::{HeapKey, Principal};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

#[async_trait]
impl HeapRecords for Sqlite {
    async fn uses_heap(&self, key: HeapKey, since: Timestamp) -> Result<bool, RecordsError> {
        self.read(move |db| {
            db.prepare_cached(
                "SELECT 1 FROM tags WHERE heap = ?1
                 UNION ALL SELECT 1 FROM executions WHERE status = 'running' AND input_heap = ?1
                 UNION ALL SELECT 1 FROM heaps WHERE key = ?1 AND last_used_at >= ?2
                 UNION ALL SELECT 1 FROM log WHERE output_heap = ?1 AND timestamp >= ?2
                 UNION ALL SELECT 1 FROM log WHERE input_heap = ?1 AND timestamp >= ?2
                 UNION ALL SELECT 1 FROM sessions WHERE head = ?1 AND ended_at IS NULL
                 UNION ALL SELECT 1 FROM execute_sessions WHERE head = ?1 AND gone IS NULL",
            )?
            .exists(params![key.to_string(), since.as_microsecond()])
        })
        .await
    }

    async fn owner_uses_heap(&self, principal: &Principal, key: HeapKey, since: Timestamp) -> Result<bool, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| {
            db.prepare_cached(
                "SELECT 1 FROM tags WHERE principal = ?3 AND heap = ?1
                 UNION ALL SELECT 1 FROM executions WHERE status = 'running' AND input_heap = ?1 AND principal = ?3
                 UNION ALL SELECT 1 FROM heaps WHERE principal = ?3 AND key = ?1 AND last_used_at >= ?2
                 UNION ALL SELECT 1 FROM log JOIN sessions ON sessions.id = log.session
                   WHERE output_heap = ?1 AND timestamp >= ?2 AND principal = ?3
                 UNION ALL SELECT 1 FROM log JOIN sessions ON sessions.id = log.session
                   WHERE input_heap = ?1 AND timestamp >= ?2 AND principal = ?3
                 UNION ALL SELECT 1 FROM sessions WHERE head = ?1 AND ended_at IS NULL AND principal = ?3
                 UNION ALL SELECT 1 FROM execute_sessions JOIN logical_sessions ON logical_sessions.id = execute_sessions.logical
                   WHERE head = ?1 AND gone IS NULL AND principal = ?3",
            )?
            .exists(params![key.to_string(), since.as_microsecond(), principal.as_str()])
        })
        .await
    }

    async fn others_have_heap(&self, principal: &Principal, key: HeapKey) -> Result<bool, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT 1 FROM heaps WHERE key = ? AND principal <> ?")?.exists(params![key.to_string(), principal.as_str()])
        })
        .await
    }

    async fn knows_heap(&self, key: HeapKey) -> Result<bool, RecordsError> {
        self.read(move |db| db.prepare_cached("SELECT 1 FROM heaps WHERE key = ?")?.exists([key.to_string()])).await
    }

    async fn owned_heaps(&self, principal: &Principal, keys: Vec<HeapKey>, unowned: bool) -> Result<Vec<HeapKey>, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| {
            let mut own = db.prepare_cached("SELECT 1 FROM heaps WHERE principal = ? AND key = ?")?;
            let mut any = db.prepare_cached("SELECT 1 FROM heaps WHERE key = ?")?;
            let mut owned = Vec::new();
            for key in keys {
                let name = key.to_string();
                if own.exists(params![principal.as_str(), name])? || (unowned && !any.exists([&name])?) {
                    owned.push(key);
                }
            }
            Ok(owned)
        })
        .await
    }

    async fn own_heap(&self, principal: &Principal, key: HeapKey, bytes: u64, at: Timestamp) -> Result<(), RecordsError> {
        let principal = principal.clone();
        self.write(Durability::Power, move |db| note(db, principal.as_str(), &key, bytes, at)).await
    }

    async fn heap_bytes(&self, principal: &Principal) -> Result<u64, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| {
            let bytes = db
                .prepare_cached("SELECT heap_bytes FROM owners WHERE principal = ?")?
                .query_row([principal.as_str()], |row| row.get::<_, i64>(0))
                .optional()?;
            Ok(bytes.unwrap_or(0).max(0) as u64)
        })
        .await
    }

    async fn disown_heap(&self, principal: &Principal, key: HeapKey) -> Result<(), RecordsError> {
        let principal = principal.clone();
        self.write(Durability::Process, move |db| {
            db.prepare_cached("DELETE FROM heaps WHERE principal = ? AND key = ?")?
                .execute(params![principal.as_str(), key.to_string()])
                .map(drop)
        })
        .await
    }

    async fn delete_heap(&self, key: HeapKey) -> Result<(), RecordsError> {
        self.write(Durability::Process, move |db| {
            db.prepare_cached("DELETE FROM heaps WHERE key = ?")?.execute([key.to_string()]).map(drop)
        })
        .await
    }
}

/// Adds a heap to an owner, or updates its last use.
pub fn note(db: &Connection, principal: &str, key: &HeapKey, bytes: u64, at: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO heaps (principal, key, bytes, last_used_at) VALUES (?, ?, ?, ?)
         ON CONFLICT (principal, key) DO UPDATE SET last_used_at = excluded.last_used_at",
    )?
    .execute(params![principal, key.to_string(), bytes as i64, at.as_microsecond()])
    .map(drop)
}

/// Updates the last use of a heap, if the owner has it.
pub fn note_again(db: &Connection, principal: &str, key: &HeapKey, at: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE heaps SET last_used_at = ? WHERE principal = ? AND key = ?")?
        .execute(params![at.as_microsecond(), principal, key.to_string()])
        .map(drop)
}
