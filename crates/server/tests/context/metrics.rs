//! `/metrics`: everything is there in the form that Prometheus reads, and moves when something happens.

use crate::fixture::{Folders, Server};
use crate::{calls, context_when, metric, run_in};
use serde_json::json;

#[tokio::test]
async fn every_metric_is_there_and_well_formed() {
    let server = Server::start_with(&Folders::new(), &["--context-store", "memory"]);
    let response = server.client.get(format!("{}/metrics", server.url)).send().await.expect("an answer");
    assert!(response.headers()["content-type"].to_str().expect("text").starts_with("text/plain; version=0.0.4"));
    let page = response.text().await.expect("a page");
    for name in [
        "context_store_sessions",
        "context_store_sessions_max",
        "context_store_memory_bytes",
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
        "heapstead_sessions",
        "heapstead_isolation_violations_total",
    ] {
        assert!(page.contains(&format!("# TYPE {name} ")), "{name}: {page}");
    }
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        assert!(value.parse::<f64>().is_ok() && name.starts_with(|first: char| first.is_ascii_lowercase()), "{line}");
    }
}

#[tokio::test]
async fn they_move() {
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
