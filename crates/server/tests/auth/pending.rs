//! Calls that wait: each counts for its owner until it ends, also when its client has left.

use crate::fixture::{Folders, Server};
use crate::peer::{Http, Sse, Stdio, request};
use crate::tokens::TokenFile;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Timeout for anything here on a busy machine, and less than the calls wait.
const TIMEOUT: Duration = Duration::from_secs(120);
/// What one owner alone may have.
const PENDING_MAX: usize = 1_000;

/// A server with two owners, of which one has a run that does not end.
struct Waiting {
    server: Server,
    ann: String,
    bob: String,
    run: String,
    _file: TokenFile,
}

impl Waiting {
    async fn start(arguments: &[&str]) -> Self {
        Self::start_for(250, arguments).await
    }

    /// The run ends by itself after this time.
    async fn start_for(secs: u32, arguments: &[&str]) -> Self {
        let file = TokenFile::new();
        let ((_, ann), (_, bob)) = (file.add("acme/ann", &[]), file.add("acme/bob", &[]));
        let server = file.server(arguments);
        let mut waiting = Self { server, ann, bob, run: String::new(), _file: file };
        let code = format!("await new Promise((done) => setTimeout(done, {secs}_000))");
        let (status, record) = waiting.post(&waiting.bob, "/api/exec", json!({ "code": code, "execution_timeout_secs": 300 })).await;
        assert_eq!(status, 202, "{record}");
        waiting.run = record["execution_id"].as_str().expect("an id").to_owned();
        waiting
    }

    async fn post(&self, token: &str, path: &str, body: Value) -> (u16, Value) {
        let sent = self.server.client.post(format!("{}{path}", self.server.url)).bearer_auth(token).json(&body).send();
        let response = tokio::time::timeout(TIMEOUT, sent).await.expect("in time").expect("an answer");
        (response.status().as_u16(), response.json().await.expect("JSON"))
    }
}

fn waiting_call(run: &str) -> Value {
    request("tools/call", json!({ "name": "get_execution", "arguments": { "execution_id": run, "wait_secs": 300 } }))
}

/// A lost connection cancels no request of a client before 2026-07-28. Such calls were not counted, so an owner could have any number.
#[tokio::test]
async fn calls_whose_clients_left_count_until_they_end() {
    // An owner whose calls take all its places can't cancel what they wait for.
    let waiting = Waiting::start_for(40, &[]).await;
    let connect = async |token: &str| Http::connect(&waiting.server, "2025-11-25", &[("authorization", &format!("Bearer {token}"))]).await;
    let (bobs, anns) = (connect(&waiting.bob).await, connect(&waiting.ann).await);
    let mut left = 0;
    let refusal = loop {
        let response = bobs.send(&waiting_call(&waiting.run)).await;
        match response.status().as_u16() {
            200 => left += 1,
            429 => break response.text().await.expect("a text"),
            other => panic!("{other}"),
        }
        assert!(left <= PENDING_MAX, "one owner may not have any number of waiting calls");
    };
    assert_eq!(left, PENDING_MAX, "{refusal}");
    assert!(refusal.contains("1000 requests and event streams of yours are in progress") && refusal.contains("error:busy"), "{refusal}");
    assert_eq!(anns.send(&request("tools/list", json!({}))).await.status(), 200, "the other owner is served");
    let served = async { while bobs.send(&request("ping", json!({}))).await.status() != 200 {} };
    tokio::time::timeout(TIMEOUT, served).await.expect("the calls have ended, and count no longer");
}

/// Over SSE a request is answered on another connection, so a waiting call held no place.
#[tokio::test]
async fn waiting_calls_over_sse_count_for_their_owner() {
    let waiting = Waiting::start(&["--sse-port", "0"]).await;
    let authorization = format!("Bearer {}", waiting.bob);
    let mut bobs = Sse::open_with(&waiting.server, &[("authorization", &authorization)]).await;
    bobs.initialize("2024-11-05").await;
    let mut accepted = 0;
    loop {
        match bobs.post(&waiting_call(&waiting.run), &[("authorization", &authorization)]).await {
            202 => accepted += 1,
            429 => break,
            other => panic!("{other}"),
        }
        assert!(accepted <= PENDING_MAX, "one owner may not have any number of waiting calls");
    }
    assert!(accepted > 0);
    let mut anns = Sse::open_with(&waiting.server, &[("authorization", &format!("Bearer {}", waiting.ann))]).await;
    anns.initialize("2024-11-05").await;
}

