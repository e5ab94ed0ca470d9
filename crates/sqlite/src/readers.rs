//! The reader pool: at most [`READERS_MAX`] connections read at the same time, later readers wait. A bounded number is kept open.
//!
//! Pool crates (`r2d2`, `deadpool`) test each connection before use, and run a thread or task of their own. A local file needs neither test nor
//! reconnection.

use crate::SqliteError;
use rusqlite::Connection;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Connections that read at the same time: more than a disk can serve, few enough that their caches are small.
pub const READERS_MAX: usize = 16;
/// Idle connections kept open.
const KEPT_MAX: usize = 8;

#[derive(Clone)]
pub struct Readers(Arc<Inner>);

struct Inner {
    connect: Box<dyn Fn() -> rusqlite::Result<Connection> + Send + Sync>,
    idle: Mutex<Vec<Connection>>,
    places: Semaphore,
}

impl Readers {
    pub fn new(connect: impl Fn() -> rusqlite::Result<Connection> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { connect: Box::new(connect), idle: Mutex::default(), places: Semaphore::new(READERS_MAX) }))
    }

    /// Runs `work` with a connection, on a thread that may block. Waits for a connection before it takes the thread.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, SqliteError> {
        // Never closed. Held until the caller has the answer, so that answers that are not taken yet are bounded too.
        let _place = self.0.places.acquire().await.map_err(|error| SqliteError(error.to_string()))?;
        let readers = self.clone();
        let read = tokio::task::spawn_blocking(move || readers.read_now(work));
        read.await.unwrap_or_else(|error| Err(SqliteError(error.to_string())))
    }

    /// A connection whose statement failed is closed, since its state is not known.
    fn read_now<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, SqliteError> {
        let pooled = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = pooled.map_or_else(|| (self.0.connect)(), Ok)?;
        // All of its statements see the database at one time.
        connection.prepare_cached("BEGIN")?.execute([])?;
        let answer = work(&connection)?;
        connection.prepare_cached("COMMIT")?.execute([])?;
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT_MAX {
            idle.push(connection);
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::mpsc;

    /// Regression: a server read the head of a session, then that no turn was ahead of its own. Another one had ended its turn in between, so the
    /// head was that of before, and the next turn continued from there.
    #[tokio::test]
    async fn the_statements_of_a_read_see_one_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("test.db");
        let writer = Connection::open(&path).expect("a database");
        crate::configure(&writer, std::time::Duration::from_secs(5), "NORMAL").expect("configured");
        writer.execute_batch("CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (1)").expect("a table");
        let readers = Readers::new(move || Connection::open(&path));
        let read = readers.read(move |db| {
            let number = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
            let before = db.query_row("SELECT n FROM t", [], number)?;
            writer.execute("UPDATE t SET n = 2", [])?;
            Ok((before, db.query_row("SELECT n FROM t", [], number)?))
        });
        assert_eq!(read.await, Ok((1, 1)));
    }

    /// There was once a connection, with a cache of 2 MB, for each of 512 blocking threads.
    #[tokio::test]
    async fn connections_are_bounded_and_later_readers_wait() {
        let opened = Arc::new(AtomicUsize::new(0));
        let counting = opened.clone();
        let readers = Readers::new(move || {
            counting.fetch_add(1, SeqCst);
            Connection::open_in_memory()
        });
        let (began, beginnings) = mpsc::channel();
        let mut ends = Vec::new();
        let reads: Vec<_> = (0..READERS_MAX * 3)
            .map(|_| {
                let (end, ended) = mpsc::channel::<()>();
                ends.push(end);
                let (readers, began) = (readers.clone(), began.clone());
                tokio::spawn(async move {
                    let read = readers.read(move |_| {
                        began.send(()).expect("the test");
                        let _ = ended.recv();
                        Ok(())
                    });
                    read.await
                })
            })
            .collect();
        let beginnings = tokio::task::spawn_blocking(move || {
            for _ in 0..READERS_MAX {
                beginnings.recv().expect("a reader");
            }
            beginnings
        });
        let beginnings = beginnings.await.expect("readers");
        assert!(beginnings.try_recv().is_err(), "the others wait");
        drop(ends);
        for read in reads {
            read.await.expect("a task").expect("read");
        }
        assert!(opened.load(SeqCst) <= 3 * READERS_MAX && beginnings.try_iter().count() == 2 * READERS_MAX);
    }
}
