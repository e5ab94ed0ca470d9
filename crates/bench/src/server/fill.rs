//! Fills large stores directly, without the API.

use super::process;
use crate::{fail, resolve};
use heapstead_store::{Database, Owner};
use rusqlite::{Connection, params};
use tempfile::TempDir;

/// Number of heaps with the rare tag in every store.
pub const RARE: u64 = 5;

/// Creates a folder whose database holds this many executions and tagged heaps.
pub fn folder(count: u64) -> TempDir {
    let folder = process::folder();
    let database = process::database(&folder);
    // The store creates its own schema.
    drop(Database::open(&database, Owner::Anyone).unwrap_or_else(|error| fail(&error.to_string())));
    fill(&database.join("heapstead.db"), count).unwrap_or_else(|error| fail(&error.to_string()));
    folder
}

/// The id of an execution that exists in every store.
pub fn known_execution() -> String {
    execution(50)
}

fn execution(number: u64) -> String {
    // Spread over the index like random ids.
    format!("{:016x}{number:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn fill(database: &std::path::Path, count: u64) -> rusqlite::Result<()> {
    let mut connection = Connection::open(database)?;
    let now: i64 = connection.query_row("SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER)", [], |row| row.get(0))?;
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare(
            "INSERT INTO executions (id, principal, process, status, started_at, completed_at, heap, result) VALUES (?, '', '0000000000000000', 'completed', ?, ?, ?, '42')",
        )?;
        let mut keep = transaction
            .prepare("INSERT INTO heaps (principal, key, bytes, last_used_at, stored_at, engine) VALUES ('', ?1, 1000, ?2, ?2, '')")?;
        // Without its time a tag would be old. The server deletes old tags on heaps that their owner does not have.
        let mut tag = transaction.prepare("INSERT INTO tags (principal, heap, key, value, set_at) VALUES ('', ?, ?, 'yes', ?)")?;
        for number in 0..count {
            let heap = format!("{:0>64}", execution(number));
            insert.execute(params![execution(number), now, now, heap])?;
            keep.execute(params![heap, now])?;
            tag.execute(params![heap, "common", now])?;
            if number < RARE {
                tag.execute(params![heap, "rare", now])?;
            }
        }
        // Triggers count heaps and tags; the store itself counts executions: 512 bytes each, and the result.
        transaction.execute("UPDATE owners SET stored_bytes = stored_bytes + 514 * ? WHERE principal = ''", [count as i64])?;
    }
    transaction.commit()
}

/// Creates a folder whose database holds this many sessions, half of them logical sessions.
pub fn sessions(count: u64) -> TempDir {
    let folder = process::folder();
    let database = process::database(&folder);
    drop(Database::open(&database, Owner::Anyone).unwrap_or_else(|error| fail(&error.to_string())));
    fill_sessions(&database.join("heapstead.db"), count).unwrap_or_else(|error| fail(&error.to_string()));
    folder
}

/// Handles of a session that exists in every store: an id, a logical id and a short name.
pub fn known_session() -> [String; 3] {
    [session(51), logical(50), "s50".to_owned()]
}

fn session(number: u64) -> String {
    format!("{0}{0}", execution(number))
}

fn logical(number: u64) -> String {
    let digits = execution(number);
    format!("{}-{}-4{}-8{}-{}", &digits[..8], &digits[8..12], &digits[13..16], &digits[17..20], &digits[20..])
}

fn fill_sessions(database: &std::path::Path, count: u64) -> rusqlite::Result<()> {
    let mut connection = Connection::open(database)?;
    let now: i64 = connection.query_row("SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER)", [], |row| row.get(0))?;
    let later = now + 24 * 3600 * 1_000_000;
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare(
            "INSERT INTO sessions (id, principal, name, next_index, sid, opened, created_at, used_at, expires_at) VALUES (?1, ?2, ?3, 0, ?3, 1, ?4, ?4, ?5)",
        )?;
        let mut of_intent = transaction.prepare(
            "INSERT INTO logical_sessions (id, session, principal, scope, intent, execute, process) VALUES (?, ?, ?, '', ?, ?, '0000000000000000')",
        )?;
        let mut execute = transaction.prepare(
            "INSERT INTO execute_sessions (id, logical, reuse_key, prompt_hash, symbols, revision, expires_at) VALUES (?1, ?2, ?1, ?1, '{}', 0, ?3)",
        )?;
        let mut short = transaction.prepare("INSERT INTO session_refs (principal, number, logical) VALUES (?, ?, ?)")?;
        for number in 0..count {
            let (row, is_of_intent, owner) = (number as i64 + 1, number % 2 == 0, resolve::OWNER);
            insert.execute(params![row, owner, session(number), now, (!is_of_intent).then_some(later)])?;
            if is_of_intent {
                of_intent.execute(params![logical(number), row, owner, format!("intent {number}"), execution(number)])?;
                execute.execute(params![execution(number), logical(number), later])?;
                short.execute(params![owner, number as i64, logical(number)])?;
            }
        }
    }
    transaction.commit()
}
