//! What holds for SQLite beyond the contract: permissions, locks, versions.

use crate::common::{Place, anyone, id, new, server};
use crate::journal;
use heapstead_store::records::{ExecutionEnd, HeapRange, JournalEntry, RecordedEngine};
use heapstead_store::{Owner, Records, RecordsError, Sqlite};
use heapstead_types::{ServerId, Status};
use std::sync::Arc;
use tempfile::TempDir;

pub struct Folder(TempDir);

/// The schema of each version.
const MIGRATIONS: [&str; 5] = [
    include_str!("../../migrations/0001_start.sql"),
    include_str!("../../migrations/0002_sessions.sql"),
    include_str!("../../migrations/0003_damaged_heaps.sql"),
    include_str!("../../migrations/0004_turns.sql"),
    include_str!("../../migrations/0005_owner_lookups.sql"),
];

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    /// With a database of an earlier version.
    pub fn of_version(version: usize) -> Self {
        let place = Self::new();
        let db = place.database();
        MIGRATIONS.iter().take(version).for_each(|migration| db.execute_batch(migration).expect("a schema"));
        db.pragma_update(None, "user_version", version as i64).expect("set");
        place
    }

    pub fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.0.path().join("heapstead.db")).expect("opened")
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

/// Before that version, the journal had sources only.
#[tokio::test]
async fn a_database_of_version_14_keeps_its_journal() {
    let place = Folder::new();
    let records = place.open();
    records.accept_execution(new(&id(1)), None).await.expect("accepted");
    let end = ExecutionEnd { journal: Some(journal::entry()), ..crate::common::end(Status::Completed) };
    records.end_execution(id(1), end).await.expect("ended");
    drop(records);
    place
        .database()
        .execute_batch(&format!("{UNDO_16} ALTER TABLE journal DROP COLUMN form; PRAGMA user_version = 14;"))
        .expect("version 14");
    let source = JournalEntry { form: None, ..journal::entry() };
    assert_eq!(place.open().journal_entry(&anyone(), &id(1)).await.expect("read"), Some(source));
}

const UNDO_16: &str = "DROP INDEX log_undone;";
/// Back to version 6.
const UNDO_12: &str = "ALTER TABLE log DROP COLUMN undone; ALTER TABLE log DROP COLUMN instead_of;";
const UNDO_11: &str = "DROP TRIGGER turn_states_of_session; DROP TABLE turn_states; DROP INDEX sessions_by_checkpoint;
    ALTER TABLE sessions DROP COLUMN checkpoint;";
const UNDO_10: &str = "DROP TRIGGER journal_of_execution; DROP TRIGGER journal_of_session; DROP TABLE journal;";
const UNDO_9: &str = "ALTER TABLE heaps DROP COLUMN ours;";
const UNDO_8: &str = "DROP INDEX tags_by_age; ALTER TABLE tags DROP COLUMN set_at; DROP INDEX sessions_named_by_use;
    DROP INDEX sessions_logical_by_use; DROP INDEX execute_sessions_gone; DROP TRIGGER owner_loses_ref; DROP TRIGGER owner_names_session;
    DROP TRIGGER owner_renames_session; DROP TRIGGER owner_deletes_session; DROP TRIGGER owner_sets_tag; DROP TRIGGER owner_deletes_tag;
    DROP TRIGGER owner_gets_logical_session; DROP TRIGGER owner_loses_logical_session; DROP TRIGGER owner_gets_symbols;
    DROP TRIGGER owner_changes_symbols; DROP TRIGGER owner_loses_symbols; ALTER TABLE owners DROP COLUMN next_ref;
    ALTER TABLE owners DROP COLUMN stored_bytes;";
const UNDO_7: &str = "DROP TABLE heap_reservations; DROP TABLE heap_removals; ALTER TABLE owners DROP COLUMN reserved_bytes;
    ALTER TABLE heaps DROP COLUMN stored_at; ALTER TABLE heaps DROP COLUMN engine;";

/// Heaps of earlier versions: the engine of a heap that a run of its owner produced is next to its file, that of an imported heap is not known.
#[tokio::test]
async fn a_database_of_version_6_keeps_what_owners_know_of_their_heaps() {
    let place = Folder::new();
    let records = place.open();
    records.accept_execution(new(&id(1)), None).await.expect("accepted");
    records.end_execution(id(1), crate::common::logged(&id(1), 1)).await.expect("ended");
    records.own_heap(&anyone(), crate::common::stored(crate::common::heap(2), 20), crate::common::now()).await.expect("imported");
    let before = records.heaps(&anyone(), HeapRange::default()).await.expect("read").0;
    drop(records);
    let db = rusqlite::Connection::open(place.0.path().join("heapstead.db")).expect("opened");
    db.execute_batch(&format!("{UNDO_16} {UNDO_12} {UNDO_11} {UNDO_10} {UNDO_9} {UNDO_8} {UNDO_7} PRAGMA user_version = 6;"))
        .expect("version 6");
    drop(db);
    let after = place.open().heaps(&anyone(), HeapRange::default()).await.expect("read").0;
    assert_eq!(
        after.iter().map(|heap| (heap.key, heap.bytes, heap.stored_at)).collect::<Vec<_>>(),
        before.iter().map(|heap| (heap.key, heap.bytes, heap.stored_at)).collect::<Vec<_>>()
    );
    assert_eq!(after.iter().map(|heap| heap.engine.clone()).collect::<Vec<_>>(), [RecordedEngine::InFile, RecordedEngine::Known(None)]);
}

/// Story: rows that were not executions held turns in version 3.
#[tokio::test]
async fn a_database_of_version_3_keeps_its_running_sessions_in_order() {
    let place = Folder::of_version(3);
    let sid = "07".repeat(32);
    let db = place.database();
    db.execute_batch(&format!(
        "INSERT INTO sessions (sid, name, principal, opened, next_index, created_at, used_at, expires_at)
           VALUES ('{sid}', '{sid}', '', 1, 0, 0, 0, 9000000000000000);
         INSERT INTO executions (id, principal, process, session, status, started_at, internal)
           VALUES ('{a}', '', '0101010101010101', '{sid}', 'running', 1, 0), ('{b}', '', '0101010101010101', '{sid}', 'running', 2, 1);
        ",
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
