//! The server records every call in a session: once, after it ended, truncated and masked.

use crate::fixture::{Folders, Server};
use crate::peer::{Http, result};
use crate::{calls, context_when, recent, run_in};
use serde_json::{Value, json};

#[tokio::test]
async fn a_run_is_recorded_with_its_result_and_without_secrets() {
    let server = Server::start();
    run_in(&server, "a", "6 * 7").await;
    run_in(&server, "a", "throw new TypeError('no whales')").await;
    run_in(&server, "a", "const api_key = 'sk-proj-abcdefghijklmnop1234567890'; 1").await;
    let context = context_when(&server, "a", |context| calls(context) == 3).await;
    let recorded = recent(&context);
    assert_eq!(
        (&recorded[0]["tool"], &recorded[0]["args"]["code"], &recorded[0]["result_summary"]),
        (&json!("run_js"), &json!("6 * 7"), &json!("42"))
    );
    let failed = recorded[1]["result_summary"].as_str().expect("a summary");
    assert!(failed.starts_with("Failed:") && failed.contains("no whales"), "{failed}");
    assert!(!context.to_string().contains("abcdefghijklmnop"), "{context:#}");
    assert!(recorded.windows(2).all(|pair| pair[0]["called_at"].as_str() <= pair[1]["called_at"].as_str()), "{context:#}");
}

#[tokio::test]
async fn an_asynchronous_run_is_recorded_once_when_it_ends_and_polling_is_not() {
    let server = Server::start();
    let code = "await new Promise(done => setTimeout(done, 400)); 'done at last'";
    let (_, begun) = server.post("/api/exec", json!({ "code": code, "session": "a" })).await;
    let id = begun["execution_id"].as_str().expect("an id");
    // Nothing is recorded before it has ended.
    assert_eq!(calls(&server.get("/api/context?session=a").await.1), 0);
    let client = Http::connect(&server, "2025-11-25", &[("x-mcp-session-id", "a")]).await;
    for _ in 0..3 {
        client.call("get_execution", json!({ "execution_id": id })).await;
        client.call("get_execution_output", json!({ "execution_id": id })).await;
    }
    client.call("get_execution", json!({ "execution_id": id, "wait_secs": 30 })).await;
    client.call("context_check", json!({ "query": "x" })).await;
    client.call("health_check", json!({})).await;
    let context = context_when(&server, "a", |context| calls(context) > 0).await;
    assert_eq!(recent(&context).len(), 1, "{context:#}");
    assert_eq!(recent(&context)[0]["result_summary"], "\"done at last\"");
    // Waiting for the same run twice, and once with progress, adds no second entry.
    client
        .ask("tools/call", json!({ "name": "run_js", "arguments": { "code": "2", "wait_secs": 30 }, "_meta": { "progressToken": 1 } }))
        .await;
    client.call("list_executions", json!({})).await;
    let context = context_when(&server, "a", |context| calls(context) >= 3).await;
    let tools: Vec<Value> = recent(&context).iter().map(|call| call["tool"].clone()).collect();
    assert_eq!(tools, [json!("run_js"), json!("run_js"), json!("list_executions")], "{context:#}");
}

/// Regression: recording a refused run made its new name a session, which counted in the quota of its owner.
#[tokio::test]
async fn a_refused_run_does_not_make_its_name_a_session() {
    let server = Server::start();
    let (status, refused) = server.post("/api/exec", json!({ "code": "", "session": "new" })).await;
    assert_eq!(status, 400, "{refused}");
    let (status, refused) =
        server.post("/api/exec", json!({ "code": "1", "session": "new", "heap": "0".repeat(64), "on_missing_heap": "fail" })).await;
    assert_eq!(status, 404, "{refused}");
    // Calls are recorded in order.
    run_in(&server, "other", "1").await;
    context_when(&server, "other", |context| calls(context) == 1).await;
    assert_eq!(server.delete("/api/sessions/new").await.0, 404);
    assert_eq!(server.delete("/api/sessions/other").await.0, 200);
}

#[tokio::test]
async fn at_fifteen_calls_all_but_the_newest_ten_are_summarised() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[("x-mcp-session-id", "w")]).await;
    for limit in 1..=15 {
        client.call("list_executions", json!({ "limit": limit })).await;
    }
    let context = context_when(&server, "w", |context| calls(context) == 15).await;
    assert_eq!((recent(&context).len(), &context["window_start_index"]), (10, &json!(5)));
    let limits: Vec<Value> = recent(&context).iter().map(|call| call["args"]["limit"].clone()).collect();
    assert_eq!(limits, (6..=15).map(Value::from).collect::<Vec<_>>());
    let summary = context["summary_before_window"].as_str().expect("a summary");
    assert!(summary.starts_with("Summary of 5 earlier tool calls ("), "{summary}");
    assert!(summary.contains("\n  - list_executions: called 5 times"), "{summary}");
}

