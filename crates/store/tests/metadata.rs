//! The metadata database: ends that are set once, logs without gaps, tags by index, and several processes on one folder.

use heapstead_store::metadata::{
    Cursor, ExecutionEnd, ExecutionFilter, InSession, LogRange, NameRange, NewExecution, NewLogEntry, OpenedOn, TagQuery,
};
use heapstead_store::outputs::Extent;
use heapstead_store::{Metadata, MetadataError, Owner, Tags};
use heapstead_types::{ExecutionId, HeapKey, Principal, SessionName, Status};
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

#[test]
fn nobody_else_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let database = tokio::runtime::Runtime::new().expect("a runtime").block_on(async { Database::new() });
    let files: Vec<_> =
        std::fs::read_dir(database.folder.path()).expect("the folder").flatten().filter(|file| file.path().is_file()).collect();
    assert!(files.iter().any(|file| file.file_name() == "heapstead.db-wal"), "{files:?}");
    for file in files {
        assert_eq!(file.metadata().expect("metadata").permissions().mode() & 0o077, 0, "{file:?}");
    }
}

struct Database {
    folder: TempDir,
    metadata: Metadata,
}

impl Database {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let metadata = Metadata::open(folder.path(), Owner::Anyone).expect("opened");
        Self { folder, metadata }
    }

    async fn begin(&self, id: &ExecutionId) {
        self.metadata.begin_execution(new(id), None).await.expect("begun");
    }
}

fn id(number: u64) -> ExecutionId {
    let mut bits = [0; 16];
    bits[..8].copy_from_slice(&number.to_be_bytes());
    ExecutionId::from_random(bits)
}

fn heap(number: u64) -> HeapKey {
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&number.to_be_bytes());
    HeapKey::from_digest(digest)
}

fn anyone() -> Principal {
    Principal::anonymous()
}

fn session(name: &str) -> SessionName {
    name.parse().expect("a name")
}

fn new(id: &ExecutionId) -> NewExecution {
    NewExecution { id: id.clone(), principal: anyone(), session: None, started_at: Timestamp::now(), input_heap: None, internal: false }
}

fn end(status: Status) -> ExecutionEnd {
    ExecutionEnd {
        result: Some("1".into()),
        warnings: vec!["careful".into()],
        output: Extent { bytes: 5, lines: 2 },
        ..ExecutionEnd::bare(status)
    }
}

fn logged(id: &ExecutionId, number: u64) -> ExecutionEnd {
    let entry = NewLogEntry {
        session: InSession::Named(session("s")),
        input_heap: None,
        output_heap: heap(number),
        code: format!("{number}"),
        timestamp: Timestamp::now(),
        execution_id: id.clone(),
    };
    ExecutionEnd { heap: Some((heap(number), 700)), log: Some(entry), ..end(Status::Completed) }
}

fn tags(pairs: &[(&str, &str)]) -> Tags {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

#[tokio::test]
async fn an_end_is_set_once() {
    let database = Database::new();
    database.begin(&id(1)).await;
    let running = database.metadata.execution(&anyone(), &id(1)).await.expect("read").expect("known");
    assert_eq!((running.status, running.result, running.completed_at), (Status::Running, None, None));
    assert!(database.metadata.end_execution(id(1), logged(&id(1), 9)).await.expect("ended"));
    assert!(!database.metadata.end_execution(id(1), logged(&id(1), 8)).await.expect("answered"), "it has ended");
    assert!(!database.metadata.end_execution(id(2), logged(&id(2), 8)).await.expect("answered"), "it never began");
    let ended = database.metadata.execution(&anyone(), &id(1)).await.expect("read").expect("known");
    assert_eq!((ended.status, ended.result.as_deref(), ended.heap), (Status::Completed, Some("1"), Some(heap(9))));
    assert_eq!((ended.output, ended.warnings), (Extent { bytes: 5, lines: 2 }, vec!["careful".to_owned()]));
    let log = database.metadata.log(&anyone(), &session("s"), LogRange::default()).await.expect("read");
    assert_eq!(log.len(), 1, "an end that did not count leaves no entry");
}

#[tokio::test]
async fn logs_have_no_gaps_however_many_end_at_once_in_however_many_processes() {
    let database = Database::new();
    // Connections of their own, as other processes have.
    let others: Vec<_> = (0..3).map(|_| Metadata::open(database.folder.path(), Owner::Anyone).expect("opened")).collect();
    let ends = (0..200).map(|number| {
        let metadata = others[number as usize % others.len()].clone();
        tokio::spawn(async move {
            metadata.begin_execution(new(&id(number)), None).await.expect("begun");
            assert!(metadata.end_execution(id(number), logged(&id(number), number)).await.expect("ended"));
        })
    });
    for ended in ends.collect::<Vec<_>>() {
        ended.await.expect("no panic");
    }
    let log = database.metadata.log(&anyone(), &session("s"), LogRange::default()).await.expect("read");
    assert_eq!(log.iter().map(|entry| entry.index).collect::<Vec<_>>(), (0..200).collect::<Vec<_>>());
    let mut numbers: Vec<u64> = log.iter().map(|entry| entry.code.parse().expect("a number")).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>(), "each once");
    assert_eq!(database.metadata.sessions(&anyone(), OpenedOn::Any, NameRange::default(), Timestamp::now()).await.expect("read"), ["s"]);
    let part = database
        .metadata
        .log(&anyone(), &session("s"), LogRange { from: 150, limit: Some(10), ..LogRange::default() })
        .await
        .expect("read");
    assert_eq!(part.iter().map(|entry| entry.index).collect::<Vec<_>>(), (150..160).collect::<Vec<_>>());
    assert!(database.metadata.log(&anyone(), &session("other"), LogRange::default()).await.expect("read").is_empty());
}

