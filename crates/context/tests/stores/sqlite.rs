//! The SQLite store beyond the suite.

use crate::place::{TTL, access, change, new_session, open_sqlite, record};
use heapstead_context::store::{Backing, ContextStore, Durability, Sqlite, SqliteSettings};
use heapstead_context::{Clock, Contexts, ManualClock, StoreError, SystemClock, Timestamp};
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_ms(1_800_000_000_000)))
}

#[tokio::test]
async fn it_shares_a_database_with_other_tables() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("shared.db");
    let others = Connection::open(&path).expect("database");
    others
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA user_version = 42; CREATE TABLE mine (x); INSERT INTO mine VALUES (1)")
        .expect("made");
    let connect = {
        let path = path.clone();
        move || Connection::open(&path)
    };
    for _again in 0..2 {
        let store = Sqlite::open_with(SqliteSettings { durability: Durability::Power, ..SqliteSettings::default() }, connect.clone())
            .expect("opened");
        let session = new_session();
        assert!(store.replace(access(&session), None, &record(session, "x")).await.expect("stored"));
    }
    let version: i64 = others.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("version");
    let mine: i64 = others.query_row("SELECT x FROM mine", [], |row| row.get(0)).expect("row");
    assert_eq!((version, mine), (42, 1));
}

#[tokio::test]
async fn its_file_is_readable_by_its_owner_only() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("contexts.db");
    open_sqlite(path.clone(), &clock());
    assert_eq!(std::fs::metadata(&path).expect("file").permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn tables_of_another_version_are_left_alone() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("contexts.db");
    open_sqlite(path.clone(), &clock());
    Connection::open(&path)
        .expect("database")
        .execute("UPDATE context_state SET value = 99 WHERE name = 'schema_version'", [])
        .expect("updated");
    let error = Sqlite::open(&path, SqliteSettings::default()).err().expect("refused").to_string();
    assert!(error.contains("version 99"), "{error}");
    let error = Sqlite::open(&folder.path().join("no/such/folder.db"), SqliteSettings::default()).err().expect("refused");
    assert!(matches!(error, StoreError::Unavailable { backend: "sqlite", .. }));
}

#[tokio::test]
async fn reads_continue_while_another_process_writes_and_writes_wait() {
    let (folder, session) = (tempfile::tempdir().expect("folder"), new_session());
    let path = folder.path().join("contexts.db");
    let store = Arc::new(open_sqlite(path.clone(), &clock()));
    let document = record(session, "before");
    store.replace(access(&session), None, &document).await.expect("stored");
    let other = Connection::open(&path).expect("database");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let (writer, before) = (store.clone(), document.clone());
    let write = tokio::spawn(async move { writer.replace(access(&session), Some(&before), &record(session, "after")).await });
    assert_eq!(store.read(access(&session)).await.expect("read"), Some(document));
    assert!(!write.is_finished());
    other.execute_batch("COMMIT").expect("unlocked");
    assert!(write.await.expect("ended").expect("stored"));
}

#[tokio::test]
async fn a_read_writes_its_time_once_a_minute_at_most() {
    let (folder, session, clock) = (tempfile::tempdir().expect("folder"), new_session(), clock());
    let path = folder.path().join("contexts.db");
    let store = open_sqlite(path.clone(), &clock);
    store.replace(access(&session), None, &record(session, "x")).await.expect("stored");
    let database = Connection::open(&path).expect("database");
    let used_at = || database.query_row("SELECT used_at FROM context_records", [], |row| row.get::<_, i64>(0)).expect("row");
    let begun = used_at();
    clock.advance(Duration::from_secs(59));
    store.read(access(&session)).await.expect("read");
    store.check().await.expect("well");
    assert_eq!(used_at(), begun);
    clock.advance(Duration::from_secs(1));
    store.read(access(&session)).await.expect("read");
    store.check().await.expect("what waited is written");
    assert_eq!(used_at(), clock.now().ms());
}

