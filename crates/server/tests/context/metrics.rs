//! `/metrics`: all metrics are present in Prometheus format, and they change when something happens.

use crate::fixture::{Folders, Server};
use crate::redis_server::RedisServer;
use crate::{calls, context_when, metric, run_in};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

#[tokio::test]
async fn every_metric_is_present_and_well_formed() {
    let server = Server::start_with(&Folders::new(), &["--context-store", "memory"]);
    let response = server.client.get(format!("{}/metrics", server.url)).send().await.expect("an answer");
    assert!(response.headers()["content-type"].to_str().expect("text").starts_with("text/plain; version=0.0.4"));
    let page = response.text().await.expect("a page");
    for name in [
        "context_store_sessions",
        "context_store_sessions_max",
        "context_store_memory_bytes",
        "context_store_memory_bytes_max",
        "context_store_up",
        "context_store_unavailable_total",
        "context_store_conflicts_total",
        "context_calls_total",
        "context_cleared_total",
        "context_quarantined_total",
        "context_store_evictions_total",
        "context_read_latency_ms",
        "heapstead_executions_total",
        "heapstead_executions_running",
        "heapstead_executions_queued",
        "heapstead_execution_queue_ms",
        "heapstead_execution_run_ms",
        "heapstead_execution_snapshot_ms",
        "heapstead_heap_bytes",
        "heapstead_heap_cache_lookups_total",
        "heapstead_database_accesses_total",
        "heapstead_sessions",
        "heapstead_live_sessions",
        "heapstead_live_memory_bytes",
        "heapstead_live_memory_bytes_max",
        "heapstead_live_unstored_turns",
        "heapstead_live_checkpoint_lag_seconds",
        "heapstead_live_checkpoints_failing",
        "heapstead_live_evictions_total",
        "heapstead_live_checkpoints_total",
        "heapstead_live_resumes_total",
        "heapstead_replayed_turns_total",
        "heapstead_replay_divergences_total",
        "heapstead_isolation_violations_total",
    ] {
        assert!(page.contains(&format!("# TYPE {name} ")), "{name}: {page}");
    }
    assert!(page.contains("context_calls_total{result=\"dropped\"} 0\n"), "{page}");
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        assert!(value.parse::<f64>().is_ok() && name.starts_with(|first: char| first.is_ascii_lowercase()), "{line}");
    }
}

#[tokio::test]
async fn metrics_change_with_activity() {
    let server = Server::start_with(&Folders::new(), &["--context-store", "memory"]);
    let before = metric(&server, "context_read_latency_ms_count").await.expect("a count");
    let first = run_in(&server, "a", "var n = 1").await;
    server.run_with(json!({ "code": "n", "heap": first["heap"], "session": "a" })).await;
    run_in(&server, "a", "throw 1").await;
    server.post("/api/sessions", json!({})).await;
    context_when(&server, "a", |context| calls(context) == 3).await;
    for (name, at_least) in [
        ("context_store_sessions", 1.0),
        ("context_calls_total{result=\"recorded\"}", 3.0),
        ("heapstead_executions_total{status=\"completed\"}", 2.0),
        ("heapstead_executions_total{status=\"failed\"}", 1.0),
        ("heapstead_execution_queue_ms_count", 3.0),
        ("heapstead_execution_run_ms_bucket{le=\"+Inf\"}", 3.0),
        ("heapstead_execution_snapshot_ms_count", 2.0),
        ("heapstead_heap_bytes", 1.0),
        ("heapstead_heap_cache_lookups_total{result=\"hit\"}", 1.0),
        ("heapstead_sessions", 1.0),
    ] {
        let value = metric(&server, name).await;
        assert!(value >= Some(at_least), "{name}: {value:?}");
    }
    assert!(metric(&server, "context_read_latency_ms_count").await > Some(before));
    assert_eq!(metric(&server, "heapstead_isolation_violations_total").await, Some(0.0));
}

#[tokio::test]
async fn cleared_and_quarantined_contexts_are_counted() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    for session in ["cleared", "damaged"] {
        assert_eq!(server.post("/api/context", json!({ "session": session, "custom": { "k": 1 } })).await.0, 200);
    }
    assert_eq!(server.delete("/api/context?session=cleared").await.0, 200);
    assert_eq!(metric(&server, "context_cleared_total").await, Some(1.0));
    let database = rusqlite::Connection::open(folders.database().join("context.db")).expect("opened");
    assert_eq!(database.execute("UPDATE context_records SET record = 42", []).expect("damaged"), 1);
    let (status, context) = server.get("/api/context?session=damaged").await;
    assert_eq!((status, &context["custom"]), (200, &json!({})), "the context is empty: {context}");
    assert_eq!(metric(&server, "context_quarantined_total").await, Some(1.0));
    assert_eq!(metric(&server, "context_store_up").await, Some(1.0));
}

/// Regression: the metric said that the store was up while it refused writes, so no alert fired.
#[tokio::test]
async fn a_read_only_store_is_reported_as_down() {
    let redis = RedisServer::start();
    let server = Server::start_with(&Folders::new(), &["--context-store", "redis", "--redis-url", &redis.url()]);
    for (bytes_max, up, status) in [(1, 0.0, "degraded"), (0, 1.0, "healthy")] {
        let _: () = redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(bytes_max).query(&mut redis.connection()).expect("set");
        assert_eq!(metric(&server, "context_store_up").await, Some(up));
        assert_eq!(server.get("/api/health").await.1["status"], status);
    }
}

/// Names in the alerts and on the dashboard that no server exports would never fire or show anything.
#[tokio::test]
async fn alerts_and_dashboard_use_existing_metrics() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let alerts = std::fs::read_to_string(docs.join("alerts.yml")).expect("alerts");
    let mut asked: Vec<String> = alerts.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).map(str::to_owned).collect();
    assert_eq!(asked.len(), 6, "{asked:?}");
    for entry in std::fs::read_dir(docs.join("grafana")).expect("a folder") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a dashboard");
        expressions(&serde_json::from_str(&text).expect("JSON"), &mut asked);
    }
    let names: BTreeSet<&str> = asked.iter().flat_map(|expression| names(expression)).collect();
    assert!(names.len() > 15, "{names:?}");
    let server = Server::start_with(&Folders::new(), &["--context-store", "memory"]);
    let page = server.client.get(format!("{}/metrics", server.url)).send().await.expect("an answer").text().await.expect("a page");
    let shown: BTreeSet<&str> = page.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    let missing: Vec<_> = names.difference(&shown).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn expressions(panel: &Value, found: &mut Vec<String>) {
    match panel {
        Value::Object(members) => {
            found.extend(members.get("expr").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| expressions(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

fn names(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("context_") || word.starts_with("heapstead_"))
}
