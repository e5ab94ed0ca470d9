//! What is known about executions, sessions, tags and heaps: one SQLite database in a folder, which several processes may open at once.
//!
//! ```text
//! write ─► writer thread: whatever waits goes into one transaction (a sync is shared by all who wait for it)
//! read  ─► a pool of connections, each with its own snapshot of the database
//! ```

mod damaged_heaps;
mod executions;
mod heap_uses;
mod logical_sessions;
mod migrations;
mod owners;
mod processes;
mod session_heads;
mod session_log;
mod sessions;
mod state_keys;
mod tags;
mod writer;

pub use executions::{Beginning, Cursor, Execution, ExecutionEnd, ExecutionFilter, ExecutionSummary, Finding, NewExecution};
pub use logical_sessions::{Bind, Execute, Logical, NewLogical, Opening};
pub use owners::Totals;
pub use processes::SOCKET_SUFFIX;
pub use session_heads::Head;
pub use session_log::{LogEntry, LogRange, NameRange, NewLogEntry, OpenedOn};
pub use sessions::{InSession, NewSession, OpenedSession, SessionFilter, Turn};
pub use state_keys::StateKey;
pub use tags::{TagQuery, TaggedHeap, Tags};

use crate::{FileHeaps, HeapStoreError, Owner};
use processes::Process;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use writer::Writer;

const FILE: &str = "heapstead.db";
/// How long a statement waits for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections kept open for readers; more are opened while they are needed.
const READERS_KEPT: usize = 8;
const STATEMENTS_KEPT: usize = 64;

#[derive(Debug, Clone, thiserror::Error)]
pub enum MetadataError {
    #[error("the metadata database {} can't be used: {why}", path.display())]
    Unavailable { path: PathBuf, why: String },
    #[error("the metadata database was written by a newer version ({found}, this one knows {known}): use that version")]
    Newer { found: i64, known: i64 },
    #[error(transparent)]
    Folder(Arc<HeapStoreError>),
}

/// What has to have happened before an answer leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// It survives the death of this process.
    Process,
    /// It survives a power cut too.
    Power,
}

#[derive(Clone)]
pub struct Metadata(Arc<Inner>);

struct Inner {
    path: PathBuf,
    folder: PathBuf,
    writer: Writer,
    readers: Mutex<Vec<Connection>>,
    process: Process,
}

impl Metadata {
    /// Opens the database in this folder, makes both if they are missing, and brings the schema up to date.
    pub fn open(folder: &Path, owner: Owner) -> Result<Self, MetadataError> {
        FileHeaps::open(folder, owner).map_err(|error| MetadataError::Folder(Arc::new(error)))?;
        let path = folder.join(FILE);
        make_private(&path).map_err(|error| MetadataError::Unavailable { path: path.clone(), why: error.to_string() })?;
        let unavailable = |error: rusqlite::Error| unavailable(&path, &error);
        let mut connection = connect(&path).map_err(unavailable)?;
        migrations::run(&mut connection, &path)?;
        let process =
            Process::register(folder).map_err(|error| MetadataError::Unavailable { path: folder.into(), why: error.to_string() })?;
        let writer = Writer::start(connection, path.clone());
        Ok(Self(Arc::new(Inner { folder: folder.into(), path, writer, readers: Mutex::new(Vec::new()), process })))
    }

    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Where each process that uses this database has a file, and a socket if it can be asked something.
    pub fn processes_folder(&self) -> PathBuf {
        self.0.process.folder().to_owned()
    }

    /// This process's own name there.
    pub fn process_name(&self) -> &str {
        self.0.process.name()
    }

    /// Runs `work` inside a transaction; answers when it is committed. Where `work` fails, nothing of it is kept.
    async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, MetadataError> {
        self.0.writer.write(durability, work).await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, MetadataError> {
        let inner = self.0.clone();
        let read = tokio::task::spawn_blocking(move || {
            let pooled = inner.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = pooled.map_or_else(|| connect(&inner.path), Ok).map_err(|error| unavailable(&inner.path, &error))?;
            let answer = work(&connection).map_err(|error| unavailable(&inner.path, &error))?;
            let mut readers = inner.readers.lock().unwrap_or_else(PoisonError::into_inner);
            if readers.len() < READERS_KEPT {
                readers.push(connection);
            }
            Ok(answer)
        });
        read.await.unwrap_or_else(|error| Err(MetadataError::Unavailable { path: self.0.path.clone(), why: error.to_string() }))
    }

    /// Whether it can be read and written now; for health.
    pub async fn check(&self) -> Result<(), MetadataError> {
        self.read(|db| db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))).await?;
        self.write(Durability::Process, |db| db.execute_batch("INSERT OR REPLACE INTO probe (id, at) VALUES (1, unixepoch())")).await
    }
}

fn unavailable(path: &Path, error: &rusqlite::Error) -> MetadataError {
    MetadataError::Unavailable { path: path.into(), why: error.to_string() }
}

/// What was run is nobody else's to read; the database takes the rights of its file for what it puts beside it.
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(drop)
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    Ok(connection)
}
