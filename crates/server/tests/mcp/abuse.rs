//! Invalid and hostile MCP clients: the right error, and nothing worse.

use crate::fixture::{Folders, Server};
use crate::peer::{Http, Sse, Stdio, initialize, request, result};
use serde_json::{Value, json};
use std::time::Duration;

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";

async fn post(server: &Server, path: &str, kind: &str, body: impl Into<reqwest::Body>) -> (u16, Value) {
    let post = server.client.post(format!("{}{path}", server.url)).header("accept", "application/json, text/event-stream");
    let response = post.header("content-type", kind).body(body).send().await.expect("an answer");
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.expect("a body")).unwrap_or_default())
}

/// Invalid bodies, refused the same way on both transports.
async fn refuses_bad_bodies(server: &Server, path: &str) {
    let deep = format!("{}{}", r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"#, r#"{"a":"#.repeat(100_000));
    let cases: [(&str, Vec<u8>, u16, i64); 10] = [
        (JSON, b"".into(), 400, -32700),
        (JSON, b"{".into(), 400, -32700),
        (JSON, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xffng\"}".into(), 400, -32700),
        (JSON, deep.into(), 400, -32700),
        (JSON, br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#.into(), 400, -32700),
        (JSON, br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#.into(), 400, -32600),
        (JSON, br#"{"id":1,"method":"ping"}"#.into(), 400, -32600),
        (JSON, br#"{"jsonrpc":"2.0"}"#.into(), 400, -32600),
        (JSON, br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#.into(), 400, -32600),
        (TEXT, br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.into(), 415, 0),
    ];
    for (kind, body, status, code) in cases {
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        let (answered, answer) = post(server, path, kind, body).await;
        assert_eq!(answered, status, "{shown}: {answer}");
        assert_eq!(answer["error"]["code"].as_i64().unwrap_or_default(), code, "{shown}: {answer}");
    }
    // An endless body is refused once it is too long, and a declared one immediately.
    let endless = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 1 << 20]));
    let post = server
        .client
        .post(format!("{}{path}", server.url))
        .header("content-type", JSON)
        .header("accept", "application/json, text/event-stream");
    match post.body(reqwest::Body::wrap_stream(endless)).send().await {
        Ok(response) => assert_eq!(response.status(), 413),
        // The server stopped reading before the client stopped writing.
        Err(error) => assert!(error.is_request() || error.is_body(), "{error}"),
    }
}

/// Hosts and origins that the operator did not allow.
async fn refuses_strangers(server: &Server, method: reqwest::Method, path: &str) {
    for (header, value) in [("host", "evil.example"), ("host", "evil.example:8420"), ("origin", "http://evil.example"), ("origin", "null")]
    {
        let ask = server.client.request(method.clone(), format!("{}{path}", server.url)).header(header, value);
        let response = ask.header("content-type", JSON).header("accept", "application/json, text/event-stream").body("{}").send().await;
        assert_eq!(response.expect("an answer").status(), 403, "{method} {path} {header}: {value}");
    }
}

#[tokio::test]
async fn streamable_http() {
    let server = Server::start();
    refuses_bad_bodies(&server, "/mcp").await;
    for method in [reqwest::Method::POST, reqwest::Method::GET, reqwest::Method::DELETE] {
        refuses_strangers(&server, method, "/mcp").await;
    }
    let client = Http::modern(&server, &[]);
    assert_eq!(client.call("run_js", json!({ "code": "1", "wait_secs": 60 })).await["structuredContent"]["result"], "1");
    // Without a connection, and with an unknown one.
    let (status, _) = post(&server, "/mcp", JSON, request("tools/list", json!({})).to_string()).await;
    assert_eq!(status, 400);
    let mut lost = Http::connect(&server, "2025-11-25", &[]).await;
    lost.connection = Some("../../etc/passwd".into());
    assert_eq!(lost.send(&request("tools/list", json!({}))).await.status(), 404);
}

#[tokio::test]
async fn http_with_sse() {
    let server = Server::start_with(&Folders::new(), &["--sse-port", "0"]);
    let mut client = Sse::open(&server).await;
    refuses_bad_bodies(&server, &client.endpoint).await;
    refuses_strangers(&server, reqwest::Method::GET, "/sse").await;
    refuses_strangers(&server, reqwest::Method::POST, &client.endpoint).await;
    let ping = request("ping", json!({})).to_string();
    assert_eq!(post(&server, "/message", JSON, ping.clone()).await.0, 400);
    assert_eq!(post(&server, "/message?sessionId=nobody", JSON, ping).await.0, 404);
    // The connection is not affected.
    client.initialize("2024-11-05").await;
    // When the client disconnects, its connection is removed.
    let endpoint = client.endpoint.clone();
    drop(client);
    let gone = async { while post(&server, &endpoint, JSON, request("ping", json!({})).to_string()).await.0 != 404 {} };
    tokio::time::timeout(Duration::from_secs(30), gone).await.expect("closed");
}

#[tokio::test]
async fn stdio() {
    let mut client = Stdio::start(&Folders::new(), &[]);
    for (line, code) in
        [("nonsense", -32700), (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32700), (r#"{"jsonrpc":"1.0"}"#, -32600)]
    {
        client.send(line).await;
        assert_eq!(client.receive().await.expect("a refusal")["error"]["code"], code, "{line}");
    }
    client.send("").await;
    result(client.answer(&initialize("2025-11-25")).await);
    assert_eq!(client.call("run_js", json!({ "code": "1", "wait_secs": 60 })).await["structuredContent"]["result"], "1");
    assert_eq!(client.leave().await, Some(0));
}

#[tokio::test]
async fn a_pending_request_id_is_refused() {
    let slow = |id: u64| {
        let mut message = request(
            "tools/call",
            json!({ "name": "run_js", "arguments": { "code": "await new Promise((done) => setTimeout(done, 500)); 5", "wait_secs": 60 } }),
        );
        message["id"] = id.into();
        message
    };
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let (first, second) = (slow(7), slow(7));
    let (first, second) = tokio::join!(client.send(&first), client.send(&second));
    let (good, bad) = if first.status() == 200 { (first, second) } else { (second, first) };
    assert_eq!(bad.status(), 400);
    let answers = crate::peer::messages(good).await;
    assert_eq!(answers[0]["result"]["structuredContent"]["result"], "5", "{answers:?}");
    // After the response, the id can be used again.
    assert_eq!(client.all(&slow(7)).await[0]["result"]["structuredContent"]["result"], "5");

    let mut client = Stdio::connect(&Folders::new(), "2025-11-25", &[]).await;
    client.send(&slow(7).to_string()).await;
    client.send(&slow(7).to_string()).await;
    let refusal = client.receive().await.expect("a refusal");
    assert_eq!((&refusal["error"]["code"], refusal.get("id")), (&json!(-32600), None), "{refusal}");
    assert_eq!(client.answer_to(&json!(7)).await["result"]["structuredContent"]["result"], "5");
}

#[tokio::test]
async fn a_thousand_idle_listeners_do_not_slow_other_clients() {
    // One owner has half of what a server has in all.
    let server = Server::start_with(&Folders::new(), &["--max-connections", "16000"]);
    let connect = |_| Http::connect(&server, "2025-11-25", &[]);
    let mut listeners = Vec::new();
    for batch in 0..20 {
        let clients = futures_util::future::join_all((batch * 50..batch * 50 + 50).map(connect)).await;
        let listen = |client: Http| async move {
            let listen = client
                .client
                .get(&client.url)
                .header("accept", "text/event-stream")
                .header("mcp-session-id", client.connection.as_deref().expect("one"));
            let response = listen.send().await.expect("an answer");
            assert_eq!(response.status(), 200);
            response
        };
        listeners.extend(futures_util::future::join_all(clients.into_iter().map(listen)).await);
    }
    let client = Http::modern(&server, &[]);
    assert_eq!(client.call("run_js", json!({ "code": "1", "wait_secs": 60 })).await["structuredContent"]["result"], "1");
    assert_eq!(listeners.len(), 1000);
}
