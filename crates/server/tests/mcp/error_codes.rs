//! Every JSON-RPC error has a stable code in `data.code`, and every HTTP error outside of JSON-RPC is a problem document.

use crate::fixture::{Folders, Server};
use crate::peer::{Http, Sse, Stdio, initialize, modern, request};
use heapstead_types::ErrorCode;
use reqwest::Method;
use serde_json::{Value, json};

const LEGACY: &str = "2025-11-25";
const SESSION: &str = "io.modelcontextprotocol/session";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// Asserts the code of an error, and that the table has it.
fn has_code(answer: &Value, expected: &str) {
    let code = answer["error"]["data"]["code"].as_str().unwrap_or_else(|| panic!("no code: {answer}"));
    assert!(ErrorCode::from_name(code).is_some(), "{answer}");
    assert_eq!(code, expected, "{answer}");
}

/// Requests of a client that sent `initialize`, and the code of the error.
fn legacy_cases() -> Vec<(Value, &'static str)> {
    let cases = [
        ("no/such/method", json!({}), "method_not_found"),
        ("prompts/list", json!({}), "method_not_found"),
        // Answered by rmcp itself.
        ("prompts/get", json!({ "name": "x" }), "method_not_found"),
        ("subscriptions/listen", json!({ "notifications": {} }), "method_not_found"),
        ("tools/call", json!({ "name": "no_such_tool" }), "invalid_parameter"),
        ("tools/call", json!({ "name": 5 }), "invalid_parameter"),
        ("tools/call", json!({ "name": "list_sessions", "task": {} }), "method_not_found"),
        ("tools/call", json!({ "name": "run_js", "arguments": { "code": 5 }, "task": {} }), "invalid_parameter"),
        ("tasks/get", json!({}), "invalid_parameter"),
        ("tasks/get", json!({ "taskId": "x" }), "execution_not_found"),
        ("tasks/result", json!({ "taskId": "x" }), "execution_not_found"),
        ("tasks/list", json!({ "cursor": "x" }), "invalid_parameter"),
        ("resources/read", json!({}), "invalid_parameter"),
        ("resources/read", json!({ "uri": "file:///etc/passwd" }), "not_found"),
        ("resources/read", json!({ "uri": "heapstead://executions/x" }), "execution_not_found"),
        ("resources/list", json!({ "cursor": "x" }), "invalid_parameter"),
        ("resources/subscribe", json!({ "uri": "heapstead://executions/x/result" }), "not_found"),
        ("sessions/list", json!({ "cursor": 5 }), "invalid_parameter"),
        ("sessions/resume", json!({}), "invalid_parameter"),
        ("sessions/resume", json!({ "sessionId": "x" }), "session_not_found"),
        ("sessions/delete", json!({}), "session_required"),
        ("sessions/create", json!({ "_meta": { SESSION: { "sessionId": "x" } } }), "invalid_parameter"),
        ("tools/list", json!({ "_meta": { SESSION: { "sessionId": "x" } } }), "session_not_found"),
        ("tools/list", json!({ "_meta": { SESSION: 5 } }), "invalid_parameter"),
    ];
    cases.map(|(method, params, code)| (request(method, params), code)).into()
}

/// Requests of 2026-07-28, and the code of the error.
fn modern_cases() -> Vec<(Value, &'static str)> {
    let cases = [
        ("no/such/method", json!({}), "method_not_found"),
        ("ping", json!({}), "method_not_found"),
        ("prompts/get", json!({ "name": "x" }), "method_not_found"),
        ("resources/subscribe", json!({ "uri": "heapstead://executions/x" }), "method_not_found"),
        ("tasks/get", json!({ "taskId": "x" }), "client_capability_required"),
        ("tools/call", json!({ "name": "no_such_tool" }), "invalid_parameter"),
        ("resources/read", json!({ "uri": "file:///etc/passwd" }), "not_found"),
        ("resources/read", json!({ "uri": "heapstead://executions/x" }), "execution_not_found"),
        ("sessions/delete", json!({}), "session_required"),
        ("sessions/resume", json!({ "sessionId": "x" }), "session_not_found"),
        ("tools/list", json!({ "_meta": { "dev.heapstead/session": { "sessionId": "x" } } }), "session_not_found"),
        ("tools/list", json!({ "_meta": { "dev.heapstead/session": {} } }), "invalid_parameter"),
    ];
    cases.map(|(method, params, code)| (modern(request(method, params), json!({})), code)).into()
}