#[tokio::test]
async fn executions_are_listed_newest_first_and_page_by_page() {
    let database = Database::new();
    for number in 0..10 {
        database.begin(&id(number)).await;
    }
    for number in 0..5 {
        let status = if number % 2 == 0 { Status::Completed } else { Status::Failed };
        let long_ago = Timestamp::now() - SignedDuration::from_hours(48);
        let completed_at = if number < 2 { long_ago } else { Timestamp::now() };
        database.metadata.end_execution(id(number), ExecutionEnd { completed_at, ..end(status) }).await.expect("ended");
    }
    let list = async |filter: ExecutionFilter| {
        let (found, next) = database.metadata.executions(&anyone(), filter).await.expect("read");
        (found.into_iter().map(|summary| summary.id).collect::<Vec<_>>(), next)
    };
    let ids = |numbers: &[u64]| numbers.iter().map(|number| id(*number)).collect::<Vec<_>>();
    assert_eq!(list(ExecutionFilter::default()).await.0, ids(&[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]));
    let recent = ExecutionFilter { ended_since: Some(Timestamp::now() - SignedDuration::from_hours(24)), ..Default::default() };
    assert_eq!(list(recent).await.0, ids(&[9, 8, 7, 6, 5, 4, 3, 2]));
    let failed = ExecutionFilter { status: Some(Status::Failed), ..Default::default() };
    assert_eq!(list(failed).await.0, ids(&[3, 1]));
    let (page, next) = list(ExecutionFilter { limit: Some(4), ..Default::default() }).await;
    assert_eq!(page, ids(&[9, 8, 7, 6]));
    let (page, next) = list(ExecutionFilter { limit: Some(6), before: next, ..Default::default() }).await;
    assert_eq!((page, next), (ids(&[5, 4, 3, 2, 1, 0]), None), "exactly what is left is the last page");
    assert!(list(ExecutionFilter { before: Some(Cursor(0)), ..Default::default() }).await.0.is_empty());
}

#[tokio::test]
async fn tags_are_replaced_removed_and_found_by_all_their_pairs() {
    let database = Database::new();
    let metadata = &database.metadata;
    metadata.set_tags(&anyone(), heap(1), tags(&[("a", "1"), ("b", "2")])).await.expect("set");
    metadata.set_tags(&anyone(), heap(2), tags(&[("a", "1"), ("b", "3")])).await.expect("set");
    metadata.set_tags(&anyone(), heap(3), tags(&[("c", "1")])).await.expect("set");
    let find = async |pairs: &[(&str, &str)]| {
        let (found, _) = metadata.heaps_by_tags(&anyone(), TagQuery { pairs: tags(pairs), ..Default::default() }).await.expect("read");
        found.into_iter().map(|tagged| tagged.heap).collect::<Vec<_>>()
    };
    assert_eq!(find(&[("a", "1")]).await, [heap(1), heap(2)]);
    assert_eq!(find(&[("a", "1"), ("b", "3")]).await, [heap(2)]);
    assert_eq!(find(&[("a", "2")]).await, []);
    assert_eq!(find(&[]).await, [heap(1), heap(2), heap(3)]);
    metadata.set_tags(&anyone(), heap(1), tags(&[("z", "9")])).await.expect("set");
    assert_eq!(metadata.tags(&anyone(), heap(1)).await.expect("read"), tags(&[("z", "9")]), "set replaces all");
    metadata.remove_tags(&anyone(), heap(2), vec!["a".into(), "never".into()]).await.expect("removed");
    assert_eq!(metadata.tags(&anyone(), heap(2)).await.expect("read"), tags(&[("b", "3")]));
    metadata.set_tags(&anyone(), heap(2), Tags::new()).await.expect("cleared");
    assert_eq!(find(&[]).await, [heap(1), heap(3)], "a heap without tags is never found");
    let page =
        async |after| metadata.heaps_by_tags(&anyone(), TagQuery { after, limit: Some(1), ..Default::default() }).await.expect("read");
    let (first, more) = page(None).await;
    assert_eq!((first[0].heap, more), (heap(1), true));
    let (last, more) = page(Some(heap(1))).await;
    assert_eq!((last[0].heap, more), (heap(3), false));
}

