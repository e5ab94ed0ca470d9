//! What holds for SQLite beyond the contract: permissions, locks, versions.

use crate::common::{Place, anyone, id, new, server};
use heapstead_store::{Owner, Records, RecordsError, Sqlite};
use heapstead_types::ServerId;
use std::sync::Arc;
use tempfile::TempDir;

pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }
}

impl Place for Folder {
    fn open_as(&self, server: &ServerId) -> Arc<dyn Records> {
        Arc::new(Sqlite::open(self.0.path(), Owner::Anyone, server.clone()).expect("opened"))
    }
}

#[test]
fn only_the_user_of_the_process_may_read_the_database() {
    use std::os::unix::fs::PermissionsExt;
    let place = Folder::new();
    let _records = tokio::runtime::Runtime::new().expect("a runtime").block_on(async { place.open() });
    let files: Vec<_> = std::fs::read_dir(place.0.path()).expect("the folder").flatten().filter(|file| file.path().is_file()).collect();
    assert!(files.iter().any(|file| file.file_name() == "heapstead.db-wal"), "{files:?}");
    for file in files {
        assert_eq!(file.metadata().expect("metadata").permissions().mode() & 0o077, 0, "{file:?}");
    }
}

#[tokio::test]
async fn a_locked_database_fails_until_the_lock_is_released() {
    let place = Folder::new();
    let records = place.open();
    let holder = rusqlite::Connection::open(place.0.path().join("heapstead.db")).expect("opened");
    holder.execute_batch("BEGIN IMMEDIATE").expect("held");
    let refused = records.accept_execution(new(&id(1)), None).await.expect_err("held by another");
    assert!(refused.to_string().contains("locked"), "{refused}");
    assert!(records.check().await.is_err());
    assert!(records.execution(&anyone(), &id(1)).await.expect("reads continue").is_none());
    holder.execute_batch("ROLLBACK").expect("released");
    records.accept_execution(new(&id(1)), None).await.expect("accepted");
    records.check().await.expect("healed");
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused() {
    let place = Folder::new();
    drop(place.open());
    let file = place.0.path().join("heapstead.db");
    rusqlite::Connection::open(&file).expect("opened").pragma_update(None, "user_version", 999).expect("set");
    match Sqlite::open(place.0.path(), Owner::Anyone, server(1)) {
        Err(error @ RecordsError::Newer { found: 999, .. }) => assert!(error.to_string().contains("newer version (999"), "{error}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("opened"),
    }
}

/// Story: rows that were not executions held turns in version 3.
#[tokio::test]
async fn a_database_of_version_3_keeps_its_running_sessions_in_order() {
    let place = Folder::new();
    drop(place.open());
    let file = place.0.path().join("heapstead.db");
    let sid = "07".repeat(32);
    let db = rusqlite::Connection::open(&file).expect("opened");
    db.execute_batch(&format!(
        "DROP INDEX sessions_of_owner; DROP INDEX logical_sessions_of_owner; DROP INDEX executions_of_owner;
         DROP TABLE turns; ALTER TABLE executions DROP COLUMN error_code;
         ALTER TABLE executions ADD COLUMN internal INTEGER NOT NULL DEFAULT 0;
         INSERT INTO sessions (sid, name, principal, opened, next_index, created_at, used_at, expires_at)
           VALUES ('{sid}', '{sid}', '', 1, 0, 0, 0, 9000000000000000);
         INSERT INTO executions (id, principal, process, session, status, started_at, internal)
           VALUES ('{a}', '', '0101010101010101', '{sid}', 'running', 1, 0), ('{b}', '', '0101010101010101', '{sid}', 'running', 2, 1);
         PRAGMA user_version = 3;",
        a = "a".repeat(32),
        b = "b".repeat(32),
    ))
    .expect("version 3");
    drop(db);
    let records = place.open();
    let running = records.running_executions().await.expect("read");
    assert_eq!(running.len(), 1, "the row that only held a turn is gone");
    let accepted = records.accept_execution(crate::common::in_session(&id(1), 7), None).await.expect("accepted");
    assert_eq!(accepted, heapstead_store::records::Accepted::InSession { head: None }, "the running execution is ahead");
}
