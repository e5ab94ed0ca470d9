//! Redis killed and restarted: calls continue, no acknowledged write is lost, and the store recovers by itself.

use crate::place::{access, change, new_session};
use crate::processes::call;
use crate::redis_server::RedisServer;
use heapstead_context::store::{ContextStore, KEY_PREFIX, QUARANTINE_PREFIX, Redis, RedisSettings};
use heapstead_context::{Contexts, Outcome, Recorder, StoreError, ToolEnd};
use serde_json::{Map, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

fn open(server: &RedisServer) -> Redis {
    Redis::open(&server.url(), &RedisSettings::default()).expect("redis")
}

async fn heals(contexts: &Contexts) {
    let begun = Instant::now();
    while !contexts.health().await.degraded.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it did not heal");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_a_distinct_immediate_error_and_the_store_recovers() {
    let (server, session) = (RedisServer::start(), new_session());
    let contexts = Contexts::new(open(&server));
    change(&contexts, &session, |record| record.add_call(call("before", 1))).await.expect("updated");
    server.kill();
    let begun = Instant::now();
    for _ in 0..5 {
        let error = contexts.get(access(&session)).await.expect_err("down");
        assert!(
            error.is_unavailable() && matches!(error, heapstead_context::Error::Store(StoreError::Unavailable { backend: "redis", .. }))
        );
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "calls do not wait for a Redis that is down");
    let health = contexts.health().await;
    assert!(!health.redis_ok && !health.degraded.is_empty() && contexts.counts().unavailable >= 5, "{health:?}");
    server.start_again();
    heals(&contexts).await;
    assert_eq!(contexts.get(access(&session)).await.expect("there").recent_tool_calls.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_may_start_before_its_redis() {
    let server = RedisServer::start();
    server.kill();
    let contexts = Contexts::new(open(&server));
    assert!(contexts.get(access(&new_session())).await.expect_err("down").is_unavailable());
    server.start_again();
    heals(&contexts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_under_load_loses_no_acknowledged_write() {
    let server = RedisServer::start();
    let contexts = Contexts::new(open(&server));
    let recorder = Recorder::start(contexts.clone());
    let over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let (contexts, over, session, acknowledged) = (contexts.clone(), over.clone(), new_session(), AtomicU64::new(0));
            tokio::spawn(async move {
                while !over.load(Relaxed) {
                    match change(&contexts, &session, |record| record.add_call(call("load", 1))).await {
                        Ok(()) => drop(acknowledged.fetch_add(1, Relaxed)),
                        Err(error) => {
                            assert!(error.is_unavailable(), "{error}");
                            tokio::time::sleep(Duration::from_millis(1)).await;
                        }
                    }
                }
                (session, acknowledged.into_inner())
            })
        })
        .collect();
    let recorded = new_session();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(150)).await;
        server.kill();
        // A tool call returns at once, as usual.
        let begun = Instant::now();
        recorder.record(ToolEnd {
            session: &recorded,
            tenant: "",
            owner: "",
            owner_bytes_max: None,
            tool: "run",
            args: &Map::new(),
            called_at: contexts.clock().now(),
            outcome: Outcome::Summary("Done."),
        });
        assert!(begun.elapsed() < Duration::from_millis(200));
        recorder.flush().await;
        server.start_again();
    }
    heals(&contexts).await;
    over.store(true, Relaxed);
    assert_eq!(recorder.counts().failed + recorder.counts().recorded, 3);
    let mut all = 0;
    for writer in writers {
        let (session, acknowledged) = writer.await.expect("ended");
        let found = contexts.get(access(&session)).await.expect("there").calls_total();
        assert!(found >= acknowledged, "{found} are there, {acknowledged} were acknowledged");
        all += acknowledged;
    }
    assert!(all > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_values_are_as_promised() {
    let (server, session) = (RedisServer::start(), new_session());
    let contexts = Contexts::new(open(&server));
    change(&contexts, &session, |record| drop(record.custom.insert("a".into(), json!(1)))).await.expect("updated");
    let mut connection = server.connection();
    let keys: Vec<String> = redis::cmd("KEYS").arg("mcp:ctx:v1:*").query(&mut connection).expect("keys");
    assert_eq!(keys, [format!("mcp:ctx:v1:{session}")]);
    let value: Vec<u8> = redis::cmd("GET").arg(&keys[0]).query(&mut connection).expect("value");
    let value: serde_json::Value = serde_json::from_slice(&value).expect("the JSON record itself");
    assert_eq!((&value["session_id"], &value["custom"]), (&json!(session), &json!({ "a": 1 })));
    for shorten in [1000, 2000] {
        let _: i64 = redis::cmd("PEXPIRE").arg(&keys[0]).arg(shorten).query(&mut connection).expect("shortened");
        contexts.get(access(&session)).await.expect("read");
        let left: i64 = redis::cmd("PTTL").arg(&keys[0]).query(&mut connection).expect("time to live");
        assert!((29 * 60_000..=30 * 60_000).contains(&left), "{left}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_another_type_is_quarantined() {
    let (server, session) = (RedisServer::start(), new_session());
    let (store, mut connection) = (open(&server), server.connection());
    let _: i64 = redis::cmd("RPUSH").arg(format!("{KEY_PREFIX}{session}")).arg("x").query(&mut connection).expect("planted");
    assert_eq!(store.read(access(&session)).await.expect("not fatal"), None);
    assert_eq!(store.stats().await.expect("stats").quarantined, 1);
    let kept: i64 = redis::cmd("LLEN").arg(format!("{QUARANTINE_PREFIX}{session}")).query(&mut connection).expect("asked");
    assert_eq!(kept, 1);
}

/// Regression: counting scanned all keys of a shared Redis in one go, and the health check then reported that the store did not answer.
#[tokio::test(flavor = "multi_thread")]
async fn contexts_among_many_other_keys_are_counted_in_steps() {
    let (server, session) = (RedisServer::start(), new_session());
    let contexts = Contexts::new(open(&server));
    change(&contexts, &session, |record| record.add_call(call("first", 1))).await.expect("updated");
    assert_eq!(contexts.health().await.session_count, Some(1));
    let fill = "for index = 1, 250000 do redis.call('SET', 'theirs:' .. index, 1) end";
    let _: () = redis::cmd("EVAL").arg(fill).arg(0).query(&mut server.connection()).expect("filled");

    let others = Contexts::new(open(&server));
    let health = others.health().await;
    assert!(health.session_count.is_none() && health.degraded.is_empty() && health.redis_ok, "not counted yet, and healthy: {health:?}");
    change(&contexts, &new_session(), |record| record.add_call(call("second", 1))).await.expect("updated");
    for (contexts, begun) in [(others, Instant::now()), (contexts, Instant::now())] {
        while contexts.stats().await.expect("stats").sessions != Some(2) {
            assert!(begun.elapsed() < Duration::from_secs(30), "the count was not updated in time");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_redis_is_reported_as_down() {
    let server = RedisServer::start();
    let contexts = Contexts::new(open(&server));
    assert!(contexts.is_up().await);
    let _: () = redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(1).query(&mut server.connection()).expect("set");
    assert!(!contexts.is_up().await && !contexts.health().await.redis_ok && contexts.stats().await.is_ok(), "it can still be read");
    let _: () = redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(0).query(&mut server.connection()).expect("set");
    assert!(contexts.is_up().await);
}