/// Texts that are not JSON-RPC messages.
const INVALID_TEXTS: [&str; 6] = [
    "nonsense",
    "{",
    r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0"}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
    r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
];

#[tokio::test]
async fn over_stdio() {
    let mut client = Stdio::start(&Folders::new(), &[]);
    let mut incomplete = initialize(LEGACY);
    incomplete["params"]["clientInfo"] = Value::Null;
    has_code(&client.answer(&incomplete).await, "invalid_parameter");
    // Answered by rmcp before there is a handler.
    has_code(&client.ask("tools/list", json!({ "_meta": { VERSION_KEY: "2026-07-28" } })).await, "invalid_parameter");
    let mut unsupported = modern(request("tools/list", json!({})), json!({}));
    unsupported["params"]["_meta"][VERSION_KEY] = "2099-01-01".into();
    has_code(&client.answer(&unsupported).await, "unsupported_protocol_version");

    let mut client = Stdio::connect(&Folders::new(), LEGACY, &[]).await;
    for text in INVALID_TEXTS {
        client.send(text).await;
        has_code(&client.receive().await.expect("an error"), "invalid_request");
    }
    client.send(&"x".repeat((100 << 20) + 1)).await;
    has_code(&client.receive().await.expect("an error"), "too_large");
    for (message, code) in legacy_cases() {
        has_code(&client.answer(&message).await, code);
    }
    let slow = request("tools/call", json!({ "name": "run_js", "arguments": { "code": "await new Promise(() => {})", "wait_secs": 60 } }));
    client.send(&slow.to_string()).await;
    client.send(&slow.to_string()).await;
    has_code(&client.receive().await.expect("an error"), "invalid_request");

    let mut client = Stdio::start(&Folders::new(), &[]);
    for (message, code) in modern_cases() {
        has_code(&client.answer(&message).await, code);
    }
}

#[tokio::test]
async fn over_stdio_without_state() {
    let mut client = Stdio::connect(&Folders::new(), LEGACY, &["--stateless"]).await;
    for (method, params, code) in [
        ("sessions/create", json!({}), "method_not_found"),
        ("resources/list", json!({}), "method_not_found"),
        ("resources/subscribe", json!({ "uri": "heapstead://executions/x" }), "method_not_found"),
        ("logging/setLevel", json!({ "level": "info" }), "method_not_found"),
        ("messages/listen", json!({}), "method_not_found"),
        ("tasks/get", json!({ "taskId": "x" }), "method_not_found"),
        ("tools/list", json!({ "_meta": { SESSION: { "sessionId": "x" } } }), "invalid_parameter"),
    ] {
        has_code(&client.ask(method, params).await, code);
    }
}

