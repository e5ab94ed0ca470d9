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
        let answer = work(&connection)?;
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
