//! Which heaps are in use, by whom, and since when: what collecting old heaps goes by.

use super::{Durability, Metadata, MetadataError};
use heapstead_types::{HeapKey, Principal};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

impl Metadata {
    /// Whether a tag, a running execution, a session's head, or a use or a log entry since then refers to this heap.
    pub async fn uses_heap(&self, key: HeapKey, since: Timestamp) -> Result<bool, MetadataError> {
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

    /// As `uses_heap`, as far as this owner goes: what others do with a heap that they have too is not the owner's to know.
    pub async fn owner_uses_heap(&self, principal: &Principal, key: HeapKey, since: Timestamp) -> Result<bool, MetadataError> {
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

    /// Whether anybody but this owner has it.
    pub async fn others_have_heap(&self, principal: &Principal, key: HeapKey) -> Result<bool, MetadataError> {
        let principal = principal.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT 1 FROM heaps WHERE key = ? AND principal <> ?")?.exists(params![key.to_string(), principal.as_str()])
        })
        .await
    }

    /// Whether any run on this database ever made it.
    pub async fn knows_heap(&self, key: HeapKey) -> Result<bool, MetadataError> {
        self.read(move |db| db.prepare_cached("SELECT 1 FROM heaps WHERE key = ?")?.exists([key.to_string()])).await
    }

    /// Of these heaps, those that this owner has. Where `unowned` count too, also those that nobody on this database ever made.
    pub async fn owned_heaps(&self, principal: &Principal, keys: Vec<HeapKey>, unowned: bool) -> Result<Vec<HeapKey>, MetadataError> {
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

    /// Gives a heap to an owner, who may have it already.
    pub async fn own_heap(&self, principal: &Principal, key: HeapKey, bytes: u64, at: Timestamp) -> Result<(), MetadataError> {
        let principal = principal.clone();
        self.write(Durability::Power, move |db| note(db, principal.as_str(), &key, bytes, at)).await
    }

    /// Bytes of all heaps of an owner.
    pub async fn heap_bytes(&self, principal: &Principal) -> Result<u64, MetadataError> {
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

    /// Takes a heap from one owner; others may have it too.
    pub async fn disown_heap(&self, principal: &Principal, key: HeapKey) -> Result<(), MetadataError> {
        let principal = principal.clone();
        self.write(Durability::Process, move |db| {
            db.prepare_cached("DELETE FROM heaps WHERE principal = ? AND key = ?")?
                .execute(params![principal.as_str(), key.to_string()])
                .map(drop)
        })
        .await
    }

    /// Forgets that a heap was ever used.
    pub async fn forget_heap(&self, key: HeapKey) -> Result<(), MetadataError> {
        self.write(Durability::Process, move |db| {
            db.prepare_cached("DELETE FROM heaps WHERE key = ?")?.execute([key.to_string()]).map(drop)
        })
        .await
    }
}

pub fn note(db: &Connection, principal: &str, key: &HeapKey, bytes: u64, at: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO heaps (principal, key, bytes, last_used_at) VALUES (?, ?, ?, ?)
         ON CONFLICT (principal, key) DO UPDATE SET last_used_at = excluded.last_used_at",
    )?
    .execute(params![principal, key.to_string(), bytes as i64, at.as_microsecond()])
    .map(drop)
}

/// A heap that is known is used again.
pub fn note_again(db: &Connection, principal: &str, key: &HeapKey, at: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE heaps SET last_used_at = ? WHERE principal = ? AND key = ?")?
        .execute(params![at.as_microsecond(), principal, key.to_string()])
        .map(drop)
}
