//! A connection belongs to its owner: any other caller that names it gets exactly the response for an unknown connection.

use crate::fixture::Server;
use crate::peer::{Http, Sse, initialize, messages, request};
use crate::tokens::TokenFile;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The whole response except its date.
async fn whole(response: Response) -> (u16, BTreeMap<String, String>, String) {
    let status = response.status().as_u16();
    let headers = response.headers().iter().filter(|(name, _)| *name != "date");
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned())).collect();
    (status, headers, response.text().await.expect("a body"))
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[tokio::test]
async fn only_its_owner_can_use_a_connection() {
    let file = TokenFile::new();
    let ((ann_id, ann), (_, bob)) = (file.add("acme/ann", &[]), file.add("acme/bob", &[]));
    let (_, anns_other) = file.add("acme/ann", &[]);
    let server = file.server(&[]);
    for version in ["2025-03-26", "2025-11-25"] {
        let connection = Http::connect(&server, version, &[("authorization", &bearer(&ann))]).await;
        let ours = connection.connection.clone().expect("a connection");
        let ask = async |method: Method, id: &str, token: &str, body: Option<Value>| {
            let asked = server.client.request(method, format!("{}/mcp", server.url)).bearer_auth(token).header("mcp-session-id", id);
            let asked = asked.header("accept", "application/json, text/event-stream").header("mcp-protocol-version", version);
            match body {
                Some(body) => asked.json(&body).send().await.expect("an answer"),
                None => asked.send().await.expect("an answer"),
            }
        };
        let tools = || Some(request("tools/list", json!({})));
        // Another token of the same owner works too.
        assert_eq!(ask(Method::POST, &ours, &anns_other, tools()).await.status(), 200);
        let unknown = "00000000-0000-4000-8000-000000000000";
        for (method, body) in [
            (Method::POST, tools()),
            (Method::POST, Some(json!({ "jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {} }))),
            (Method::POST, Some(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))),
            (Method::POST, Some(json!([{ "jsonrpc": "2.0", "id": 7, "method": "ping" }]))),
            (Method::POST, Some(json!({ "jsonrpc": "2.0" }))),
            (Method::GET, None),
            (Method::DELETE, None),
        ] {
            let foreign = whole(ask(method.clone(), &ours, &bob, body.clone()).await).await;
            let missing = whole(ask(method.clone(), unknown, &bob, body.clone()).await).await;
            assert_eq!(foreign, missing, "{method} {body:?}");
            assert_ne!(foreign.0, 200, "{method} {body:?}");
        }
        assert_eq!(whole(ask(Method::POST, &ours, &bob, tools()).await).await.0, 404);
        // The connection still exists and still belongs to its owner.
        assert_eq!(ask(Method::POST, &ours, &ann, tools()).await.status(), 200);
        assert_eq!(ask(Method::POST, &ours, "wrong", tools()).await.status(), 401);
    }
    // An open connection does not authorise requests by itself.
    let connection = Http::connect(&server, "2025-11-25", &[("authorization", &bearer(&ann))]).await;
    assert_eq!(file.auth(&["revoke", &ann_id]).code, Some(0));
    assert_eq!(connection.send(&request("tools/list", json!({}))).await.status(), 401);
}

/// Pending request ids are separate per owner, so that two owners do not collide.
#[tokio::test]
async fn pending_requests_are_not_visible_to_other_owners() {
    let file = TokenFile::new();
    let ((_, ann), (_, bob)) = (file.add("acme/ann", &[]), file.add("acme/bob", &[]));
    let server = file.server(&[]);
    let connection = Http::connect(&server, "2025-11-25", &[("authorization", &bearer(&ann))]).await;
    let mut foreign = connection.clone();
    foreign.headers = vec![("authorization", bearer(&bob))];
    let started = connection.call("run_js", json!({ "code": "await new Promise(() => setInterval(() => {}, 1e6))" })).await;
    let id = started["structuredContent"]["execution_id"].clone();
    let mut waiting = request("tools/call", json!({ "name": "get_execution", "arguments": { "execution_id": id, "wait_secs": 60 } }));
    waiting["id"] = json!(4711);
    // A stream that carries the response later.
    let waits = connection.send(&waiting).await;
    assert_eq!(connection.send(&waiting).await.status(), 400, "the id is taken");
    assert_eq!(foreign.send(&waiting).await.status(), 404);
    connection.call("cancel_execution", json!({ "execution_id": id })).await;
    assert_eq!(messages(waits).await.pop().expect("a message")["id"], 4711);
}

#[tokio::test]
async fn only_its_owner_can_post_to_an_sse_connection() {
    let file = TokenFile::new();
    let ((_, ann), (_, bob)) = (file.add("acme/ann", &[]), file.add("acme/bob", &[]));
    let server = file.server(&["--sse-port", "0"]);
    let mut sse = Sse::open_with(&server, &[("authorization", &bearer(&ann))]).await;
    let send = async |endpoint: &str, token: &str, message: &Value| {
        let sent = server.client.post(format!("{}{endpoint}", server.url)).bearer_auth(token).json(message).send().await;
        whole(sent.expect("an answer")).await
    };
    let hello = initialize("2024-11-05");
    let foreign = send(&sse.endpoint, &bob, &hello).await;
    assert_eq!(foreign, send("/message?sessionId=00000000000000000000000000000000", &bob, &hello).await);
    assert_eq!(foreign.0, 404);
    assert_eq!(send(&sse.endpoint, "wrong", &hello).await.0, 401);
    assert_eq!(send(&sse.endpoint, &ann, &hello).await.0, 202);
    assert_eq!(sse.answer_to(&hello["id"]).await["result"]["serverInfo"]["name"], "heapstead");
}

/// The lane of the queue is that of the owner, however many connections it opens.
#[tokio::test]
async fn an_owner_has_one_lane_for_all_its_connections() {
    let file = TokenFile::new();
    let ((_, ann), (_, bob)) = (file.add("acme/ann", &[]), file.add("acme/bob", &[]));
    let server = file.server(&["--max-concurrent-executions", "1"]);
    let run = async |server: &Server, token: &str, code: &str| {
        let client = Http::connect(server, "2025-11-25", &[("authorization", &bearer(token))]).await;
        client.call("run_js", json!({ "code": code })).await["structuredContent"]["execution_id"].clone()
    };
    let blocked = run(&server, &ann, "await new Promise(done => setTimeout(done, 1000))").await;
    let mut anns = Vec::new();
    for _ in 0..8 {
        anns.push(run(&server, &ann, "1").await);
    }
    let bobs = run(&server, &bob, "1").await;
    let ended = async |id: &Value, token: &str| {
        let path = format!("{}/api/executions/{}?wait_secs=60", server.url, id.as_str().expect("an id"));
        let record: Value = server.client.get(path).bearer_auth(token).send().await.expect("an answer").json().await.expect("JSON");
        record["completed_at"].as_str().unwrap_or_else(|| panic!("{record}")).to_owned()
    };
    ended(&blocked, &ann).await;
    let (bobs, mut before) = (ended(&bobs, &bob).await, 0);
    for id in &anns {
        before += usize::from(ended(id, &ann).await < bobs);
    }
    assert!(before <= 1, "{before} of eight runs ended before the run of the other owner");
}
