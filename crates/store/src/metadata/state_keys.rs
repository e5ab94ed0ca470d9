//! Keys that seal what clients carry for us. They are never removed: what a key sealed can be opened for as long as the database is there.

use super::{Durability, Metadata, MetadataError};
use jiff::Timestamp;
use rusqlite::{Connection, params};

/// A key and its number; later keys have higher ones.
#[derive(Clone, PartialEq, Eq)]
pub struct StateKey {
    pub id: i64,
    pub key: Vec<u8>,
}

impl Metadata {
    /// All keys, the newest last.
    pub async fn state_keys(&self) -> Result<Vec<StateKey>, MetadataError> {
        self.read(read_all).await
    }

    /// As `state_keys`, after adding `first` where there is none yet: of two processes that start at once, both get the same one.
    pub async fn state_keys_or(&self, first: Vec<u8>, at: Timestamp) -> Result<Vec<StateKey>, MetadataError> {
        self.write(Durability::Power, move |db| {
            db.execute(
                "INSERT INTO state_keys (key, created_at) SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM state_keys)",
                params![first, at.as_microsecond()],
            )?;
            read_all(db)
        })
        .await
    }

    pub async fn add_state_key(&self, key: Vec<u8>, at: Timestamp) -> Result<(), MetadataError> {
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
