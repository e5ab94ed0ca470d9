//! The writer of the context database: the shared writer thread with group commit, with the durability of this store.

use super::{BACKEND, Durability};
use crate::StoreError;
use heapstead_sqlite::SqliteError;
use rusqlite::Connection;

pub struct Writer {
    shared: heapstead_sqlite::Writer,
    durability: heapstead_sqlite::Durability,
}

impl Writer {
    pub fn start(connection: Connection, durability: Durability) -> Result<Self, StoreError> {
        let durability = match durability {
            Durability::Process => heapstead_sqlite::Durability::Process,
            Durability::Power => heapstead_sqlite::Durability::Power,
        };
        let shared = heapstead_sqlite::Writer::start("context-writer", connection).map_err(unavailable)?;
        Ok(Self { shared, durability })
    }

    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.shared.write(self.durability, work).await.map_err(unavailable)
    }

    /// For a write that may be dropped when the queue is full.
    pub fn write_if_room(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<()> + Send + 'static) {
        self.shared.write_if_room(work);
    }
}

fn unavailable(error: SqliteError) -> StoreError {
    StoreError::Unavailable { backend: BACKEND, why: error.to_string() }
}