#[tokio::test]
async fn what_ran_in_a_process_that_died_is_an_orphan_and_nothing_else_is() {
    let database = Database::new();
    database.begin(&id(1)).await;
    let other = Metadata::open(database.folder.path(), Owner::Anyone).expect("opened");
    other.begin_execution(new(&id(2)), None).await.expect("begun");
    assert_eq!(database.metadata.orphans().await.expect("read"), [], "both live");
    drop(other);
    assert_eq!(database.metadata.orphans().await.expect("read"), [id(2)]);
    database.metadata.forget_dead_processes();
    assert_eq!(database.metadata.orphans().await.expect("read"), [id(2)], "its file is gone, and it is still dead");
    let files = std::fs::read_dir(database.folder.path().join("processes")).expect("folder").count();
    assert_eq!(files, 1, "only the file of this process is left");
}

#[tokio::test]
async fn executions_past_their_time_are_forgotten() {
    let database = Database::new();
    for number in 0..3 {
        database.begin(&id(number)).await;
    }
    let long_ago = Timestamp::now() - SignedDuration::from_hours(48);
    database.metadata.end_execution(id(0), ExecutionEnd { completed_at: long_ago, ..end(Status::Completed) }).await.expect("ended");
    database.metadata.end_execution(id(1), end(Status::Completed)).await.expect("ended");
    let yesterday = Timestamp::now() - SignedDuration::from_hours(24);
    assert_eq!(database.metadata.forget_executions(yesterday).await.expect("forgotten"), [id(0)]);
    assert_eq!(database.metadata.forget_executions(yesterday).await.expect("forgotten"), []);
    assert!(database.metadata.execution(&anyone(), &id(0)).await.expect("read").is_none());
}

#[tokio::test]
async fn heaps_are_in_use_for_a_reason() {
    let database = Database::new();
    let metadata = &database.metadata;
    let (since, later) = (Timestamp::now() - SignedDuration::from_hours(1), Timestamp::now() + SignedDuration::from_hours(1));
    assert!(!metadata.uses_heap(heap(1), since).await.expect("read"));
    metadata.begin_execution(NewExecution { input_heap: Some(heap(1)), ..new(&id(1)) }, None).await.expect("begun");
    assert!(metadata.uses_heap(heap(1), later).await.expect("read"), "a running execution began from it");
    metadata.end_execution(id(1), logged(&id(1), 2)).await.expect("ended");
    assert!(metadata.uses_heap(heap(2), since).await.expect("read"), "it was made a moment ago");
    assert!(!metadata.uses_heap(heap(2), later).await.expect("read"), "its time is over");
    metadata.set_tags(&anyone(), heap(2), tags(&[("keep", "me")])).await.expect("set");
    assert!(metadata.uses_heap(heap(2), later).await.expect("read"), "it has tags");
}

#[tokio::test]
async fn a_database_that_another_process_holds_fails_clearly_and_heals() {
    let database = Database::new();
    let holder = rusqlite::Connection::open(database.folder.path().join("heapstead.db")).expect("opened");
    holder.execute_batch("BEGIN IMMEDIATE").expect("held");
    let refused = database.metadata.begin_execution(new(&id(1)), None).await.expect_err("held by another");
    assert!(refused.to_string().contains("locked"), "{refused}");
    assert!(database.metadata.check().await.is_err());
    assert!(database.metadata.execution(&anyone(), &id(1)).await.expect("reads go on").is_none());
    holder.execute_batch("ROLLBACK").expect("let go");
    database.begin(&id(1)).await;
    database.metadata.check().await.expect("healed");
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused_by_name() {
    let database = Database::new();
    let file = database.folder.path().join("heapstead.db");
    rusqlite::Connection::open(&file).expect("opened").pragma_update(None, "user_version", 999).expect("set");
    match Metadata::open(database.folder.path(), Owner::Anyone) {
        Err(error @ MetadataError::Newer { found: 999, .. }) => assert!(error.to_string().contains("newer version (999"), "{error}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("opened"),
    }
}
