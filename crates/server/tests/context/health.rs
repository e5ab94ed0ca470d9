//! Health: one document, found by trying, and the two questions that a supervisor asks.

use crate::fixture::{Folders, Server};
use crate::peer::Http;
use serde_json::{Value, json};

async fn status(server: &Server, path: &str) -> u16 {
    server.client.get(format!("{}{path}", server.url)).send().await.expect("an answer").status().as_u16()
}

#[tokio::test]
async fn the_document_is_as_specified() {
    let server = Server::start();
    let (code, mut health) = server.get("/api/health").await;
    assert_eq!(code, 200);
    assert!(health["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{health}");
    assert!(health["engine"]["v8"].as_str().is_some_and(|version| version.contains('.')), "{health}");
    (health["timestamp"], health["engine"]["v8"]) = (json!(""), json!(""));
    let expected = json!({
        "status": "healthy",
        "context_store": { "backend": "sqlite", "session_count": 0, "max_sessions": null, "heap_used_mb": 0, "heap_pressure_pct": 0, "redis_ok": true },
        "heap_store": { "backend": "folder", "ok": true, "damaged": 0 },
        "engine": { "ok": true, "running": 0, "queued": 0, "v8": "" },
        "timestamp": "",
    });
    assert_eq!(health, expected);
    assert_eq!((status(&server, "/healthz").await, status(&server, "/readyz").await), (200, 200));
}

#[tokio::test]
async fn sessions_at_the_maximum_and_memory_past_90_percent_degrade_it() {
    let full = Server::start_with(&Folders::new(), &["--context-store", "memory", "--context-max", "2"]);
    for session in ["a", "b"] {
        assert_eq!(full.get("/api/health").await.1["status"], "healthy");
        assert_eq!(full.post("/api/context", json!({ "session": session, "custom": { "k": 1 } })).await.0, 200);
    }
    let client = Http::connect(&full, "2025-11-25", &[]).await;
    let answer = client.call("health_check", json!({})).await;
    assert_eq!((&answer["isError"], &answer["structuredContent"]["status"]), (&json!(true), &json!("degraded")), "{answer}");
    let store = &answer["structuredContent"]["context_store"];
    assert_eq!((&store["session_count"], &store["max_sessions"]), (&json!(2), &json!(2)));
    // The oldest leaves when another comes, for that reason.
    assert_eq!(full.post("/api/context", json!({ "session": "c", "custom": { "k": 1 } })).await.0, 200);
    assert_eq!(crate::metric(&full, "context_store_evictions_total{reason=\"lru\"}").await, Some(1.0));
    assert_eq!(full.get("/api/context?session=a").await.1["custom"], json!({}));

    let heavy = Server::start_with(&Folders::new(), &["--context-store", "memory", "--context-memory-mb", "1"]);
    let values: Value = (0..3).map(|key| (format!("k{key}"), json!("x".repeat(16_000)))).collect::<serde_json::Map<_, _>>().into();
    let mut degraded = false;
    for session in 0..40 {
        assert_eq!(heavy.post("/api/context", json!({ "session": format!("heavy-{session}"), "custom": values })).await.0, 200);
        let (_, health) = heavy.get("/api/health").await;
        let over = health["context_store"]["heap_pressure_pct"].as_u64() > Some(90);
        assert_eq!(health["status"] == "degraded", over, "{health}");
        degraded |= over;
    }
    assert!(degraded, "it came close to its mark");
    assert!(crate::metric(&heavy, "context_store_evictions_total{reason=\"memory_pressure\"}").await > Some(0.0));
}

#[tokio::test]
async fn a_store_that_is_gone_is_told_and_the_server_is_not_ready() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let holder = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("opened");
    holder.execute_batch("BEGIN IMMEDIATE").expect("held");
    let (health, ready) = tokio::join!(server.get("/api/health"), status(&server, "/readyz"));
    assert_eq!((&health.1["status"], ready), (&json!("degraded"), 503), "{}", health.1);
    assert_eq!(status(&server, "/healthz").await, 200, "it is alive");
}

#[tokio::test]
async fn a_stateless_server_has_health_too() {
    let server = Server::start_with(&Folders::new(), &["--stateless"]);
    let (_, health) = server.get("/api/health").await;
    assert_eq!(
        (&health["status"], &health["context_store"]["backend"], &health["heap_store"]["backend"]),
        (&json!("healthy"), &json!("none"), &json!("none"))
    );
    assert_eq!((status(&server, "/healthz").await, status(&server, "/readyz").await, status(&server, "/metrics").await), (200, 200, 200));
}
