//! What remains of contexts after a clean shutdown and after a crash.

use crate::fixture::{Folders, Server};
use crate::{calls, context_when, run_in};
use std::time::{Duration, Instant};

#[tokio::test]
async fn the_memory_store_is_flushed_at_shutdown_and_reloaded() {
    let folders = Folders::new();
    let arguments = ["--context-store", "memory"];
    let server = Server::start_with(&folders, &arguments);
    run_in(&server, "a", "1").await;
    run_in(&server, "a", "2").await;
    // The second call may not be recorded yet; shutdown waits for it.
    assert_eq!(server.terminate(), Some(0));
    let server = Server::start_with(&folders, &arguments);
    let context = context_when(&server, "a", |_| true).await;
    assert_eq!(calls(&context), 2, "{context:#}");
    assert_eq!(server.get("/api/health").await.1["context_store"]["backend"], "memory");
}

#[tokio::test]
async fn a_crash_loses_only_unflushed_changes_of_the_memory_store() {
    let folders = Folders::new();
    let arguments = ["--context-store", "memory", "--context-flush", "1s"];
    let mut server = Server::start_with(&folders, &arguments);
    run_in(&server, "a", "1").await;
    context_when(&server, "a", |context| calls(context) == 1).await;
    // What a separate connection to the database sees has been flushed.
    let database = rusqlite::Connection::open(folders.database().join("context.db")).expect("opened");
    let flushed = || database.query_row("SELECT count(*) FROM context_records", [], |row| row.get::<_, i64>(0)).expect("a count");
    let begun = Instant::now();
    while flushed() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.kill();
    let server = Server::start_with(&folders, &arguments);
    assert_eq!(calls(&context_when(&server, "a", |_| true).await), 1);
}

#[tokio::test]
async fn sqlite_keeps_every_acknowledged_write() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, &[]);
    for value in 0..20 {
        let set = serde_json::json!({ "session": "a", "custom": { format!("k{value}"): value } });
        assert_eq!(server.post("/api/context", set).await.0, 200);
    }
    server.kill();
    let server = Server::start_with(&folders, &[]);
    let (_, context) = server.get("/api/context?session=a").await;
    assert_eq!(context["custom"].as_object().map(serde_json::Map::len), Some(20), "{context:#}");
}

#[tokio::test]
async fn an_idle_context_expires() {
    let server = Server::start_with(&Folders::new(), &["--context-store", "memory", "--context-ttl", "1s"]);
    assert_eq!(server.post("/api/context", serde_json::json!({ "session": "a", "custom": { "k": 1 } })).await.0, 200);
    let begun = Instant::now();
    while crate::metric(&server, "context_store_evictions_total{reason=\"idle\"}").await != Some(1.0) {
        assert!(begun.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(server.get("/api/context?session=a").await.1["custom"], serde_json::json!({}));
}