#[tokio::test]
async fn over_streamable_http() {
    let server = Server::start();
    let client = Http::connect(&server, LEGACY, &[]).await;
    for (message, code) in legacy_cases() {
        has_code(&client.all(&message).await.pop().expect("an answer"), code);
    }
    let client = Http::modern(&server, &[]);
    for (message, code) in modern_cases() {
        has_code(&client.all(&message).await.pop().expect("an answer"), code);
    }
    // Without a connection, in a session that does not exist.
    let mut unconnected = Http::connect(&server, LEGACY, &[]).await;
    unconnected.connection = None;
    for (method, code) in [("tools/list", "session_not_found"), ("prompts/get", "method_not_found")] {
        let params = json!({ "name": "x", "_meta": { SESSION: { "sessionId": "x" } } });
        has_code(&unconnected.ask(method, params).await, code);
    }

    let post = |headers: &[(&str, &str)], body: String| {
        let post = server.client.post(&client.url).header("accept", "application/json, text/event-stream").body(body);
        let post = post.header("content-type", "application/json");
        let post = headers.iter().fold(post, |post, (name, value)| post.header(*name, *value));
        async move { post.send().await.expect("an answer").json::<Value>().await.expect("JSON") }
    };
    for text in INVALID_TEXTS {
        has_code(&post(&[], text.into()).await, "invalid_request");
    }
    let mut incomplete = initialize(LEGACY);
    incomplete["params"]["clientInfo"] = Value::Null;
    has_code(&post(&[], incomplete.to_string()).await, "invalid_parameter");
    // Header and body disagree, in the ways that rmcp itself refuses.
    let list = modern(request("tools/list", json!({})), json!({})).to_string();
    has_code(&post(&[("mcp-protocol-version", LEGACY), ("mcp-method", "tools/list")], list.clone()).await, "invalid_request");
    has_code(&post(&[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call")], list).await, "invalid_request");
    let version = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    let incomplete = request("tools/list", json!({ "_meta": { VERSION_KEY: "2026-07-28" } }));
    has_code(&post(&version, incomplete.to_string()).await, "invalid_parameter");
    let mut unsupported = modern(request("tools/list", json!({})), json!({}));
    unsupported["params"]["_meta"][VERSION_KEY] = "2099-01-01".into();
    let version = [("mcp-protocol-version", "2099-01-01"), ("mcp-method", "tools/list")];
    has_code(&post(&version, unsupported.to_string()).await, "unsupported_protocol_version");
    let foreign = request("tools/list", json!({ "_meta": { SESSION: { "sessionId": "x" } } }));
    has_code(&post(&[("mcp-session-id", "y")], foreign.to_string()).await, "invalid_request");
}

#[tokio::test]
async fn over_sse() {
    let server = Server::start_with(&Folders::new(), &["--sse-port", "0"]);
    let mut client = Sse::open(&server).await;
    client.initialize(LEGACY).await;
    for (message, code) in legacy_cases() {
        assert_eq!(client.post(&message, &[]).await, 202);
        has_code(&client.answer_to(&message["id"]).await, code);
    }
}

/// Regression: rmcp refused these with a plain text or an empty body.
#[tokio::test]
async fn http_errors_are_problem_documents() {
    let server = Server::start();
    let client = Http::connect(&server, LEGACY, &[]).await;
    let connection = client.connection.as_deref().expect("a connection");
    const BOTH: &str = "application/json, text/event-stream";
    const JSON: &str = "application/json";
    let ping = request("ping", json!({})).to_string();
    for (method, headers, body, status, code) in [
        (Method::POST, vec![("accept", BOTH), ("content-type", JSON)], ping.as_str(), 400, "invalid_request"),
        (Method::POST, vec![("accept", BOTH), ("content-type", JSON), ("mcp-session-id", "lost")], &ping, 404, "not_found"),
        (Method::POST, vec![("accept", BOTH), ("content-type", "text/plain")], &ping, 415, "invalid_request"),
        (Method::POST, vec![("accept", JSON), ("content-type", JSON), ("mcp-session-id", connection)], &ping, 406, "invalid_request"),
        (
            Method::POST,
            vec![("accept", BOTH), ("content-type", JSON), ("mcp-session-id", connection), ("mcp-protocol-version", "1999-01-01")],
            &ping,
            400,
            "invalid_request",
        ),
        (Method::GET, vec![("accept", JSON), ("mcp-session-id", connection)], "", 406, "invalid_request"),
        (Method::GET, vec![("accept", BOTH)], "", 400, "invalid_request"),
        (Method::GET, vec![("accept", BOTH), ("mcp-session-id", "lost")], "", 404, "not_found"),
        (Method::GET, vec![("accept", BOTH), ("mcp-session-id", connection), ("last-event-id", "listen.x")], "", 400, "invalid_request"),
        (Method::DELETE, vec![], "", 400, "invalid_request"),
        (Method::PUT, vec![], "", 405, "invalid_request"),
    ] {
        let shown = format!("{method} {headers:?}");
        let call = server.client.request(method, &client.url).body(body.to_owned());
        let call = headers.into_iter().fold(call, |call, (name, value)| call.header(name, value));
        let response = call.send().await.expect("an answer");
        assert_eq!(response.status(), status, "{shown}");
        assert_eq!(response.headers()["content-type"], "application/problem+json", "{shown}");
        assert_eq!(response.headers().contains_key("allow"), status == 405, "{shown}");
        let problem: Value = response.json().await.expect("JSON");
        assert_eq!(problem["type"], format!("urn:heapstead:error:{code}"), "{shown}: {problem}");
        assert_eq!(problem["status"], status, "{shown}: {problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{shown}: {problem}");
    }
}
