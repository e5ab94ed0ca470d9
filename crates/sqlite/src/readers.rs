//! The reader pool: connections are opened when all pooled ones are in use, and a bounded number is kept.
//!
//! Pool crates (`r2d2`, `deadpool`) bound the connections that are in use, test each before use, and run a thread or task of their own. Here
//! requests are bounded before they reach the database, and a local file needs neither test nor reconnection.

use crate::SqliteError;
use rusqlite::Connection;
use std::sync::{Arc, Mutex, PoisonError};

/// Idle connections kept open.
const KEPT_MAX: usize = 8;

#[derive(Clone)]
pub struct Readers(Arc<Inner>);

struct Inner {
    connect: Box<dyn Fn() -> rusqlite::Result<Connection> + Send + Sync>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub fn new(connect: impl Fn() -> rusqlite::Result<Connection> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { connect: Box::new(connect), idle: Mutex::default() }))
    }

    /// Runs `work` with a connection, on a thread that may block.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, SqliteError> {
        let readers = self.clone();
        let read = tokio::task::spawn_blocking(move || readers.read_now(work));
        read.await.unwrap_or_else(|error| Err(SqliteError(error.to_string())))
    }

    /// As `read`, on this thread. A connection whose statement failed is closed, since its state is not known.
    pub fn read_now<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, SqliteError> {
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
