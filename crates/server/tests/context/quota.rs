//! Contexts count towards what their owner may have stored. They did not: an owner with many sessions could fill the disk with contexts of half
//! a megabyte each.

use crate::fixture::{Folders, Server};
use crate::metric;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const OVER_QUOTA: &str = "urn:heapstead:error:storage_quota_exceeded";

async fn usage(server: &Server) -> Value {
    server.get("/api/usage").await.1
}

/// Adds a value of this many bytes to the context of a session.
async fn add(server: &Server, session: &str, name: &str, bytes: usize) -> (u16, Value) {
    server.post("/api/context", json!({ "session": session, "custom": { name: "x".repeat(bytes) } })).await
}

/// Adds values until not even a short one fits.
async fn fill(server: &Server) {
    let (mut session, mut value, mut bytes) = (0, 0, 15_000);
    while bytes > 0 {
        let (status, refused) = add(server, &format!("session {session}"), &format!("v{value}"), bytes).await;
        match status {
            200 => value += 1,
            429 => {
                assert_eq!(refused["type"], OVER_QUOTA, "{refused}");
                bytes /= 2;
            }
            _ => panic!("{status}: {refused}"),
        }
        if bytes == 15_000 && value == 4 {
            (session, value) = (session + 1, 0);
        }
        assert!(session < 100, "{}", usage(server).await);
    }
}

async fn check(arguments: &[&str]) {
    let folders = Folders::new();
    let arguments = [&["--max-stored-mb-per-owner", "1"], arguments].concat();
    let server = Server::start_with(&folders, &arguments);
    fill(&server).await;
    let full = usage(&server).await;
    assert!((950_000..1 << 20).contains(&full["context_bytes"].as_u64().expect("bytes")), "{full}");
    let sum: u64 = ["heap_bytes", "other_bytes", "context_bytes"].iter().map(|kind| full[kind].as_u64().expect("bytes")).sum();
    assert_eq!(full["stored_bytes"], sum, "{full}");
    assert!(sum <= 1 << 20, "{full}");

    // A call that the server would record is skipped and counted.
    assert_eq!(server.get("/api/session-snapshots?session=session%200").await.0, 200);
    let begun = Instant::now();
    while metric(&server, "context_calls_total{result=\"over_quota\"}").await != Some(1.0) {
        assert!(begun.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(usage(&server).await["context_bytes"], full["context_bytes"]);

    // Other kinds of storage are refused too. What is checked before it is written may be the last to fit.
    let tag = async |key: &str| server.put(&format!("/api/heaps/{}/tags", key.repeat(64)), json!({ "tags": { "a": "1" } })).await;
    tag("a").await;
    let (status, refused) = tag("b").await;
    assert_eq!((status, &refused["type"]), (429, &json!(OVER_QUOTA)), "{refused}");
    let (status, refused) = server.post("/api/exec", json!({ "code": "1" })).await;
    assert_eq!((status, &refused["type"]), (429, &json!(OVER_QUOTA)), "{refused}");

    // Removing values and clearing contexts is possible, and makes room at once.
    let removed = server.post("/api/context", json!({ "session": "session 0", "custom": { "v0": null } })).await;
    assert_eq!(removed.0, 200, "{}", removed.1);
    assert_eq!(add(&server, "session 0", "v0", 10_000).await.0, 200);
    assert_eq!(server.delete("/api/context?session=session%201").await.0, 200);
    assert_eq!(tag("b").await.0, 200);
    assert!(usage(&server).await["context_bytes"].as_u64() < full["context_bytes"].as_u64());
}

#[tokio::test]
async fn contexts_count_towards_the_quota_of_their_owner() {
    check(&[]).await;
}

#[tokio::test]
async fn contexts_in_memory_count_too() {
    check(&["--context-store", "memory"]).await;
}
