//! The memory store beyond the suite: eviction, memory accounting, and loading from its database.

use crate::place::{Place, TENANT, TTL, access, change, keys, new_session, open_sqlite, record};
use heapstead_context::store::{Backing, ContextStore, Evictions, Loaded, Memory, MemorySettings, Sqlite};
use heapstead_context::{Access, Contexts, Document, Encrypted, ManualClock, SessionId, Timestamp};
use proptest::prelude::*;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn session(index: u32) -> SessionId {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&index.to_be_bytes());
    SessionId::from_bytes(bytes)
}

fn settings(clock: &Arc<ManualClock>, sessions_max: usize, memory_bytes_max: usize) -> MemorySettings {
    MemorySettings { ttl: TTL, sessions_max, memory_bytes_max, clock: clock.clone() }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime").block_on(work)
}

#[derive(Debug, Clone)]
enum Step {
    Read(u32),
    Write(u32),
    Remove(u32),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..9_u32).prop_map(Step::Read),
        4 => (0..9_u32).prop_map(Step::Write),
        1 => (0..9_u32).prop_map(Step::Remove),
        2 => (1..20 * 60_u64).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    /// Compared with a model: a list in the order of use.
    #[test]
    fn exactly_the_least_recently_used_is_evicted(steps in steps()) {
        const HELD: usize = 5;
        let clock = Arc::new(ManualClock::at(Timestamp::from_ms(1)));
        let store = Memory::new(settings(&clock, HELD, usize::MAX));
        let (mut model, mut now, mut evictions): (Vec<(u32, u64)>, u64, Evictions) = (Vec::new(), 0, Evictions::default());
        for step in steps {
            let idle = model.iter().filter(|(_, used)| now - used >= TTL.as_secs()).count();
            model.drain(..idle);
            evictions.idle += idle as u64;
            match step {
                Step::Pass(seconds) => {
                    now += seconds;
                    clock.advance(Duration::from_secs(seconds));
                }
                Step::Read(index) => {
                    let found = run(store.read(access(&session(index)))).expect("read");
                    let known = model.iter().position(|(known, _)| *known == index);
                    prop_assert_eq!(found.is_some(), known.is_some());
                    if let Some(known) = known {
                        model.remove(known);
                        model.push((index, now));
                    }
                }
                Step::Write(index) => {
                    // This does not use the store: the expected document is known from the last write, which is always the same.
                    let known = model.iter().position(|(known, _)| *known == index);
                    let document = record(session(index), "x");
                    let replaced = run(store.replace(access(&session(index)), known.map(|_| &document), &document)).expect("asked");
                    prop_assert!(replaced);
                    known.map(|known| model.remove(known));
                    model.push((index, now));
                    if model.len() > HELD {
                        model.remove(0);
                        evictions.lru += 1;
                    }
                }
                Step::Remove(index) => {
                    let known = model.iter().position(|(known, _)| *known == index);
                    let removed = run(store.remove(access(&session(index)))).expect("removed");
                    prop_assert_eq!(removed, known.is_some());
                    known.map(|known| model.remove(known));
                }
            }
        }
        let idle = model.iter().filter(|(_, used)| now - used >= TTL.as_secs()).count();
        evictions.idle += idle as u64;
        let stats = run(store.stats()).expect("stats");
        prop_assert_eq!((stats.sessions, stats.evictions), (Some((model.len() - idle) as u64), evictions));
    }
}

#[tokio::test]
async fn above_the_memory_limit_the_oldest_fifth_is_evicted() {
    let clock = Arc::new(ManualClock::default());
    let document = |index| record(session(index), &"x".repeat(2000));
    let one = {
        let store = Memory::new(settings(&clock, 1000, usize::MAX));
        store.replace(access(&session(0)), None, &document(0)).await.expect("stored");
        store.stats().await.expect("stats").memory_bytes as usize
    };
    assert!(one > 4000, "bytes and record both weigh: {one}");
    let store = Memory::new(settings(&clock, 1000, one * 100));
    for index in 0..100 {
        store.replace(access(&session(index)), None, &document(index)).await.expect("stored");
    }
    assert_eq!(store.stats().await.expect("stats").evictions, Evictions::default(), "at the mark, not past it");
    store.read(access(&session(0))).await.expect("read");
    store.replace(access(&session(100)), None, &document(100)).await.expect("stored");
    let stats = store.stats().await.expect("stats");
    // A fifth of 101, rounded up.
    assert_eq!((stats.sessions, stats.evictions.memory_pressure), (Some(80), 21));
    assert!(stats.memory_bytes <= (one * 100) as u64);
    for (index, is_there) in [(0, true), (1, false), (21, false), (22, true), (100, true)] {
        assert_eq!(store.read(access(&session(index))).await.expect("read").is_some(), is_there, "{index}");
    }
}

