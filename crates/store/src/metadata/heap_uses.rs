//! Which heaps are in use, by whom, and since when: what collecting old heaps goes by.

use super::{Durability, Metadata, MetadataError};
use heapstead_types::HeapKey;
use jiff::Timestamp;
use rusqlite::{Connection, params};

/// Why a heap is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapUse {
    Tagged,
    Running,
    /// A run made it or began from it, or a session's log names it, not long ago.
    Recent,
}

impl Metadata {
    /// Why this heap has to be kept, given that uses before `since` no longer count. None when nothing refers to it.
    pub async fn heap_use(&self, key: HeapKey, since: Timestamp) -> Result<Option<HeapUse>, MetadataError> {
        self.read(move |db| {
            let (key, since) = (key.to_string(), since.as_microsecond());
            let holds = |sql: &str, since: Option<i64>| -> rusqlite::Result<bool> {
                let mut statement = db.prepare_cached(sql)?;
                match since {
                    Some(since) => statement.exists(params![key, since]),
                    None => statement.exists(params![key]),
                }
            };
            Ok(if holds("SELECT 1 FROM tags WHERE heap = ?", None)? {
                Some(HeapUse::Tagged)
            } else if holds("SELECT 1 FROM executions WHERE status = 'running' AND input_heap = ?", None)? {
                Some(HeapUse::Running)
            } else if holds("SELECT 1 FROM heaps WHERE key = ? AND last_used_at >= ?", Some(since))?
                || holds("SELECT 1 FROM log WHERE output_heap = ? AND timestamp >= ?", Some(since))?
                || holds("SELECT 1 FROM log WHERE input_heap = ? AND timestamp >= ?", Some(since))?
            {
                Some(HeapUse::Recent)
            } else {
                None
            })
        })
        .await
    }

    /// Whether any run on this database ever made it.
    pub async fn knows_heap(&self, key: HeapKey) -> Result<bool, MetadataError> {
        self.read(move |db| db.prepare_cached("SELECT 1 FROM heaps WHERE key = ?")?.exists([key.to_string()])).await
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