#[tokio::test]
async fn an_unnamed_connection_has_its_own_context_under_a_hidden_id() {
    let server = Server::start();
    let (first, second) = (Http::connect(&server, "2025-11-25", &[]).await, Http::connect(&server, "2025-11-25", &[]).await);
    first.call("context_set", json!({ "custom": { "whose": "first" } })).await;
    second.call("context_set", json!({ "custom": { "whose": "second" } })).await;
    for (client, whose) in [(&first, "first"), (&second, "second")] {
        let context = client.call("context_get", json!({})).await["structuredContent"].clone();
        assert_eq!((&context["custom"]["whose"], &context["session_id"]), (&json!(whose), &Value::Null), "{context:#}");
    }
    let cleared = first.call("context_clear", json!({})).await["structuredContent"].clone();
    assert_eq!((&cleared["status"], &cleared["session_id"]), (&json!("cleared"), &Value::Null));
    // Without a connection or session, a call has no conversation.
    let alone = Http::modern(&server, &[]).ask("tools/call", json!({ "name": "context_get", "arguments": {} })).await;
    assert_eq!(alone["error"]["code"], -31044, "{alone}");
    assert_eq!(server.get("/api/context").await.0, 400);
}

#[tokio::test]
async fn the_context_is_removed_when_its_session_ends() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let (_, session) = server.post("/api/sessions", json!({})).await;
    let id = session["session_id"].as_str().expect("an id");
    run_in(&server, id, "1").await;
    let context = context_when(&server, id, |context| calls(context) == 1).await;
    assert_eq!(context["session_id"], id);
    // A run that ends after its session must not bring the context back.
    server.post("/api/exec", json!({ "code": "await new Promise(() => setTimeout(() => {}, 20000))", "session": id })).await;
    assert_eq!(server.delete(&format!("/api/sessions/{id}")).await.0, 200);
    assert_eq!(server.get(&format!("/api/context?session={id}")).await.0, 410);
    run_in(&server, "other", "1").await;
    context_when(&server, "other", |context| calls(context) == 1).await;
    assert_eq!(server.terminate(), Some(0));
    let bytes = std::fs::read(folders.database().join("context.db")).expect("the database");
    let database = rusqlite::Connection::open(folders.database().join("context.db")).expect("opened");
    let kept: i64 = database.query_row("SELECT count(*) FROM context_records", [], |row| row.get(0)).expect("a count");
    assert_eq!(kept, 1, "only the other context is stored: {} bytes", bytes.len());
}

#[tokio::test]
async fn a_data_layer_session_is_the_context_of_calls_sent_in_it() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let session = result(client.ask("sessions/create", json!({})).await)["session"]["sessionId"].clone();
    let meta = json!({ "io.modelcontextprotocol/session": { "sessionId": session } });
    let call = json!({ "name": "run_js", "arguments": { "code": "'inside'", "wait_secs": 30 }, "_meta": meta });
    result(client.ask("tools/call", call).await);
    let context = context_when(&server, session.as_str().expect("an id"), |context| calls(context) == 1).await;
    assert_eq!(recent(&context)[0]["result_summary"], "\"inside\"");
    let own = client.call("context_get", json!({})).await["structuredContent"].clone();
    assert_eq!(calls(&own), 0, "the connection's own context has no calls: {own:#}");
}

#[tokio::test]
async fn without_a_store_nothing_is_recorded_and_there_are_no_context_tools() {
    let server = Server::start_with(&Folders::new(), &["--context-store", "none"]);
    run_in(&server, "a", "1").await;
    assert_eq!(server.get("/api/context?session=a").await.0, 404);
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let tools = result(client.ask("tools/list", json!({})).await)["tools"].to_string();
    assert!(!tools.contains("context_get"), "{tools}");
    assert_eq!(server.get("/api/health").await.1["context_store"]["backend"], "none");
}

#[tokio::test]
async fn a_refused_call_under_an_alias_is_recorded() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[("x-mcp-session-id", "r")]).await;
    assert_eq!(client.call("plasm_context", json!({ "intent": "x" })).await["isError"], true);
    let context = context_when(&server, "r", |context| calls(context) == 1).await;
    let call = &recent(&context)[0];
    assert_eq!((&call["tool"], &call["args"]), (&json!("session_context"), &json!({ "intent": "x" })), "{context:#}");
    assert!(call["result_summary"].as_str().is_some_and(|text| text.contains("`seeds` is missing")), "{context:#}");
}