/// Regression: contexts were evicted in the order of use, so that one owner that opened many sessions evicted the contexts of all others.
#[tokio::test]
async fn an_owner_with_many_contexts_evicts_its_own() {
    let clock = Arc::new(ManualClock::default());
    let store = Memory::new(settings(&clock, 100, usize::MAX));
    let put = async |owner: &str, index: u32| {
        let session = session(index);
        store.replace(access(&session).of_owner(owner), None, &record(session, "x")).await.expect("stored")
    };
    let is_there = async |index| store.read(access(&session(index))).await.expect("read").is_some();
    for index in 0..10 {
        put("ann", index).await;
    }
    put("bob", 10).await;
    for index in 1000..2000 {
        put("mallory", index).await;
    }
    for index in 0..11 {
        assert!(is_there(index).await, "{index}");
    }
    // Its least recently used ones are gone.
    assert!(!is_there(1910).await && is_there(1911).await && is_there(1999).await);
    // A new owner takes from the one with the most; one that has as many as another loses its own least recently used.
    for index in 3000..3200 {
        put("eve", index).await;
    }
    let count = async |indexes: std::ops::Range<u32>| {
        let mut count = 0;
        for index in indexes {
            count += usize::from(is_there(index).await);
        }
        count
    };
    let (mallory, eve) = (count(1000..2000).await, count(3000..3200).await);
    assert_eq!((mallory + eve, mallory.abs_diff(eve) <= 1), (89, true), "{mallory} and {eve}");
    assert!(is_there(0).await && is_there(10).await);
}

/// With one context each, the least recently used one is evicted, whoever has it.
#[tokio::test]
async fn owners_with_equally_many_contexts_lose_the_least_recently_used() {
    let clock = Arc::new(ManualClock::default());
    let store = Memory::new(settings(&clock, 10, usize::MAX));
    for index in (0..20).rev() {
        let session = session(index);
        store.replace(access(&session).of_owner(&format!("owner {index}")), None, &record(session, "x")).await.expect("stored");
    }
    for index in 0..20 {
        assert_eq!(store.read(access(&session(index))).await.expect("read").is_some(), index < 10, "{index}");
    }
}

#[tokio::test]
async fn under_memory_pressure_the_owner_with_the_most_memory_loses_its_oldest() {
    let clock = Arc::new(ManualClock::default());
    let store = Memory::new(settings(&clock, 1000, 1 << 20));
    let put = async |owner: &str, index: u32, bytes: usize| {
        let session = session(index);
        store.replace(access(&session).of_owner(owner), None, &record(session, &"x".repeat(bytes))).await.expect("stored")
    };
    for index in 0..50 {
        put("ann", index, 100).await;
    }
    for index in 1000..1200 {
        put("mallory", index, 20_000).await;
    }
    let stats = store.stats().await.expect("stats");
    assert!(stats.evictions.memory_pressure > 100 && stats.memory_bytes <= 1 << 20, "{stats:?}");
    for index in (0..50).chain([1199]) {
        assert!(store.read(access(&session(index))).await.expect("read").is_some(), "{index}");
    }
}

#[tokio::test]
async fn of_100_000_sessions_the_newest_10_000_stay() {
    let clock = Arc::new(ManualClock::default());
    let mark = 64 << 20;
    let store = Memory::new(settings(&clock, 10_000, mark));
    for index in 0..100_000 {
        let stored = store.replace(access(&session(index)), None, &record(session(index), "small")).await;
        assert!(stored.expect("stored"));
        if index % 10_000 == 0 {
            assert!(store.stats().await.expect("stats").memory_bytes <= mark as u64);
        }
    }
    let stats = store.stats().await.expect("stats");
    assert_eq!((stats.sessions, stats.evictions), (Some(10_000), Evictions { lru: 90_000, ..Evictions::default() }));
    assert!(
        store.read(access(&session(89_999))).await.expect("read").is_none()
            && store.read(access(&session(90_000))).await.expect("read").is_some()
    );
    let health = Contexts::new(store).health().await;
    assert_eq!(health.degraded.len(), 1, "full is a warning: {health:?}");
}

