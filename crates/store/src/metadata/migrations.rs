//! Brings a database of any earlier version up to this one: `migrations/*.sql`, each run once, in order, in one transaction.

use super::{MetadataError, unavailable};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/0001_start.sql"),
    include_str!("../../migrations/0002_sessions.sql"),
    include_str!("../../migrations/0003_damaged_heaps.sql"),
];

pub fn run(connection: &mut Connection, path: &Path) -> Result<(), MetadataError> {
    let failed = |error: rusqlite::Error| unavailable(path, &error);
    let known = MIGRATIONS.len() as i64;
    // Another process may be at it too: the lock is taken before the version is read.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    if found > known {
        return Err(MetadataError::Newer { found, known });
    }
    for migration in MIGRATIONS.iter().skip(found.max(0) as usize) {
        transaction.execute_batch(migration).map_err(failed)?;
    }
    transaction.pragma_update(None, "user_version", known).map_err(failed)?;
    transaction.commit().map_err(failed)
}
