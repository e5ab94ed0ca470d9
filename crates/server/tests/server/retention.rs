//! Everything that a server stores ends: rows, heaps with their sidecars, console output, contexts, and what they count for their owner. What
//! is not deleted by its owner is deleted by the sweeps, which each server begins with.
//!
//! Retention is at least a day, so the tests stop the server and make what it stored older.

use crate::fixture::{Folders, Server};
use crate::heap_store_state::database;
use rusqlite::Connection;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Longer than every retention.
const LONG: Duration = Duration::from_secs(400 * 24 * 3600);
const SWEEP_TIMEOUT: Duration = Duration::from_secs(30);
/// Tables whose rows stay, and why: keys and the version of the schema are no data of owners, and the probe is one row.
const STAYING: [&str; 3] = ["server_keys", "context_state", "probe"];

fn contexts(folders: &Folders) -> Connection {
    let database = Connection::open(folders.database().join("context.db")).expect("the contexts");
    database.busy_timeout(Duration::from_secs(5)).expect("a timeout");
    database
}

/// The tables of both databases, with the number of their rows.
fn tables(folders: &Folders) -> Vec<(String, i64)> {
    let mut tables = Vec::new();
    for database in [database(folders), contexts(folders)] {
        let mut names =
            database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").expect("the schema");
        for name in names.query_map([], |row| row.get::<_, String>(0)).expect("tables").map(|name| name.expect("a name")) {
            let rows = database.query_row(&format!("SELECT count(*) FROM {name}"), [], |row| row.get(0)).expect("a number");
            tables.push((name, rows));
        }
    }
    tables
}

/// Makes everything older: each column that has a time, and each file.
fn age(folders: &Folders) {
    let (micros, millis) = (LONG.as_micros() as i64, LONG.as_millis() as i64);
    for (database, by) in [(database(folders), micros), (contexts(folders), millis)] {
        let sql = "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c
             WHERE m.type = 'table' AND (substr(c.name, -3) = '_at' OR c.name IN ('timestamp', 'at'))";
        let mut columns = database.prepare(sql).expect("the schema");
        let columns = columns.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).expect("columns");
        for (table, column) in columns.collect::<Result<Vec<_>, _>>().expect("columns") {
            database.execute(&format!("UPDATE {table} SET {column} = {column} - {by}"), []).expect("aged");
        }
    }
    for path in files(folders.path()) {
        let file = std::fs::File::options().append(true).open(folders.path().join(path)).expect("a file");
        file.set_modified(SystemTime::now() - LONG).expect("aged");
    }
}

/// All files but the databases, and the lock and the socket of a server.
fn files(root: &Path) -> BTreeSet<PathBuf> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
            let name = entry.file_name().into_string().expect("a name");
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && !name.contains(".db") && !path.to_string_lossy().contains("/processes/") {
                found.insert(path.strip_prefix(root).expect("inside").to_owned());
            }
        }
    }
    found
}

async fn until(what: &str, folders: &Folders, is_reached: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_reached() {
        assert!(begun.elapsed() < SWEEP_TIMEOUT, "{what}: {:?}, {:?}", tables(folders), files(folders.path()));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn everything_that_is_past_its_retention_goes() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &["--catalog", concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalogs/statistics")]);
    server.run_with(json!({ "code": "console.log('x'.repeat(10_000)); let n = 1", "session": "notes" })).await;
    server.run("throw new Error('y'.repeat(1000))").await;
    let (_, session) = server.post("/api/sessions", json!({})).await;
    server.run_with(json!({ "code": "let m = 1", "session": session["session_id"] })).await;
    let opening = json!({ "intent": "count", "seeds": [{ "catalog": "statistics", "entity": "mean" }] });
    let (status, logical) = server.post("/api/session-context", opening).await;
    assert_eq!(status, 200, "{logical}");
    server.run_with(json!({ "code": "let o = 1", "session": logical["logical_session_id"] })).await;
    for owned in [json!("notes"), session["session_id"].clone(), logical["logical_session_id"].clone()] {
        let noted = json!({ "session": owned, "custom": { "note": "z".repeat(1000) } });
        assert_eq!(server.post("/api/context", noted).await.0, 200);
    }
    let tagged = server.put(&format!("/api/heaps/{}/tags", "ab".repeat(32)), json!({ "tags": { "a": "1" } })).await;
    assert_eq!(tagged.0, 200);
    let (_, usage) = server.get("/api/usage").await;
    for counted in ["heap_bytes", "other_bytes", "context_bytes"] {
        assert!(usage[counted].as_u64() > Some(1000), "{usage}");
    }
    assert!(files(folders.path()).len() > 4, "heaps, sidecars and output: {:?}", files(folders.path()));
    assert_eq!(server.terminate(), Some(0));

    // Sessions end; what names them, and the sessions themselves, are deleted a retention later.
    age(&folders);
    let server = Server::start_with(&folders, &[]);
    let ended = "SELECT NOT EXISTS (SELECT 1 FROM executions) AND NOT EXISTS (SELECT 1 FROM sessions WHERE ended_at IS NULL)";
    until("sessions end", &folders, || database(&folders).query_row(ended, [], |row| row.get(0)).expect("answered")).await;
    assert_eq!(server.terminate(), Some(0));
    age(&folders);
    let server = Server::start_with(&folders, &[]);
    let is_empty = || tables(&folders).iter().all(|(table, rows)| *rows == 0 || STAYING.contains(&table.as_str()));
    until("everything goes", &folders, || is_empty() && files(folders.path()).is_empty()).await;
    let (_, usage) = server.get("/api/usage").await;
    for counted in ["stored_bytes", "heap_bytes", "other_bytes", "context_bytes"] {
        assert_eq!(usage[counted], 0, "{usage}");
    }
}

/// A new table has to be in the document, with what ends its rows.
#[tokio::test]
async fn every_table_is_in_the_document() {
    let server = Server::start();
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/retention.md")).expect("the document");
    let tables = tables(server.folders());
    assert!(tables.len() > 15, "{tables:?}");
    for (table, _) in tables {
        assert!(document.contains(&format!("`{table}`")), "docs/retention.md does not say what ends the rows of `{table}`");
    }
}