#[tokio::test]
async fn evicted_contexts_release_their_bytes() {
    let clock = Arc::new(ManualClock::default());
    let store = Memory::new(settings(&clock, 10, usize::MAX));
    for round in 0..3 {
        for index in 0..25 {
            store.remove(access(&session(index))).await.expect("removed");
            store.replace(access(&session(index)), None, &record(session(index), &"x".repeat(round * 100))).await.expect("stored");
        }
    }
    clock.advance(TTL);
    let stats = store.stats().await.expect("stats");
    assert_eq!((stats.sessions, stats.memory_bytes), (Some(0), 0));
}

fn backing(path: &Path, clock: &Arc<ManualClock>) -> Arc<Encrypted<Sqlite>> {
    Arc::new(Encrypted::new(open_sqlite(path.to_owned(), clock), keys()).with_clock(clock.clone()))
}

async fn load(path: &Path, clock: &Arc<ManualClock>, sessions_max: usize) -> (Arc<Memory>, Loaded) {
    let (memory, loaded) = Memory::load(settings(clock, sessions_max, usize::MAX), backing(path, clock)).await.expect("loaded");
    (Arc::new(memory), loaded)
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_ms(1_800_000_000_000)))
}

async fn put(memory: &Arc<Memory>, session: &SessionId, note: &str) {
    let contexts = Contexts::new(memory.clone());
    change(&contexts, session, |record| drop(record.custom.insert("note".into(), json!(note)))).await.expect("stored");
}

#[tokio::test]
async fn flushed_contexts_are_loaded_in_order_without_expired_ones() {
    let (folder, clock) = (tempfile::tempdir().expect("folder"), clock());
    let path = folder.path().join("contexts.db");
    let (memory, loaded) = load(&path, &clock, 100).await;
    assert_eq!(loaded, Loaded::default(), "a first start loses nothing");
    for index in 0..5 {
        put(&memory, &session(index), "kept").await;
        clock.advance(Duration::from_secs(5 * 60));
    }
    memory.flush().await.expect("flushed");
    // Only the time of last use changes, and it reaches the database too.
    memory.read(access(&session(0))).await.expect("read");
    memory.close().await.expect("closed");
    clock.advance(Duration::from_secs(16 * 60));
    let (memory, loaded) = load(&path, &clock, 3).await;
    assert_eq!((loaded.sessions, loaded.expired, loaded.lost_since), (3, 2, None), "{loaded:?}");
    let found = memory.read(access(&session(0))).await.expect("read").expect("there").record().expect("a record");
    assert_eq!(found.custom["note"], "kept");
    put(&memory, &session(9), "new").await;
    let mut there = Vec::new();
    for index in [0, 1, 2, 3, 4, 9] {
        if memory.read(access(&session(index))).await.expect("read").is_some() {
            there.push(index);
        }
    }
    assert_eq!(there, [0, 4, 9], "the least recently used were evicted");
    memory.close().await.expect("closed");
    assert_eq!(load(&path, &clock, 100).await.1.sessions, 3, "evicted contexts are deleted from the database");
}

#[tokio::test]
async fn an_unclean_shutdown_is_reported() {
    let (folder, clock) = (tempfile::tempdir().expect("folder"), clock());
    let path = folder.path().join("contexts.db");
    let one = new_session();
    let (memory, _) = load(&path, &clock, 100).await;
    put(&memory, &one, "flushed").await;
    memory.flush().await.expect("flushed");
    let flushed_at = heapstead_context::Clock::now(&*clock);
    clock.advance(Duration::from_secs(60));
    put(&memory, &one, "lost").await;
    drop(memory);
    let (memory, loaded) = load(&path, &clock, 100).await;
    assert_eq!((loaded.sessions, loaded.lost_since), (1, Some(flushed_at)));
    let found = memory.read(access(&one)).await.expect("read").expect("there").record().expect("a record");
    assert_eq!(found.custom["note"], "flushed");
}