#[tokio::test]
async fn waiting_calls_over_stdio_are_bounded() {
    let mut client = Stdio::connect(&Folders::new(), "2025-11-25", &[]).await;
    let endless = json!({ "code": "await new Promise((done) => setTimeout(done, 250_000))", "execution_timeout_secs": 300 });
    let record = client.call("run_js", endless).await;
    let run = record["structuredContent"]["execution_id"].as_str().expect("an id").to_owned();
    for _ in 0..PENDING_MAX {
        client.send(&waiting_call(&run).to_string()).await;
    }
    let refusal = client.answer(&waiting_call(&run)).await;
    assert_eq!(refusal["error"]["data"]["code"], "busy", "{refusal}");
    assert_eq!(client.notifications, [] as [Value; 0], "none of the others is answered");
    assert_eq!(client.leave().await, Some(0));
}

#[tokio::test]
async fn long_polls_of_clients_that_left_are_dropped() {
    let waiting = Waiting::start(&[]).await;
    let address = waiting.server.url.strip_prefix("http://").expect("an address");
    let head = format!(
        "GET /api/executions/{}?wait_secs=300 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
        waiting.run, waiting.bob
    );
    let mut open = Vec::new();
    let run = || waiting.post(&waiting.bob, "/api/exec", json!({ "code": "1" }));
    while run().await.0 != 429 {
        assert!(open.len() <= PENDING_MAX + 100, "one owner may not have all requests");
        for _ in 0..100 {
            let mut stream = TcpStream::connect(address).await.expect("a connection");
            stream.write_all(head.as_bytes()).await.expect("sent");
            open.push(stream);
        }
    }
    drop(open);
    let served = async { while run().await.0 == 429 {} };
    tokio::time::timeout(TIMEOUT, served).await.expect("long before the polls would have ended");
}

/// A result that a message holds almost whole.
const LONG: &str = "'x'.repeat(800_000)";

/// Answers that a client did not read waited in memory: 1,400 of them took more than a gigabyte.
#[tokio::test]
async fn long_answers_over_sse_that_are_not_read_are_bounded() {
    let waiting = Waiting::start(&["--sse-port", "0", "--max-response-mb", "16"]).await;
    let authorization = format!("Bearer {}", waiting.bob);
    let (status, record) = waiting.post(&waiting.bob, "/api/exec", json!({ "code": LONG, "wait_secs": 60 })).await;
    assert_eq!(status, 200, "{record}");
    let mut bobs = Sse::open_with(&waiting.server, &[("authorization", &authorization)]).await;
    bobs.initialize("2024-11-05").await;
    let arguments = json!({ "name": "get_execution", "arguments": { "execution_id": record["execution_id"] } });
    let idle_mb = waiting.server.memory_mb();
    for _ in 0..60 {
        while bobs.post(&request("tools/call", arguments.clone()), &[("authorization", &authorization)]).await == 429 {}
    }
    let (mut whole, mut refused) = (0, 0);
    while whole + refused < 60 {
        let (_, data) = bobs.event().await.expect("an event");
        let message: Value = serde_json::from_str(&data).expect("JSON");
        match message["error"]["data"]["code"].as_str() {
            None => whole += 1,
            Some("busy") => refused += 1,
            Some(other) => panic!("{other}"),
        }
    }
    assert!(whole > 0 && refused > 20, "{whole} answers, {refused} refused");
    let mb = waiting.server.memory_mb();
    assert!(mb < idle_mb + 60, "{idle_mb} MB, then {mb} MB");
}
