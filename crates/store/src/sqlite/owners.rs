//! Owners in SQLite.

use super::columns::principal;
use super::{Durability, Sqlite};
use crate::records::{OwnerRecords, RecordsError, Totals, Usage};
use async_trait::async_trait;
use heapstead_types::Principal;
use rusqlite::{Connection, OptionalExtension, params};
use std::sync::atomic::Ordering::Relaxed;

/// What a row counts for besides its long columns; the triggers in `migrations/` use the same number.
pub const ROW_BYTES: i64 = 512;
/// A transaction that deletes rows ends after this many bytes, so that other writes wait for milliseconds.
pub const BATCH_BYTES: i64 = 16 << 20;

/// Counts rows that no trigger counts: executions and log entries.
pub fn add_stored(db: &Connection, principal: &str, bytes: i64) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO owners (principal, stored_bytes) VALUES (?, ?)
         ON CONFLICT (principal) DO UPDATE SET stored_bytes = stored_bytes + excluded.stored_bytes",
    )?
    .execute(params![principal, bytes])
    .map(drop)
}

pub fn usage(db: &Connection, principal: &str) -> rusqlite::Result<Usage> {
    let counted = db
        .prepare_cached("SELECT heap_bytes + reserved_bytes, stored_bytes FROM owners WHERE principal = ?")?
        .query_row([principal], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
        .optional()?;
    let (heap_bytes, other_bytes) = counted.unwrap_or_default();
    Ok(Usage { heap_bytes: heap_bytes.max(0) as u64, other_bytes: other_bytes.max(0) as u64, elsewhere_bytes: 0 })
}

/// Whether an owner may store this many bytes more, of whatever kind.
pub fn has_storage_for(db: &Connection, principal: &str, more_bytes: u64, bytes_max: u64) -> rusqlite::Result<bool> {
    Ok(bytes_max == u64::MAX || usage(db, principal)?.bytes().saturating_add(more_bytes) <= bytes_max)
}

impl Sqlite {
    /// What an owner may have stored in this database; the maximum if there is no limit.
    pub async fn stored_bytes_max_of(&self, principal: &Principal) -> u64 {
        match self.stored_bytes_max.load(Relaxed) {
            u64::MAX => u64::MAX,
            bytes_max => bytes_max.saturating_sub(self.elsewhere_bytes(principal).await),
        }
    }

    async fn elsewhere_bytes(&self, principal: &Principal) -> u64 {
        match self.elsewhere.get() {
            Some(bytes_of) => bytes_of(principal.clone()).await,
            None => 0,
        }
    }

    /// Writes, unless the owner has as much stored as allowed.
    pub async fn write_within_quota<T: Send + 'static>(
        &self,
        durability: Durability,
        principal: Principal,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, RecordsError> {
        let bytes_max = self.stored_bytes_max.load(Relaxed);
        let elsewhere_bytes = if bytes_max < u64::MAX { self.elsewhere_bytes(&principal).await } else { 0 };
        let written = self.write(durability, move |db| {
            if bytes_max < u64::MAX {
                let used_bytes = usage(db, principal.as_str())?.bytes().saturating_add(elsewhere_bytes);
                if used_bytes >= bytes_max {
                    return Ok(Err(used_bytes));
                }
            }
            work(db).map(Ok)
        });
        written.await?.map_err(|used_bytes| RecordsError::OverQuota { used_bytes, bytes_max })
    }
}

#[async_trait]
impl OwnerRecords for Sqlite {
    async fn usage(&self, principal: &Principal) -> Result<Usage, RecordsError> {
        let (owner, elsewhere_bytes) = (principal.clone(), self.elsewhere_bytes(principal).await);
        let used = self.read(move |db| usage(db, owner.as_str())).await?;
        Ok(Usage { elsewhere_bytes, ..used })
    }

    async fn delete_unused_owners(&self) -> Result<(), RecordsError> {
        self.write(Durability::Process, |db| {
            // The number of the next ref outlives the sessions that it is for.
            db.execute(
                "DELETE FROM owners WHERE sessions = 0 AND heap_bytes = 0 AND stored_bytes = 0 AND reserved_bytes = 0 AND next_ref = 0",
                [],
            )
            .map(drop)
        })
        .await
    }

    async fn totals(&self) -> Result<Totals, RecordsError> {
        self.read(|db| {
            db.prepare_cached("SELECT coalesce(sum(sessions), 0), coalesce(sum(heap_bytes), 0) FROM owners")?.query_row([], |row| {
                Ok(Totals { sessions: row.get::<_, i64>(0)?.max(0) as u64, heap_bytes: row.get::<_, i64>(1)?.max(0) as u64 })
            })
        })
        .await
    }

    async fn owners(&self) -> Result<Vec<Principal>, RecordsError> {
        self.read(|db| {
            // One index lookup per owner, however many rows each has.
            db.prepare_cached(
                "WITH RECURSIVE
                 runs (who) AS (SELECT min(principal) FROM executions UNION ALL
                   SELECT (SELECT min(principal) FROM executions WHERE principal > who) FROM runs WHERE who IS NOT NULL),
                 kept (who) AS (SELECT min(principal) FROM heaps UNION ALL
                   SELECT (SELECT min(principal) FROM heaps WHERE principal > who) FROM kept WHERE who IS NOT NULL),
                 tagged (who) AS (SELECT min(principal) FROM tags UNION ALL
                   SELECT (SELECT min(principal) FROM tags WHERE principal > who) FROM tagged WHERE who IS NOT NULL),
                 told (who) AS (SELECT min(principal) FROM sessions UNION ALL
                   SELECT (SELECT min(principal) FROM sessions WHERE principal > who) FROM told WHERE who IS NOT NULL)
                 SELECT who FROM runs WHERE who IS NOT NULL UNION SELECT who FROM kept WHERE who IS NOT NULL
                 UNION SELECT who FROM tagged WHERE who IS NOT NULL UNION SELECT who FROM told WHERE who IS NOT NULL ORDER BY who",
            )?
            .query_map([], |row| principal(row, 0))?
            .collect()
        })
        .await
    }
}

/// What counts towards the byte quota of an owner: the heaps that it has, and those that are being stored.
pub fn used_bytes(db: &Connection, principal: &str) -> rusqlite::Result<u64> {
    let bytes = db
        .prepare_cached("SELECT heap_bytes + reserved_bytes FROM owners WHERE principal = ?")?
        .query_row([principal], |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(bytes.unwrap_or(0).max(0) as u64)
}

/// Whether an owner may use this many bytes more.
pub fn has_room_for(db: &Connection, principal: &str, more_bytes: u64, bytes_max: Option<u64>) -> rusqlite::Result<bool> {
    match bytes_max {
        None => Ok(true),
        Some(max) => Ok(used_bytes(db, principal)?.saturating_add(more_bytes) <= max),
    }
}
