//! Redis as the context store: what it holds, and that an outage costs only the recording during that time.

use crate::fixture::{Folders, Random, Server, torture};
use crate::load::Load;
use crate::redis_server::{self, RedisServer};
use crate::{calls, context_when, health_when, metric, run_in};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn server(redis: &RedisServer) -> Server {
    Server::start_with(&Folders::new(), &["--context-store", "redis", "--redis-url", &redis.url()])
}

#[tokio::test]
async fn redis_stores_the_record_as_json_with_a_ttl() {
    let redis = redis_server::shared();
    let server = server(redis);
    run_in(&server, "a", "6 * 7").await;
    let context = context_when(&server, "a", |context| calls(context) == 1).await;
    let key = format!("mcp:ctx:v1:{}", context["session_id"].as_str().expect("an id"));
    let mut connection = redis.connection();
    let value: String = ::redis::cmd("GET").arg(&key).query(&mut connection).expect("a value");
    assert_eq!(serde_json::from_str::<Value>(&value).expect("JSON"), context);
    let ttl_secs: i64 = ::redis::cmd("TTL").arg(&key).query(&mut connection).expect("a time");
    assert!((1790..=1800).contains(&ttl_secs), "{ttl_secs}");
    assert_eq!(server.get("/api/health").await.1["context_store"]["backend"], "redis");
}

#[tokio::test]
async fn calls_continue_while_redis_is_down_and_it_recovers() {
    let redis = RedisServer::start();
    let server = server(&redis);
    run_in(&server, "a", "var kept = 1").await;
    context_when(&server, "a", |context| calls(context) == 1).await;
    redis.kill();
    let begun = Instant::now();
    for code in ["2", "3", "4"] {
        assert_eq!(run_in(&server, "a", code).await["status"], "completed");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let (status, health) = server.get("/api/health").await;
    assert_eq!((status, &health["status"], &health["context_store"]["redis_ok"]), (200, &json!("degraded"), &json!(false)), "{health}");
    assert_eq!(server.client.get(format!("{}/readyz", server.url)).send().await.expect("an answer").status(), 200, "calls can be served");
    assert_eq!(server.get("/api/context?session=a").await.0, 503);
    assert!(metric(&server, "context_store_unavailable_total").await > Some(0.0));
    assert_eq!(metric(&server, "context_store_up").await, Some(0.0));
    redis.start_again();
    context_when(&server, "a", |context| calls(context) == 1).await;
    run_in(&server, "a", "5").await;
    let recovered = context_when(&server, "a", |context| calls(context) >= 2).await;
    assert_eq!(recovered["recent_tool_calls"][0]["args"]["code"], "var kept = 1", "Redis kept the earlier calls: {recovered:#}");
    assert_eq!(server.get("/api/health").await.1["status"], "healthy");
    assert!(metric(&server, "context_calls_total{result=\"failed\"}").await > Some(0.0));
}

#[tokio::test]
async fn repeated_kills_under_load_fail_no_call_and_lose_no_acknowledged_write() {
    let (random, redis) = (Random::new(), RedisServer::start());
    let servers = [server(&redis)];
    let load = Load::start(&servers);
    for _ in 0..if torture() { 20 } else { 3 } {
        load.advance(1 + random.below(10)).await;
        redis.kill();
        let refused = load.unavailable();
        load.advance(3).await;
        assert!(load.unavailable() > refused, "changes of contexts are refused as unavailable");
        let health = health_when(&servers[0], |health| health["status"] == "degraded").await;
        let problem = health["problems"][0].as_str().unwrap_or_default();
        assert!(problem.starts_with("context store: the context store (redis) can't be used now: "), "{health}");
        assert_eq!((&health["context_store"]["redis_ok"], &health["engine"]["ok"]), (&json!(false), &json!(true)), "{health}");
        redis.start_again();
        let recovered = health_when(&servers[0], |health| health["status"] == "healthy").await;
        assert_eq!((&recovered["context_store"]["redis_ok"], recovered.get("problems")), (&json!(true), None), "{recovered}");
    }
    load.advance(3).await;
    load.end_acknowledged_by(&servers[0]).await;
}
