//! SQLite for asynchronous servers. The record store and the context store both use it.
//!
//! ```text
//! write ─► writer thread: waiting transactions share one commit (and one sync)
//! read  ─► one of at most 16 connections on a blocking thread, each with its own snapshot of the database
//! ```
#![forbid(unsafe_code)]

/// The page cache of a connection: SQLite's default.
pub const CONNECTION_MB: u64 = 2;

mod connection;
mod readers;
mod writer;

pub use connection::configure;
pub use readers::{READERS_MAX, Readers};
pub use writer::{Durability, Writer};

/// Why a statement or a commit failed, in SQLite's words. Cloneable, because all transactions of one commit share it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SqliteError(pub String);

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        Self(error.to_string())
    }
}
