//! Large stores, filled below the API.

use super::process;
use crate::fail;
use heapstead_store::{Metadata, Owner};
use rusqlite::{Connection, params};
use tempfile::TempDir;

/// Heaps that have the rare tag, in every store.
pub const RARE: u64 = 5;

/// A folder whose database holds this many executions and tagged heaps.
pub fn folder(count: u64) -> TempDir {
    let folder = process::folder();
    let database = process::database(&folder);
    // The schema is the store's own.
    drop(Metadata::open(&database, Owner::Anyone).unwrap_or_else(|error| fail(&error.to_string())));
    fill(&database.join("heapstead.db"), count).unwrap_or_else(|error| fail(&error.to_string()));
    folder
}

/// An execution that every store has.
pub fn known_execution() -> String {
    execution(50)
}

fn execution(number: u64) -> String {
    // Spread over the index, as random ids are.
    format!("{:016x}{number:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn fill(database: &std::path::Path, count: u64) -> rusqlite::Result<()> {
    let mut connection = Connection::open(database)?;
    let now: i64 = connection.query_row("SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER)", [], |row| row.get(0))?;
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare(
            "INSERT INTO executions (id, principal, process, status, started_at, completed_at, heap, result) VALUES (?, '', 'gone', 'completed', ?, ?, ?, '42')",
        )?;
        let mut tag = transaction.prepare("INSERT INTO tags (principal, heap, key, value) VALUES ('', ?, ?, ?)")?;
        for number in 0..count {
            let heap = format!("{:0>64}", execution(number));
            insert.execute(params![execution(number), now, now, heap])?;
            tag.execute(params![heap, "common", "yes"])?;
            if number < RARE {
                tag.execute(params![heap, "rare", "yes"])?;
            }
        }
    }
    transaction.commit()
}
