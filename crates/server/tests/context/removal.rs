//! A context lives as long as its session: it is removed when the session ends or expires.

use crate::fixture::{Folders, Server};
use crate::peer::Http;
use crate::redis_server::RedisServer;
use crate::{calls, context_when, run_in};
use serde_json::json;
use std::time::{Duration, Instant};

/// Opens a session with a context, and another one that stays open.
async fn session_with_context(server: &Server) -> String {
    let (_, session) = server.post("/api/sessions", json!({})).await;
    let id = session["session_id"].as_str().expect("an id").to_owned();
    for session in [&id, "stays"] {
        assert_eq!(server.post("/api/context", json!({ "session": session, "custom": { "k": 1 } })).await.0, 200);
    }
    id
}

/// Waits until the session is gone and only the other context is left in the store.
async fn wait_until_removed(server: &Server, id: &str) {
    let begun = Instant::now();
    loop {
        let status = server.get(&format!("/api/sessions/{id}")).await.0;
        let left = server.get("/api/health").await.1["context_store"]["session_count"].clone();
        if (status, &left) == (404, &json!(1)) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{status}, {left} contexts");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(server.get(&format!("/api/context?session={id}")).await.0, 410);
    assert_eq!(server.get("/api/context?session=stays").await.1["custom"], json!({ "k": 1 }));
}

#[tokio::test]
async fn the_context_of_a_connection_is_removed_with_it() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    client.call("context_set", json!({ "custom": { "a": 1 } })).await;
    let count = async || server.get("/api/health").await.1["context_store"]["session_count"].clone();
    assert_eq!(count().await, 1);
    let leave = server.client.delete(&client.url).header("mcp-session-id", client.connection.as_deref().expect("a connection"));
    assert_eq!(leave.send().await.expect("an answer").status(), 204);
    let begun = Instant::now();
    while count().await != 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the context was not removed with its connection");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_context_of_an_expired_session_is_removed() {
    let redis = RedisServer::start();
    for store in
        [&["--context-store", "sqlite"][..], &["--context-store", "memory"], &["--context-store", "redis", "--redis-url", &redis.url()]]
    {
        let server = Server::start_with(&Folders::new(), &[store, &["--session-ttl", "2s"]].concat());
        let id = session_with_context(&server).await;
        run_in(&server, &id, "1").await;
        wait_until_removed(&server, &id).await;
    }
}

#[tokio::test]
async fn the_context_of_an_ended_session_is_removed() {
    let redis = RedisServer::start();
    for store in
        [&["--context-store", "sqlite"][..], &["--context-store", "memory"], &["--context-store", "redis", "--redis-url", &redis.url()]]
    {
        let server = Server::start_with(&Folders::new(), store);
        let id = session_with_context(&server).await;
        run_in(&server, &id, "1").await;
        context_when(&server, &id, |context| calls(context) == 1).await;
        assert_eq!(server.delete(&format!("/api/sessions/{id}")).await.0, 200);
        wait_until_removed(&server, &id).await;
    }
}

#[tokio::test]
async fn using_a_context_refreshes_its_session_under_any_name() {
    let server = Server::start_with(&Folders::new(), &["--session-ttl", "2s"]);
    let (_, opened) = server.post("/api/sessions", json!({})).await;
    let (_, task) = server.post("/api/session-context", json!({ "intent": "a task" })).await;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(5) {
        for session in [&opened["session_id"], &task["logical_session_id"]] {
            let (status, answer) = server.post("/api/context", json!({ "session": session, "custom": { "k": 1 } })).await;
            assert_eq!(status, 200, "after {:?}: {answer}", begun.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let run = json!({ "code": "1", "session": task["logical_session_id"], "on_stale": "fail", "wait_secs": 60 });
    assert_eq!(server.post("/api/exec", run).await.0, 200);
}

#[tokio::test]
async fn the_context_of_a_task_is_removed_when_its_state_expires() {
    let server = Server::start_with(&Folders::new(), &["--session-ttl", "1s"]);
    let (_, task) = server.post("/api/session-context", json!({ "intent": "a task" })).await;
    assert_eq!(server.post("/api/context", json!({ "session": task["logical_session_id"], "custom": { "k": 1 } })).await.0, 200);
    let begun = Instant::now();
    while server.get("/api/health").await.1["context_store"]["session_count"] != 0 {
        assert!(begun.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
