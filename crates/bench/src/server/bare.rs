//! The baseline without a server: the engine in memory, with the same files and database pages written and synced directly.

use super::process;
use crate::fail;
use heapstead_engine::{Engine, HeapImage, Job, Kind, Outcome};
use heapstead_types::{BudgetHolder, Limits};
use rusqlite::Connection;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

pub struct Bare {
    engine: Engine,
    heap: Option<HeapImage>,
    disk: Arc<Mutex<Disk>>,
}

struct Disk {
    folder: TempDir,
    database: Connection,
}

impl Bare {
    pub fn new(engine: Engine) -> Self {
        let folder = process::folder();
        let database = open_database(folder.path()).unwrap_or_else(|error| fail(&error.to_string()));
        Self { engine, heap: None, disk: Arc::new(Mutex::new(Disk { folder, database })) }
    }

    /// One run on the heap of the previous run, stored as durably as the server stores it.
    pub async fn run(&mut self, code: &str) {
        let kind = Kind::Stateful(self.heap.take());
        let job =
            Job { code: code.into(), kind, limits: Limits::default(), headers: vec![], replay: None, holder: BudgetHolder::default() };
        let execution = self.engine.submit(job).unwrap_or_else(|refused| fail(&refused.to_string()));
        let Outcome::Completed { heap: Some(heap), .. } = execution.finish().await.1 else { fail("a run did not complete") };
        let (disk, kept) = (self.disk.clone(), heap.clone());
        let stored = tokio::task::spawn_blocking(move || {
            let disk = disk.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            disk.keep(&kept).map_err(|error| error.to_string())
        });
        match stored.await {
            Ok(Ok(())) => self.heap = Some(heap),
            Ok(Err(error)) => fail(&error),
            Err(error) => fail(&error.to_string()),
        }
    }
}

impl Disk {
    /// Disk work of a stateful run: sidecar and heap, each synced; a row inserted when it starts, and updated with a sync when it ends.
    fn keep(&self, heap: &HeapImage) -> Result<(), Box<dyn std::error::Error>> {
        let key = heap.key().to_string();
        self.database.pragma_update(None, "synchronous", "NORMAL")?;
        self.database.prepare_cached("INSERT INTO executions (id, status) VALUES (?, 'running')")?.execute([&key])?;
        write_synced(&self.folder.path().join(".meta"), &key, b"{\"engine\":\"v8-0.0.0/x86_64/flags-00000000/natives-0-00000000\"}")?;
        write_synced(self.folder.path(), &key, &heap.payload()?)?;
        self.database.pragma_update(None, "synchronous", "FULL")?;
        self.database.prepare_cached("UPDATE executions SET status = 'completed', heap = ?1 WHERE id = ?1")?.execute([&key])?;
        Ok(())
    }
}

fn open_database(folder: &Path) -> Result<Connection, Box<dyn std::error::Error>> {
    std::fs::create_dir_all(folder.join(".meta"))?;
    let database = Connection::open(folder.join("bare.db"))?;
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.execute_batch("CREATE TABLE executions (id TEXT PRIMARY KEY, status TEXT, heap TEXT)")?;
    Ok(database)
}

/// Atomic and durable write: temporary name, sync, rename, sync of the folder.
fn write_synced(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let temporary = folder.join(format!(".{name}.new"));
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(temporary, folder.join(name))?;
    File::open(folder)?.sync_all()
}
