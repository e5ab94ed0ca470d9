//! The one thread that writes: everything that waits goes into one transaction, so that those who wait share one sync.

use super::{Durability, MetadataError, unavailable};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use tokio::sync::oneshot;

/// Transactions that share a commit: enough to share a sync, few enough to answer soon.
const BATCH_MAX: usize = 256;

pub struct Writer {
    jobs: mpsc::Sender<Box<dyn Job>>,
    path: PathBuf,
}

/// One caller's transaction.
trait Job: Send {
    fn durability(&self) -> Durability;
    /// Does the work. False when it failed, and nothing of it may be kept.
    fn work(&mut self, db: &Connection) -> bool;
    /// Tells the caller; the work counts only once it was committed.
    fn answer(self: Box<Self>, committed: Result<(), MetadataError>, path: &Path);
}

struct Typed<T, F> {
    durability: Durability,
    work: Option<F>,
    done: Option<rusqlite::Result<T>>,
    reply: oneshot::Sender<Result<T, MetadataError>>,
}

impl<T: Send, F: FnOnce(&Connection) -> rusqlite::Result<T> + Send> Job for Typed<T, F> {
    fn durability(&self) -> Durability {
        self.durability
    }

    fn work(&mut self, db: &Connection) -> bool {
        self.done = self.work.take().map(|work| work(db));
        matches!(self.done, Some(Ok(_)))
    }

    fn answer(self: Box<Self>, committed: Result<(), MetadataError>, path: &Path) {
        let answer = match self.done {
            Some(Err(error)) => Err(unavailable(path, &error)),
            Some(Ok(value)) => committed.map(|()| value),
            None => Err(committed.err().unwrap_or_else(|| gone(path))),
        };
        // Whoever asked may have left.
        let _ = self.reply.send(answer);
    }
}

impl Writer {
    pub fn start(connection: Connection, path: PathBuf) -> Self {
        let (jobs, incoming) = mpsc::channel();
        let shown = path.clone();
        std::thread::spawn(move || serve(&connection, &incoming, &shown));
        Self { jobs, path }
    }

    pub async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, MetadataError> {
        let (reply, answer) = oneshot::channel();
        // A thread that is gone drops the reply, and that is the answer.
        let _ = self.jobs.send(Box::new(Typed { durability, work: Some(work), done: None, reply }));
        answer.await.unwrap_or_else(|_| Err(gone(&self.path)))
    }
}

fn gone(path: &Path) -> MetadataError {
    MetadataError::Unavailable { path: path.into(), why: "its writer has stopped".into() }
}

fn serve(db: &Connection, incoming: &mpsc::Receiver<Box<dyn Job>>, path: &Path) {
    while let Ok(first) = incoming.recv() {
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX
            && let Ok(next) = incoming.try_recv()
        {
            batch.push(next);
        }
        let committed = commit(db, &mut batch).map_err(|error| unavailable(path, &error));
        if committed.is_err() && !db.is_autocommit() {
            let _ = db.execute_batch("ROLLBACK");
        }
        for job in batch {
            job.answer(committed.clone(), path);
        }
    }
}

fn commit(db: &Connection, batch: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
    let power = batch.iter().any(|job| job.durability() == Durability::Power);
    db.pragma_update(None, "synchronous", if power { "FULL" } else { "NORMAL" })?;
    db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    for job in batch {
        db.prepare_cached("SAVEPOINT job")?.execute([])?;
        if !job.work(db) {
            db.prepare_cached("ROLLBACK TO job")?.execute([])?;
        }
        db.prepare_cached("RELEASE job")?.execute([])?;
    }
    db.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}
