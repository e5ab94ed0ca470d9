//! Records in SQLite: one database in a folder, which several processes may open at once. SQL is only in this folder and in `migrations/`.
//!
//! If another process holds the lock, a statement waits for up to `BUSY_TIMEOUT`. Then all transactions of the same commit fail as
//! `RecordsError::Unavailable`, which clients see as `unavailable` (HTTP 503 with `Retry-After`). Only the end of an execution is
//! retried (`service/src/executions/driver/end.rs`, `record_end`).

mod columns;
mod damaged_heaps;
mod executions;
mod heap_deletion;
mod heap_reservations;
mod heaps;
mod journal;
mod logical_sessions;
mod long_column;
mod migrations;
mod owners;
mod retention;
mod server_keys;
mod session_log;
mod sessions;
mod tags;
mod turn_states;
mod turns;

use crate::Owner;
use crate::blobs::FolderBlobs;
use crate::records::{AccessCounts, Records, RecordsError, StoredElsewhere};
use async_trait::async_trait;
use heapstead_sqlite::{Durability, Readers, SqliteError, Writer};
use heapstead_types::ServerId;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const FILE: &str = "heapstead.db";
/// How long a statement waits for a lock that another process holds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const STATEMENTS_CACHED: usize = 64;

pub struct Sqlite {
    path: PathBuf,
    /// Recorded as the server of executions and turns.
    server: ServerId,
    writer: Writer,
    readers: Readers,
    reads: AtomicU64,
    writes: AtomicU64,
    /// What an owner may have stored; the maximum if there is no limit.
    stored_bytes_max: AtomicU64,
    elsewhere: OnceLock<StoredElsewhere>,
}

impl Sqlite {
    /// Opens the database in this folder, creates both if they are missing, and migrates the schema.
    pub fn open(folder: &Path, owner: Owner, server: ServerId) -> Result<Self, RecordsError> {
        FolderBlobs::open(folder, owner).map_err(|error| RecordsError::Folder(Arc::new(error)))?;
        let path = folder.join(FILE);
        create_private(&path).map_err(|error| RecordsError::Unavailable { path: path.clone(), why: error.to_string() })?;
        let mut connection = connect(&path).map_err(|error| unavailable(&path, error.into()))?;
        migrations::run(&mut connection, &path)?;
        let writer = Writer::start("records-writer", connection).map_err(|error| unavailable(&path, error))?;
        let reader_path = path.clone();
        let readers = Readers::new(move || connect(&reader_path));
        Ok(Self {
            path,
            server,
            writer,
            readers,
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            stored_bytes_max: AtomicU64::new(u64::MAX),
            elsewhere: OnceLock::new(),
        })
    }

    fn server(&self) -> &ServerId {
        &self.server
    }

    async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, RecordsError> {
        self.writes.fetch_add(1, Relaxed);
        self.writer.write(durability, work).await.map_err(|error| unavailable(&self.path, error))
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, RecordsError> {
        self.reads.fetch_add(1, Relaxed);
        self.readers.read(work).await.map_err(|error| unavailable(&self.path, error))
    }
}

#[async_trait]
impl Records for Sqlite {
    async fn check(&self) -> Result<(), RecordsError> {
        self.read(|db| db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))).await?;
        self.write(Durability::Process, |db| db.execute_batch("INSERT OR REPLACE INTO probe (id, at) VALUES (1, unixepoch())")).await
    }

    fn limit_storage(&self, bytes_max: Option<u64>) {
        self.stored_bytes_max.store(bytes_max.unwrap_or(u64::MAX), Relaxed);
    }

    fn count_elsewhere(&self, elsewhere: StoredElsewhere) {
        // Set once, when the stores are opened.
        let _ = self.elsewhere.set(elsewhere);
    }

    fn counts(&self) -> AccessCounts {
        AccessCounts { reads: self.reads.load(Relaxed), writes: self.writes.load(Relaxed) }
    }
}

fn unavailable(path: &Path, error: SqliteError) -> RecordsError {
    RecordsError::Unavailable { path: path.into(), why: error.to_string() }
}

/// Only the owner of the process may read the database. SQLite gives the files beside it the same permissions.
fn create_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(drop)
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    heapstead_sqlite::configure(&connection, BUSY_TIMEOUT, "NORMAL")?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    Ok(connection)
}
