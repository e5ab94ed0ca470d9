//! Server keys in SQLite.

use super::{Durability, Sqlite};
use crate::records::{KeyPurpose, RecordsError, ServerKey, ServerKeyRecords};
use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, params};

#[async_trait]
impl ServerKeyRecords for Sqlite {
    async fn server_keys(&self, purpose: KeyPurpose) -> Result<Vec<ServerKey>, RecordsError> {
        self.read(move |db| read_all(db, purpose)).await
    }

    async fn server_keys_or(&self, purpose: KeyPurpose, first: Vec<u8>, at: Timestamp) -> Result<Vec<ServerKey>, RecordsError> {
        self.write(Durability::Power, move |db| {
            db.execute(
                "INSERT INTO server_keys (purpose, key, created_at) SELECT ?1, ?2, ?3
                 WHERE NOT EXISTS (SELECT 1 FROM server_keys WHERE purpose = ?1)",
                params![purpose.as_str(), first, at.as_microsecond()],
            )?;
            read_all(db, purpose)
        })
        .await
    }

    async fn add_server_key(&self, purpose: KeyPurpose, key: Vec<u8>, at: Timestamp) -> Result<(), RecordsError> {
        self.write(Durability::Power, move |db| {
            let new = params![purpose.as_str(), key, at.as_microsecond()];
            db.execute("INSERT INTO server_keys (purpose, key, created_at) VALUES (?, ?, ?)", new).map(drop)
        })
        .await
    }
}

fn read_all(db: &Connection, purpose: KeyPurpose) -> rusqlite::Result<Vec<ServerKey>> {
    db.prepare_cached("SELECT id, key FROM server_keys WHERE purpose = ? ORDER BY id")?
        .query_map([purpose.as_str()], |row| Ok(ServerKey { id: row.get(0)?, key: row.get(1)? }))?
        .collect()
}
