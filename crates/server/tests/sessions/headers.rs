//! A session id in `Mcp-Session-Id`, where other clients send their connection id.

use crate::client::{Client, LEGACY, LEGACY_KEY, MODERN_KEY, code};
use crate::fixture::Server;
use crate::peer::{Http, messages, request, result};
use serde_json::{Value, json};

/// A client without a connection that sends this header.
async fn mirroring(server: &Server, header: Option<&str>) -> Http {
    let mut http = Http::connect(server, LEGACY, &[]).await;
    http.connection = header.map(str::to_owned);
    http
}

fn run_in(session: &Value, code: &str) -> Value {
    request("tools/call", json!({ "name": "run_js", "arguments": { "code": code, "wait_secs": 60 }, "_meta": { LEGACY_KEY: session } }))
}

#[tokio::test]
async fn a_mirrored_session_id_is_not_a_connection() {
    let server = Server::start();
    let session = Client::http(&server).await.create().await;
    let id = session["sessionId"].as_str();
    for header in [id, None] {
        let http = mirroring(&server, header).await;
        let answer = result(http.all(&run_in(&session, "typeof n")).await.pop().expect("an answer"));
        assert_eq!(answer["structuredContent"]["status"], "completed", "{header:?}");
        assert!(answer["_meta"][LEGACY_KEY]["state"].is_string());
        assert!(http.send(&run_in(&session, "1")).await.headers().get("mcp-session-id").is_none(), "it opens none either");
    }
}

#[tokio::test]
async fn malformed_session_metadata_is_refused_without_a_connection_too() {
    let server = Server::start();
    for header in [None, Some("x")] {
        let http = mirroring(&server, header).await;
        for bad in [json!({}), json!(null), json!("x"), json!({ "sessionId": 5 })] {
            let answer = http.all(&run_in(&bad, "1")).await.pop().expect("an answer");
            assert_eq!(code(&answer), -32602, "{header:?} {bad}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_connection_and_metadata_with_different_sessions_are_refused() {
    let server = Server::start();
    let mut other = Client::http(&server).await;
    let (one, two) = (other.create().await, other.create().await);
    let id = one["sessionId"].as_str().expect("an id");
    let http = Http::connect(&server, LEGACY, &[("x-mcp-session-id", id)]).await;
    let answer = result(http.all(&run_in(&two, "1")).await.pop().expect("an answer"));
    let text = answer["content"][0]["text"].as_str().expect("text");
    assert!(answer["isError"] == true && text.contains("names two sessions"), "{answer}");
    assert_eq!(result(http.all(&run_in(&one, "1 + 1")).await.pop().expect("an answer"))["structuredContent"]["result"], "2");
    let fork = http.call("session_fork", json!({ "session": two["sessionId"] })).await;
    assert!(
        fork["isError"] == true && fork["content"][0]["text"].as_str().is_some_and(|text| text.contains("names two sessions")),
        "{fork}"
    );
}

#[tokio::test]
async fn stock_clients_send_their_connection_id_too() {
    let server = Server::start();
    let http = Http::connect(&server, LEGACY, &[]).await;
    let session = result(http.ask("sessions/create", json!({})).await)["session"].clone();
    result(http.all(&run_in(&session, "1")).await.pop().expect("an answer"));
}

#[tokio::test]
async fn initialize_may_name_a_session() {
    let server = Server::start();
    let session = Client::http(&server).await.create().await;
    let mut hello = crate::peer::initialize(LEGACY);
    hello["params"]["_meta"][LEGACY_KEY] = session;
    let id = hello["params"]["_meta"][LEGACY_KEY]["sessionId"].as_str().expect("an id").to_owned();
    for headers in [vec![], vec![("mcp-session-id", id.as_str())]] {
        let response = Http::modern(&server, &headers).send(&hello).await;
        assert_eq!(response.status(), 200);
        let connection = response.headers().get("mcp-session-id").expect("it has a connection");
        assert_ne!(connection.to_str().expect("text"), id);
    }
    let response = Http::modern(&server, &[("mcp-session-id", "another")]).send(&hello).await;
    assert_eq!(response.status(), 400, "and not in two");
}

#[tokio::test]
async fn since_2026_07_28_only_the_mirrored_id_is_accepted() {
    let server = Server::start();
    let mut client = Client::modern(&server);
    let (session, other) = (client.create().await, client.create().await);
    let [id, other] = [&session, &other].map(|session| session["sessionId"].as_str().expect("an id"));
    for key in [MODERN_KEY, LEGACY_KEY] {
        let list = request("tools/list", json!({ "_meta": { key: session } }));
        assert_eq!(Http::modern(&server, &[("mcp-session-id", id)]).send(&list).await.status(), 200, "{key}");
        let response = Http::modern(&server, &[("mcp-session-id", other)]).send(&list).await;
        assert_eq!(response.status(), 400, "{key}");
        assert_eq!(code(&messages(response).await.pop().expect("an answer")), -32600, "{key}");
    }
}

#[tokio::test]
async fn any_other_id_in_the_header_is_refused() {
    let server = Server::start();
    let mut client = Client::http(&server).await;
    let (session, other) = (client.create().await, client.create().await);
    let other = other["sessionId"].as_str().expect("an id");
    for header in [other, "x", "00000000-0000-4000-8000-000000000000", &"x".repeat(5000)] {
        let response = mirroring(&server, Some(header)).await.send(&run_in(&session, "1")).await;
        assert_eq!(response.status(), 400, "{header}");
        let answer = messages(response).await.pop().expect("an answer");
        assert_eq!(code(&answer), -32600, "{answer}");
    }
}

#[tokio::test]
async fn a_session_id_only_in_the_header_is_an_unknown_connection() {
    let server = Server::start();
    let session = Client::http(&server).await.create().await;
    let http = mirroring(&server, session["sessionId"].as_str()).await;
    assert_eq!(http.send(&request("tools/list", json!({}))).await.status(), 404);
    let get = http
        .client
        .get(&http.url)
        .header("accept", "text/event-stream")
        .header("mcp-session-id", session["sessionId"].as_str().expect("an id"));
    assert_eq!(get.send().await.expect("an answer").status(), 404);
}

#[tokio::test]
async fn malformed_session_ids_are_refused_in_the_header_and_in_metadata() {
    let server = Server::start();
    let long = "x".repeat(300);
    let http = mirroring(&server, Some(&long)).await;
    let answer = http.all(&run_in(&json!({ "sessionId": long }), "1")).await.pop().expect("an answer");
    assert_eq!(code(&answer), -32602, "{answer}");
    for bad in ["a\u{1}", "a\tb", "a\r\nx: y"] {
        let http = mirroring(&server, None).await;
        let answer = http.all(&run_in(&json!({ "sessionId": bad }), "1")).await.pop().expect("an answer");
        assert_eq!(code(&answer), -32602, "{answer}");
    }
}
