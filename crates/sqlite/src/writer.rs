//! The writer thread: transactions that wait at the same time share one commit, so that they share one sync. The write-ahead log is copied to
//! the database after the answers, so that no transaction waits for it unless it comes right after.

use crate::SqliteError;
use rusqlite::Connection;
use rusqlite::hooks::Wal;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use tokio::sync::{mpsc, oneshot};

/// Transactions that wait for the writer. Later callers wait until there is room.
const QUEUED_MAX: usize = 1024;
/// Transactions in one commit: enough to share a sync, few enough to answer soon.
const BATCH_MAX: usize = 256;
/// Pages in the write-ahead log after which they are copied to the database: 16 MB. A page that was written often is copied once, and no more
/// than this has to be read after a crash.
const WAL_PAGES_MAX: i32 = 4000;

/// What an acknowledged transaction survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The death of this process.
    Process,
    /// A power failure.
    Power,
}

pub struct Writer(mpsc::Sender<Box<dyn Transaction>>);

/// One caller's transaction, whatever its result type.
trait Transaction: Send {
    fn durability(&self) -> Durability;
    /// False if it failed. Only this transaction of the batch is rolled back then.
    fn run(&mut self, db: &Connection) -> bool;
    /// Replies to the caller, after the batch was committed or could not be.
    fn reply(self: Box<Self>, committed: &Result<(), SqliteError>);
}

struct Job<T, F> {
    durability: Durability,
    work: Option<F>,
    done: Option<rusqlite::Result<T>>,
    /// None if the caller does not wait.
    reply: Option<oneshot::Sender<Result<T, SqliteError>>>,
}

impl<T: Send, F: FnOnce(&Connection) -> rusqlite::Result<T> + Send> Transaction for Job<T, F> {
    fn durability(&self) -> Durability {
        self.durability
    }

    fn run(&mut self, db: &Connection) -> bool {
        self.done = self.work.take().map(|work| work(db));
        matches!(self.done, Some(Ok(_)))
    }

    fn reply(self: Box<Self>, committed: &Result<(), SqliteError>) {
        let answer = match (self.done, committed) {
            (Some(Err(error)), _) => Err(error.into()),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (_, Err(error)) => Err(error.clone()),
            (None, Ok(())) => Err(stopped()),
        };
        if let Some(reply) = self.reply {
            // The caller may have stopped waiting.
            let _ = reply.send(answer);
        }
    }
}

impl Writer {
    pub fn start(name: &str, mut connection: Connection) -> Result<Self, SqliteError> {
        let (sender, queue) = mpsc::channel(QUEUED_MAX);
        let wal_pages = Arc::new(AtomicI32::new(0));
        let committed = wal_pages.clone();
        // Replaces SQLite's own, which copies the log within the commit.
        connection.wal_hook(Some(move |_: &mut Wal, pages| {
            committed.store(pages, Relaxed);
            Ok(())
        }))?;
        let thread = std::thread::Builder::new().name(name.to_owned());
        let started = thread.spawn(move || serve(&connection, queue, &wal_pages));
        started.map_err(|error| SqliteError(format!("the writer thread can't be started: {error}")))?;
        Ok(Self(sender))
    }