#[tokio::test]
async fn a_sweep_removes_expired_and_excess_contexts() {
    let (folder, clock) = (tempfile::tempdir().expect("folder"), clock());
    let settings = SqliteSettings { ttl: TTL, sessions_max: Some(3), clock: clock.clone(), ..SqliteSettings::default() };
    let store = Sqlite::open(&folder.path().join("contexts.db"), settings).expect("opened");
    let sessions = [(); 6].map(|()| new_session());
    for (index, session) in sessions.iter().enumerate() {
        store.replace(access(session), None, &record(*session, "x")).await.expect("stored");
        clock.advance(if index == 0 { TTL } else { Duration::from_secs(60) });
    }
    store.sweep().await.expect("swept");
    let stats = store.stats().await.expect("stats");
    assert_eq!((stats.sessions, stats.evictions.idle, stats.evictions.lru), (Some(3), 1, 2));
    assert!(
        store.read(access(&sessions[3])).await.expect("read").is_some() && store.read(access(&sessions[2])).await.expect("read").is_none()
    );
}

/// Regression: every read of such a record failed with "Invalid type", and it could not be overwritten either.
#[tokio::test]
async fn a_value_of_another_type_is_quarantined_and_the_session_continues() {
    for (column, value, is_kept) in
        [("record", "42", false), ("record", "4.25", false), ("record", "'text'", false), ("used_at", "'never'", true)]
    {
        let (folder, session) = (tempfile::tempdir().expect("folder"), new_session());
        let path = folder.path().join("contexts.db");
        let store = Arc::new(open_sqlite(path.clone(), &Arc::new(ManualClock::at(SystemClock.now()))));
        let contexts = Contexts::new(store.clone());
        change(&contexts, &session, |record| record.custom = [("a".to_owned(), 1.into())].into()).await.expect("stored");
        let database = Connection::open(&path).expect("database");
        database.execute(&format!("UPDATE context_records SET {column} = {value}"), []).expect("planted");
        let page = store.load(None, 10).await.expect("loaded");
        assert_eq!(page.saved.len(), 1, "{column} = {value}");
        assert_eq!(contexts.get(access(&session)).await.expect("not fatal").custom.len(), usize::from(is_kept), "{column} = {value}");
        assert_eq!(contexts.counts().quarantined, u64::from(!is_kept), "{column} = {value}");
        change(&contexts, &session, |record| record.custom = [("b".to_owned(), 1.into())].into()).await.expect("updated");
        assert!(contexts.get(access(&session)).await.expect("there").custom.contains_key("b"));
    }
}

/// Such a row belongs to no session and must not prevent the others from being loaded.
#[tokio::test]
async fn a_malformed_id_is_skipped() {
    let (folder, session) = (tempfile::tempdir().expect("folder"), new_session());
    let path = folder.path().join("contexts.db");
    let store = open_sqlite(path.clone(), &clock());
    store.replace(access(&session), None, &record(session, "x")).await.expect("stored");
    let database = Connection::open(&path).expect("database");
    database
        .execute_batch(
            "INSERT INTO context_records (session_id, used_at, record) VALUES (x'01', 1, x'7b7d'), ('text', 1, x'7b7d'), (7, 1, x'7b7d')",
        )
        .expect("planted");
    assert_eq!(store.load(None, 10).await.expect("loaded").saved.len(), 1);
}

#[tokio::test]
async fn a_damaged_database_is_an_error_not_a_missing_context() {
    let (folder, session) = (tempfile::tempdir().expect("folder"), new_session());
    let path = folder.path().join("contexts.db");
    let store = open_sqlite(path.clone(), &clock());
    store.replace(access(&session), None, &record(session, "x")).await.expect("stored");
    Connection::open(&path).expect("database").execute_batch("ALTER TABLE context_records RENAME TO elsewhere").expect("renamed");
    for error in [
        store.read(access(&session)).await.expect_err("no answer"),
        store.replace(access(&session), None, &record(session, "y")).await.expect_err("no answer"),
        store.check().await.expect_err("not well"),
    ] {
        assert!(matches!(error, StoreError::Unavailable { backend: "sqlite", .. }), "{error}");
    }
    Connection::open(&path).expect("database").execute_batch("ALTER TABLE elsewhere RENAME TO context_records").expect("renamed");
    assert!(store.read(access(&session)).await.expect("it heals").is_some());
}
