//! Migrates a database of any earlier version: `migrations/*.sql`, each run once, in order, in one transaction.

use super::{RecordsError, unavailable};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/0001_start.sql"),
    include_str!("../../migrations/0002_sessions.sql"),
    include_str!("../../migrations/0003_damaged_heaps.sql"),
    include_str!("../../migrations/0004_turns.sql"),
    include_str!("../../migrations/0005_owner_lookups.sql"),
    include_str!("../../migrations/0006_server_keys.sql"),
    include_str!("../../migrations/0007_heap_reservations.sql"),
    include_str!("../../migrations/0008_retention.sql"),
    include_str!("../../migrations/0009_heap_deletion.sql"),
    include_str!("../../migrations/0010_journal.sql"),
    include_str!("../../migrations/0011_turn_states.sql"),
    include_str!("../../migrations/0012_undo.sql"),
    include_str!("../../migrations/0013_heap_errors.sql"),
    include_str!("../../migrations/0014_imports.sql"),
    include_str!("../../migrations/0015_script_forms.sql"),
    include_str!("../../migrations/0016_indexes_without_states.sql"),
];

pub fn run(connection: &mut Connection, path: &Path) -> Result<(), RecordsError> {
    let failed = |error: rusqlite::Error| unavailable(path, error.into());
    let known = MIGRATIONS.len() as i64;
    // Another process may migrate at the same time, so the lock is taken before the version is read.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    if found > known {
        return Err(RecordsError::Newer { found, known });
    }
    for migration in MIGRATIONS.iter().skip(found.max(0) as usize) {
        transaction.execute_batch(migration).map_err(failed)?;
    }
    transaction.pragma_update(None, "user_version", known).map_err(failed)?;
    transaction.commit().map_err(failed)
}
