//! The caller: the session that a connection names, the headers that code may read, and fair turns between connections.

use crate::fixture::{Folders, Server};
use crate::peer::{Http, Sse, Stdio, initialize, request, result};
use serde_json::{Value, json};

const NO_SESSION: &str = "no session ID available (send X-MCP-Session-Id header)";

async fn log(client: &Http) -> Vec<Value> {
    let answer = client.call("list_session_snapshots", json!({ "fields": "index,code" })).await;
    answer["structuredContent"]["entries"].as_array().cloned().expect("entries")
}

#[tokio::test]
async fn the_session_is_named_at_initialize_or_with_every_request() {
    let server = Server::start();
    let run = json!({ "code": "1", "wait_secs": 60 });
    let older = Http::connect(&server, "2025-06-18", &[("x-mcp-session-id", "mine")]).await;
    older.call("run_js", run.clone()).await;
    // The name from `initialize` is used, whatever later requests say.
    let mut changed = older.clone();
    changed.headers = vec![("x-mcp-session-id", "other".into())];
    changed.call("run_js", run.clone()).await;
    assert_eq!(log(&changed).await, [json!({ "index": 0, "code": "1" }), json!({ "index": 1, "code": "1" })]);
    // Newer clients have no connection, so each request names the session.
    let newer = Http::modern(&server, &[("x-mcp-session-id", "mine")]);
    newer.call("run_js", run.clone()).await;
    assert_eq!(log(&newer).await.len(), 3);
    let nameless = Http::modern(&server, &[]);
    assert_eq!(log(&nameless).await, [json!({ "error": NO_SESSION })]);
    let sessions = nameless.call("list_sessions", json!({})).await;
    assert_eq!(sessions["structuredContent"], json!({ "sessions": ["mine"] }));
}

#[tokio::test]
async fn connections_without_a_session_name_use_the_configured_one() {
    let folders = Folders::new();
    let mut client = Stdio::connect(&folders, "2025-11-25", &["--session-id", "desk"]).await;
    client.call("run_js", json!({ "code": "1", "wait_secs": 60 })).await;
    let answer = client.call("list_sessions", json!({})).await;
    assert_eq!(answer["structuredContent"], json!({ "sessions": ["desk"] }));
    let server = Server::start_with(&folders, &["--session-id", "desk"]);
    // An HTTP client has a different owner, with its own `desk`.
    let nameless = Http::modern(&server, &[]);
    assert_eq!(log(&nameless).await.len(), 0);
    nameless.call("run_js", json!({ "code": "1", "wait_secs": 60 })).await;
    assert_eq!(log(&nameless).await.len(), 1);
    assert_eq!(log(&Http::connect(&server, "2025-03-26", &[("x-mcp-session-id", "else")]).await).await.len(), 0);
}

#[tokio::test]
async fn code_reads_the_headers_of_its_connection_and_no_others() {
    let server = Server::start_with(&Folders::new(), &["--sse-port", "0"]);
    let headers = json!({ "code": "JSON.stringify({ ...mcp.headers })", "wait_secs": 60 });
    let seen = |answer: &Value| -> Value {
        let text: String = serde_json::from_str(answer["structuredContent"]["result"].as_str().expect("a result")).expect("a string");
        serde_json::from_str(&text).expect("JSON")
    };
    let mut sse = Sse::open(&server).await;
    let hello = initialize("2024-11-05");
    assert_eq!(sse.post(&hello, &[("X-MCP-Token", "abc"), ("X-Other", "no")]).await, 202);
    sse.answer_to(&hello["id"]).await;
    let answer = result(sse.ask("tools/call", json!({ "name": "run_js", "arguments": headers })).await);
    assert_eq!(seen(&answer), json!({ "x-mcp-token": "abc" }));

    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[("x-mcp-user", "é"), ("x-mcp-session-id", "s")]).await;
    let mut later = client.clone();
    later.headers = vec![("x-mcp-user", "later".into())];
    assert_eq!(seen(&later.call("run_js", headers.clone()).await), json!({ "x-mcp-user": "é", "x-mcp-session-id": "s" }));
    let answer =
        client.call("run_js", json!({ "code": "mcp.headers['x-mcp-user'] = 'changed'; mcp.headers['x-mcp-user']", "wait_secs": 60 })).await;
    assert_eq!(answer["structuredContent"]["result"], "\"é\"", "{answer}");
    let newer = Http::modern(&server, &[("x-mcp-user", "now")]);
    assert_eq!(seen(&newer.call("run_js", headers).await), json!({ "x-mcp-user": "now" }));
}

#[tokio::test]
async fn a_bad_session_name_is_refused_and_named() {
    let server = Server::start();
    for version in ["2025-11-25", "2026-07-28"] {
        let mut client = Http::modern(&server, &[("x-mcp-session-id", "")]);
        client.headers[0].1 = "x".repeat(300);
        let message = if version == "2025-11-25" { initialize(version) } else { request("tools/list", json!({})) };
        let response = client.send(&message).await;
        assert_eq!(response.status(), 400, "{version}");
        let text = response.text().await.expect("a body");
        assert!(text.contains("x-mcp-session-id") && text.contains("256 characters"), "{text}");
    }
}
