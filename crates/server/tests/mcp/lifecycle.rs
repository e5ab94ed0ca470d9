//! Every protocol version on every transport that it supports.

use crate::fixture::{Folders, Server};
use crate::peer::{Http, MODERN, Sse, Stdio, initialize, modern, request, result};
use serde_json::{Value, json};

const WITH_INITIALIZE: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn is_introduced(answer: &Value) {
    assert_eq!(answer["serverInfo"]["name"], "heapstead");
    assert_eq!(answer["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(answer["instructions"].as_str().is_some_and(|text| text.contains("run_js")), "{answer}");
    assert_eq!(answer["capabilities"]["tools"], json!({}));
    assert_eq!(answer["capabilities"]["resources"], json!({ "subscribe": true }));
}

fn is_two(answer: &Value) {
    assert_eq!(answer["structuredContent"]["result"], "2", "{answer}");
}

#[tokio::test]
async fn every_version_over_streamable_http() {
    let server = Server::start();
    for version in WITH_INITIALIZE {
        let client = Http::connect(&server, version, &[]).await;
        let answer = client.call("run_js", json!({ "code": "1 + 1", "wait_secs": 60 })).await;
        is_two(&answer);
        assert!(answer.get("resultType").is_none(), "older clients know no kinds of results: {answer}");
        assert_eq!(result(client.ask("ping", json!({})).await), json!({}));
    }
    let client = Http::modern(&server, &[]);
    let discovered = result(client.ask("server/discover", json!({})).await);
    assert_eq!(discovered["supportedVersions"].as_array().map(Vec::len), Some(5), "{discovered}");
    assert!(discovered["instructions"].as_str().is_some_and(|text| text.contains("run_js")), "{discovered}");
    let answer = client.call("run_js", json!({ "code": "1 + 1", "wait_secs": 60 })).await;
    is_two(&answer);
    assert_eq!(answer["resultType"], "complete");
}

#[tokio::test]
async fn every_version_over_stdio() {
    for version in WITH_INITIALIZE {
        let mut client = Stdio::start(&Folders::new(), &[]);
        let answer = result(client.answer(&initialize(version)).await);
        assert_eq!(answer["protocolVersion"], version);
        is_introduced(&answer);
        is_two(&client.call("run_js", json!({ "code": "1 + 1", "wait_secs": 60 })).await);
        assert_eq!(client.leave().await, Some(0));
    }
    let mut client = Stdio::start(&Folders::new(), &[]);
    let ask = |method: &str, params: Value| modern(request(method, params), json!({}));
    result(client.answer(&ask("server/discover", json!({}))).await);
    is_two(&result(
        client.answer(&ask("tools/call", json!({ "name": "run_js", "arguments": { "code": "1 + 1", "wait_secs": 60 } }))).await,
    ));
    assert_eq!(client.leave().await, Some(0));
}

#[tokio::test]
async fn every_version_over_sse() {
    let server = Server::start_with(&Folders::new(), &["--sse-port", "0"]);
    for version in WITH_INITIALIZE {
        let mut client = Sse::open(&server).await;
        assert!(client.endpoint.starts_with("/message?sessionId="), "{}", client.endpoint);
        let hello = initialize(version);
        assert_eq!(client.post(&hello, &[]).await, 202);
        let answer = result(client.answer_to(&hello["id"]).await);
        assert_eq!(answer["protocolVersion"], version);
        is_introduced(&answer);
        is_two(&result(client.ask("tools/call", json!({ "name": "run_js", "arguments": { "code": "1 + 1", "wait_secs": 60 } })).await));
    }
}

#[tokio::test]
async fn an_unknown_version_is_negotiated_to_a_supported_one() {
    let server = Server::start();
    let client = Http::modern(&server, &[]);
    for (asked, answered) in [("1999-01-01", "2025-11-25"), (MODERN, "2025-11-25"), ("2024-11-05", "2024-11-05")] {
        let answer = client.all(&initialize(asked)).await.pop().expect("an answer");
        assert_eq!(result(answer)["protocolVersion"], answered);
    }
    let mut message = modern(request("tools/list", json!({})), json!({}));
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01".into();
    let response = server
        .client
        .post(&client.url)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2099-01-01");
    let response = response.header("mcp-method", "tools/list").json(&message).send().await.expect("an answer");
    assert_eq!(response.status(), 400);
    let answer: Value = response.json().await.expect("JSON");
    assert_eq!(answer["error"]["data"]["supported"].as_array().map(Vec::len), Some(5), "{answer}");
}

#[tokio::test]
async fn delete_closes_a_connection() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let connection = client.connection.clone().expect("a connection");
    let delete = || server.client.delete(&client.url).header("mcp-session-id", &connection).send();
    assert_eq!(delete().await.expect("an answer").status(), 204);
    assert_eq!(client.send(&request("tools/list", json!({}))).await.status(), 404);
    assert_eq!(server.client.put(&client.url).send().await.expect("an answer").status(), 405);
}

/// Regression: an `initialize` without `clientInfo` got an error about a session id over HTTP, and about `_meta` over stdio.
#[tokio::test]
async fn an_incomplete_initialize_is_refused_with_the_missing_field() {
    let without = |name: &str| {
        let mut message = initialize("2025-11-25");
        message["params"].as_object_mut().expect("params").remove(name);
        message
    };
    let names = |answer: &Value, message: &Value, name: &str| {
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32602), &message["id"]), "{name}: {answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains(&format!("`{name}` is missing"))), "{answer}");
    };
    let server = Server::start();
    let sse_server = Server::start_with(&Folders::new(), &["--sse-port", "0"]);
    let mut sse = Sse::open(&sse_server).await;
    let mut stdio = Stdio::start(&Folders::new(), &[]);
    for name in ["protocolVersion", "capabilities", "clientInfo"] {
        let message = without(name);
        let response = Http::modern(&server, &[]).send(&message).await;
        assert_eq!(response.status(), 400, "{name}");
        names(&response.json().await.expect("JSON"), &message, name);
        names(&stdio.answer(&message).await, &message, name);
        let url = format!("{}{}", sse_server.url, sse.endpoint);
        let response = sse_server.client.post(url).json(&message).send().await.expect("an answer");
        assert_eq!(response.status(), 400, "{name}");
        names(&response.json().await.expect("JSON"), &message, name);
    }
    // The connection stays open and accepts a valid one.
    is_introduced(&result(stdio.answer(&initialize("2025-11-25")).await));
    sse.initialize("2025-11-25").await;
}
