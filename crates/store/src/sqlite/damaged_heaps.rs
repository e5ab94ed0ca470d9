//! Records of damaged heaps in SQLite.

use super::columns::heap_key;
use super::{Durability, Sqlite};
use crate::records::{DamagedHeapRecords, RecordsError};
use async_trait::async_trait;
use heapstead_types::HeapKey;
use jiff::Timestamp;
use rusqlite::params;

#[async_trait]
impl DamagedHeapRecords for Sqlite {
    async fn damaged_heaps(&self, max: usize) -> Result<Vec<HeapKey>, RecordsError> {
        self.read(move |db| {
            let mut found = db.prepare_cached("SELECT key FROM damaged_heaps ORDER BY found_at LIMIT ?")?;
            let keys = found.query_map([max as i64], |row| heap_key(row, 0))?;
            keys.filter_map(Result::transpose).collect()
        })
        .await
    }

    async fn add_damaged_heap(&self, key: HeapKey, at: Timestamp) -> Result<(), RecordsError> {
        self.write(Durability::Process, move |db| {
            db.prepare_cached("INSERT OR IGNORE INTO damaged_heaps (key, found_at) VALUES (?, ?)")?
                .execute(params![key.to_string(), at.as_microsecond()])
                .map(drop)
        })
        .await
    }

    async fn remove_damaged_heaps(&self, keys: Vec<HeapKey>) -> Result<(), RecordsError> {
        self.write(Durability::Process, move |db| {
            let mut remove = db.prepare_cached("DELETE FROM damaged_heaps WHERE key = ?")?;
            keys.iter().try_for_each(|key| remove.execute([key.to_string()]).map(drop))
        })
        .await
    }
}