#[tokio::test]
async fn a_cleared_context_does_not_come_back_even_after_a_crash() {
    let (folder, clock, one) = (tempfile::tempdir().expect("folder"), clock(), new_session());
    let path = folder.path().join("contexts.db");
    let (memory, _) = load(&path, &clock, 100).await;
    put(&memory, &one, "secret").await;
    memory.flush().await.expect("flushed");
    assert!(memory.remove(access(&one)).await.expect("removed"));
    drop(memory);
    assert_eq!(load(&path, &clock, 100).await.1.sessions, 0);
}

#[tokio::test]
async fn a_failed_flush_is_included_in_the_next() {
    let (folder, clock, one) = (tempfile::tempdir().expect("folder"), clock(), new_session());
    let path = folder.path().join("contexts.db");
    let (memory, _) = load(&path, &clock, 100).await;
    put(&memory, &one, "kept").await;
    let database = rusqlite::Connection::open(&path).expect("database");
    database.execute_batch("ALTER TABLE context_state RENAME TO elsewhere").expect("renamed");
    memory.flush().await.expect_err("it can't be");
    assert!(!Contexts::new(memory.clone()).health().await.degraded.is_empty(), "health knows");
    database.execute_batch("ALTER TABLE elsewhere RENAME TO context_state").expect("renamed");
    memory.flush().await.expect("flushed");
    drop(memory);
    assert_eq!(load(&path, &clock, 100).await.1.sessions, 1);
}

#[tokio::test]
async fn damaged_rows_are_quarantined_and_the_rest_are_loaded() {
    let (folder, clock) = (tempfile::tempdir().expect("folder"), clock());
    let path = folder.path().join("contexts.db");
    let (memory, _) = load(&path, &clock, 100).await;
    put(&memory, &session(1), "good").await;
    memory.close().await.expect("closed");
    let encrypted = backing(&path, &clock);
    encrypted.replace(access(&session(2)), None, &Document::from_bytes(&b"{}"[..])).await.expect("stored");
    let newer = json!({ "schema_version": 7, "session_id": session(4) }).to_string();
    encrypted.replace(access(&session(4)), None, &Document::from_bytes(newer.clone().into_bytes())).await.expect("stored");
    let bare = open_sqlite(path.clone(), &clock);
    bare.replace(access(&session(3)), None, &record(session(3), "plain")).await.expect("stored");
    let (memory, loaded) = load(&path, &clock, 100).await;
    assert_eq!((loaded.sessions, loaded.quarantined), (2, 2), "{loaded:?}");
    let error = Contexts::new(memory.clone()).get(access(&session(4))).await.expect_err("newer").to_string();
    assert!(error.contains("schema version 7"), "{error}");
    memory.close().await.expect("closed");
    let kept = backing(&path, &clock).read(access(&session(4))).await.expect("read").expect("there");
    assert_eq!(kept.bytes(), newer.as_bytes(), "left untouched");
    assert_eq!(bare.load(None, 10).await.expect("page").saved.len(), 2);
}

#[tokio::test]
async fn tenants_come_back_from_the_database() {
    let (folder, clock, one) = (tempfile::tempdir().expect("folder"), clock(), new_session());
    let path = folder.path().join("contexts.db");
    for _ in 0..3 {
        let (memory, _) = load(&path, &clock, 100).await;
        put(&memory, &one, "x").await;
        memory.close().await.expect("closed");
    }
    let stored = backing(&path, &clock);
    assert!(stored.read(Access::new(&one, "test").of_tenant(TENANT)).await.expect("read").is_some());
    stored.read(Access::new(&one, "test")).await.expect_err("another tenant's");
}

#[tokio::test]
async fn the_flusher_flushes() {
    let place = Place::sqlite();
    let path = place.folder().join("contexts.db");
    let one = new_session();
    let (memory, _) = load(&path, &place.clock, 100).await;
    let flusher = memory.flush_every(Duration::from_millis(10));
    put(&memory, &one, "x").await;
    let database = backing(&path, &place.clock);
    let flushed = async {
        while database.read(access(&one)).await.expect("read").is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), flushed).await.expect("flushed");
    drop(flusher);
}
