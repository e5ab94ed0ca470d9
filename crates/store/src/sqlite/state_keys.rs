//! State keys in SQLite.

use super::{Durability, Sqlite};
use crate::records::{RecordsError, StateKey, StateKeyRecords};
use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, params};

#[async_trait]
impl StateKeyRecords for Sqlite {
    async fn state_keys(&self) -> Result<Vec<StateKey>, RecordsError> {
        self.read(read_all).await
    }

    async fn state_keys_or(&self, first: Vec<u8>, at: Timestamp) -> Result<Vec<StateKey>, RecordsError> {
        self.write(Durability::Power, move |db| {
            db.execute(
                "INSERT INTO state_keys (key, created_at) SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM state_keys)",
                params![first, at.as_microsecond()],
            )?;
            read_all(db)
        })
        .await
    }

    async fn add_state_key(&self, key: Vec<u8>, at: Timestamp) -> Result<(), RecordsError> {
        self.write(Durability::Power, move |db| {
            db.execute("INSERT INTO state_keys (key, created_at) VALUES (?, ?)", params![key, at.as_microsecond()]).map(drop)
        })
        .await
    }
}

fn read_all(db: &Connection) -> rusqlite::Result<Vec<StateKey>> {
    db.prepare_cached("SELECT id, key FROM state_keys ORDER BY id")?
        .query_map([], |row| Ok(StateKey { id: row.get(0)?, key: row.get(1)? }))?
        .collect()
}
