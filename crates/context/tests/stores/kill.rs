//! `kill -9` at random moments: acknowledged writes are there afterwards, or the possible loss is reported.

use crate::place::{access, new_session};
use crate::processes::{self, child_arguments, process};
use heapstead_context::store::{Memory, MemorySettings, Sqlite, SqliteSettings};
use heapstead_context::{Clock, Contexts, Record, SessionId, SystemClock};
use serde_json::json;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const ROUNDS: usize = 6;
const FLUSH_EVERY: Duration = Duration::from_millis(100);

/// Increments a counter in the session's record forever, and prints each number with its time once it is acknowledged.
async fn count_up(contexts: &Contexts, session: &SessionId) {
    loop {
        let count = |record: &mut Record| {
            let next = record.custom.get("count").and_then(|count| count.as_u64()).unwrap_or(0) + 1;
            record.custom.insert("count".into(), json!(next));
            next
        };
        let counted = contexts.update(access(session), |record| Ok(count(record))).await.expect("updated");
        println!("\nack {counted} {}", SystemClock.now().ms());
        tokio::task::yield_now().await;
    }
}

/// Kills the process at a random moment after its first write. Returns the numbers and times acknowledged before.
fn killed(task: &str, store: &str, session: &SessionId) -> Vec<(u64, i64)> {
    let mut child = process(task, store, session).spawn().expect("process");
    let output = BufReader::new(child.stdout.take().expect("output"));
    let patience = 30 + RandomState::new().hash_one(0) % 300;
    let mut acknowledged = Vec::new();
    for line in output.lines().map_while(Result::ok) {
        let Some((count, time)) = line.strip_prefix("ack ").and_then(|ack| ack.split_once(' ')) else { continue };
        acknowledged.push((count.parse().expect("a number"), time.parse().expect("a time")));
        if acknowledged.len() as u64 == patience {
            child.kill().expect("killed");
        }
    }
    child.wait().expect("ended");
    assert!(acknowledged.len() as u64 >= patience, "it ended by itself");
    acknowledged
}

async fn count_in(contexts: &Contexts, session: &SessionId) -> u64 {
    let record = contexts.get(access(session)).await.expect("there");
    record.custom.get("count").and_then(|count| count.as_u64()).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_writer() {
    let Some((store, session)) = child_arguments("kill::sqlite_writer") else { return };
    count_up(&Contexts::new(processes::open(&store)), &session).await;
}

#[tokio::test]
async fn sqlite_loses_nothing_acknowledged() {
    let (folder, session) = (tempfile::tempdir().expect("folder"), new_session());
    let store = format!("encrypted:sqlite:{}", folder.path().join("contexts.db").display());
    for _ in 0..ROUNDS {
        let acknowledged = killed("kill::sqlite_writer", &store, &session);
        let (last, _) = *acknowledged.last().expect("some");
        let found = count_in(&Contexts::new(processes::open(&store)), &session).await;
        assert!(found >= last, "{found} is there, {last} was acknowledged");
    }
}

async fn load(path: &Path) -> (Arc<Memory>, heapstead_context::store::Loaded) {
    let backing = Sqlite::open(path, SqliteSettings::default()).expect("sqlite");
    let (memory, loaded) = Memory::load(MemorySettings::default(), Arc::new(backing)).await.expect("loaded");
    (Arc::new(memory), loaded)
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_writer() {
    let Some((store, session)) = child_arguments("kill::memory_writer") else { return };
    let (memory, _) = load(store.as_ref()).await;
    let _flusher = memory.flush_every(FLUSH_EVERY);
    let contexts = Contexts::new(memory);
    // Slowly, so that flushes happen in between.
    let mut ticks = tokio::time::interval(Duration::from_millis(2));
    loop {
        ticks.tick().await;
        let _ = tokio::time::timeout(Duration::from_micros(500), count_up(&contexts, &session)).await;
    }
}

#[tokio::test]
async fn memory_loses_at_most_what_came_after_the_last_flush_and_says_so() {
    let (folder, session) = (tempfile::tempdir().expect("folder"), new_session());
    let path = folder.path().join("contexts.db");
    for _ in 0..ROUNDS {
        let acknowledged = killed("kill::memory_writer", path.to_str().expect("a path"), &session);
        let (memory, loaded) = load(&path).await;
        let flushed_at = loaded.lost_since.expect("it says since when").ms();
        let found = count_in(&Contexts::new(memory.clone()), &session).await;
        let safe = acknowledged.iter().filter(|(_, time)| *time < flushed_at).map(|(count, _)| *count).max().unwrap_or(0);
        assert!(found >= safe, "{found} is there, {safe} was acknowledged before the last flush");
        memory.close().await.expect("closed");
    }
    assert_eq!(load(&path).await.1.lost_since, None, "it ended well");
}