    /// Runs `work` inside a transaction. Returns when it is committed. If `work` fails, the transaction is rolled back.
    pub async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, SqliteError> {
        let (reply, answer) = oneshot::channel();
        let job = Job { durability, work: Some(work), done: None, reply: Some(reply) };
        self.0.send(Box::new(job)).await.map_err(|_| stopped())?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Queues a transaction without waiting for it. It is dropped if the queue is full.
    pub fn write_if_room(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<()> + Send + 'static) {
        let _ = self.0.try_send(Box::new(Job { durability: Durability::Process, work: Some(work), done: None, reply: None }));
    }
}

fn stopped() -> SqliteError {
    SqliteError("the database writer has stopped".into())
}

fn serve(db: &Connection, mut queue: mpsc::Receiver<Box<dyn Transaction>>, wal_pages: &AtomicI32) {
    // Until it is set, the connection has the setting that it was opened with.
    let mut synced = None;
    while let Some(first) = queue.blocking_recv() {
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX
            && let Ok(next) = queue.try_recv()
        {
            batch.push(next);
        }
        let committed = sync_for(db, &batch, &mut synced).and_then(|()| commit(db, &mut batch)).map_err(SqliteError::from);
        if committed.is_err() && !db.is_autocommit() {
            let _ = db.execute_batch("ROLLBACK");
        }
        batch.into_iter().for_each(|transaction| transaction.reply(&committed));
        if wal_pages.swap(0, Relaxed) >= WAL_PAGES_MAX {
            // If it fails, the next commit tries again.
            let _ = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
    }
}

/// Sets what the next commit survives, unless it is set already: SQLite compiles the statement each time.
fn sync_for(db: &Connection, batch: &[Box<dyn Transaction>], synced: &mut Option<Durability>) -> rusqlite::Result<()> {
    let needed = batch.iter().map(|transaction| transaction.durability()).max();
    if *synced != needed {
        db.pragma_update(None, "synchronous", if needed == Some(Durability::Power) { "FULL" } else { "NORMAL" })?;
        *synced = needed;
    }
    Ok(())
}

fn commit(db: &Connection, batch: &mut [Box<dyn Transaction>]) -> rusqlite::Result<()> {
    db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    // One alone needs no savepoint, for which SQLite would copy every page that changes.
    if let [transaction] = batch {
        let end = if transaction.run(db) { "COMMIT" } else { "ROLLBACK" };
        return db.prepare_cached(end)?.execute([]).map(drop);
    }
    for transaction in batch {
        db.prepare_cached("SAVEPOINT one")?.execute([])?;
        if !transaction.run(db) {
            db.prepare_cached("ROLLBACK TO one")?.execute([])?;
        }
        db.prepare_cached("RELEASE one")?.execute([])?;
    }
    db.prepare_cached("COMMIT")?.execute([]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hook replaces SQLite's own, so the log would grow without bound.
    #[tokio::test]
    async fn the_write_ahead_log_does_not_grow_with_the_number_of_transactions() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("test.db");
        let connection = Connection::open(&path).expect("a database");
        crate::configure(&connection, std::time::Duration::from_secs(5), "NORMAL").expect("configured");
        connection.execute_batch("CREATE TABLE t (text TEXT)").expect("a table");
        let writer = Writer::start("test", connection).expect("a writer");
        for _ in 0..1000 {
            let insert = |db: &Connection| db.execute("INSERT INTO t VALUES (?)", ["x".repeat(64 << 10)]);
            writer.write(Durability::Process, insert).await.expect("written");
        }
        let bytes = std::fs::metadata(folder.path().join("test.db-wal")).expect("the log").len();
        assert!(bytes < 20 << 20, "{bytes} bytes after 64 MB were written");
    }

    #[tokio::test]
    async fn a_transaction_that_fails_is_rolled_back_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("test.db");
        let connection = Connection::open(&path).expect("a database");
        connection.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY)").expect("a table");
        let writer = Writer::start("test", connection).expect("a writer");
        let insert = |n: i64, then_fail: bool| {
            writer.write(Durability::Power, move |db| {
                db.execute("INSERT INTO t VALUES (?)", [n])?;
                if then_fail { db.execute("INSERT INTO t VALUES (?)", [n]) } else { Ok(1) }
            })
        };
        let (one, two, three) = tokio::join!(insert(1, false), insert(2, true), insert(3, false));
        assert!(one.is_ok() && two.is_err() && three.is_ok(), "{one:?} {two:?} {three:?}");
        let readers = crate::Readers::new(move || Connection::open(&path));
        let sum = readers.read(|db| db.query_row("SELECT sum(n) FROM t", [], |row| row.get::<_, i64>(0))).await;
        assert_eq!(sum, Ok(4));
    }
}
