//! Two owners on one server: whatever one of them opens, uploads or does not read, the other one is served.

use crate::fixture::Server;
use crate::peer::{Http, Sse, request};
use crate::tokens::TokenFile;
use futures_util::future::join_all;
use reqwest::StatusCode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Timeout for anything here on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A server with two owners, and a token of each.
struct TwoOwners {
    server: Server,
    ann: String,
    /// Abuses the server.
    bob: String,
    _file: TokenFile,
}

impl TwoOwners {
    fn start(arguments: &[&str]) -> Self {
        // The client side needs as many open files as the server.
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("more files");
        let file = TokenFile::new();
        let ((_, ann), (_, bob)) = (file.add("acme/ann", &[]), file.add("acme/bob", &[]));
        Self { server: file.server(arguments), ann, bob, _file: file }
    }

    async fn run(&self, token: &str, body: Value) -> (StatusCode, Value) {
        let run = self.server.client.post(format!("{}/api/exec", self.server.url)).bearer_auth(token).json(&body);
        let response = tokio::time::timeout(TIMEOUT, run.send()).await.expect("in time").expect("an answer");
        (response.status(), response.json().await.expect("JSON"))
    }

    async fn completes(&self, token: &str, code: &str) -> Value {
        let (status, record) = self.run(token, json!({ "code": code, "wait_secs": 60 })).await;
        assert_eq!((status.as_u16(), &record["status"]), (200, &json!("completed")), "{record}");
        record
    }

    /// Sends a request and reads nothing. Its receive buffer is small.
    async fn ask_without_reading(&self, token: &str, head: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(16 << 10).expect("a small buffer");
        let address = self.server.url.strip_prefix("http://").expect("an address").parse().expect("an address");
        let mut stream = socket.connect(address).await.expect("a connection");
        let head = format!("{head} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n");
        stream.write_all(head.as_bytes()).await.expect("sent");
        stream
    }
}

/// The status of the response.
async fn status(stream: &mut TcpStream) -> u16 {
    let mut answer = [0; 12];
    tokio::time::timeout(TIMEOUT, stream.read_exact(&mut answer)).await.expect("in time").expect("an answer");
    std::str::from_utf8(&answer[9..]).expect("text").parse().expect("a status")
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// All owners behind one proxy have one address, and its share of the connections was one for all of them.
#[tokio::test]
async fn the_tcp_connections_of_one_owner_leave_room_for_another_at_the_same_address() {
    let owners = TwoOwners::start(&["--max-connections", "64"]);
    let mut open = Vec::new();
    let refusal = loop {
        let mut stream = owners.ask_without_reading(&owners.bob, "GET /api/usage").await;
        stream.write_all(b"\r\n").await.expect("sent");
        match status(&mut stream).await {
            200 => open.push(stream),
            refusal => break refusal,
        }
    };
    // The test's own client has a connection or two.
    assert!((28..=32).contains(&open.len()), "{}", open.len());
    assert_eq!(refusal, 429);
    owners.completes(&owners.ann, "1").await;
}

/// 2,000 `initialize` of one owner once closed the connections of everybody. While a connection was closed, a request on it opened it again,
/// without an owner.
#[tokio::test]
async fn the_connections_of_one_owner_do_not_close_those_of_another() {
    let owners = TwoOwners::start(&[]);
    let (ann, bob) = (bearer(&owners.ann), bearer(&owners.bob));
    let connect = async |token: &str| Http::connect(&owners.server, "2025-11-25", &[("authorization", token)]).await;
    let anns = connect(&ann).await;
    let first = connect(&bob).await;
    let list = request("tools/list", json!({}));
    let mut last = first.clone();
    for _ in 0..42 {
        // The connection that is about to be closed is used meanwhile, by its owner and by somebody else.
        let mut stranger = first.clone();
        stranger.headers.clone_from(&anns.headers);
        let (own, foreign) = (request("ping", json!({})), request("ping", json!({})));
        let (opened, own, foreign) = tokio::join!(join_all((0..50).map(|_| connect(&bob))), first.send(&own), stranger.send(&foreign));
        assert!([200, 404, 503].contains(&own.status().as_u16()), "{}", own.status());
        assert_eq!(foreign.status(), 404);
        last = opened.last().expect("some").clone();
    }
    assert_eq!(anns.send(&list).await.status(), 200, "the connection of the other owner is open");
    assert_eq!(last.send(&list).await.status(), 200, "the newest connection is open");
    // The first one was used until now, so another one was closed.
    assert_eq!(first.send(&list).await.status(), 200);
}

#[tokio::test]
async fn the_least_recently_used_connection_of_an_owner_is_closed() {
    let owners = TwoOwners::start(&[]);
    let bob = bearer(&owners.bob);
    let connect = async || Http::connect(&owners.server, "2025-11-25", &[("authorization", &bob)]).await;
    let first = connect().await;
    for _ in 0..21 {
        join_all((0..50).map(|_| connect())).await;
    }
    for method in ["tools/list", "ping"] {
        assert_eq!(first.send(&request(method, json!({}))).await.status(), 404, "{method}");
    }
}

#[tokio::test]
async fn the_sse_connections_and_streams_of_one_owner_leave_room_for_another() {
    let owners = TwoOwners::start(&["--sse-port", "0"]);
    let mut open = Vec::new();
    let refused = loop {
        let mut stream = owners.ask_without_reading(&owners.bob, "GET /sse").await;
        stream.write_all(b"\r\n").await.expect("sent");
        match status(&mut stream).await {
            200 => open.push(stream),
            refused => break refused,
        }
        assert!(open.len() <= 250, "one owner may not open all 500");
    };
    assert_eq!((refused, open.len()), (429, 250));
    let mut anns = Sse::open_with(&owners.server, &[("authorization", &bearer(&owners.ann))]).await;
    anns.initialize("2024-11-05").await;
}

/// Event streams, long polls and all other requests in progress.
#[tokio::test]
async fn the_requests_of_one_owner_leave_room_for_another() {
    let owners = TwoOwners::start(&[]);
    let endless = json!({ "code": "await new Promise((done) => setTimeout(done, 200_000))", "execution_timeout_secs": 300 });
    let (_, record) = owners.run(&owners.bob, endless).await;
    let events = format!("GET /api/executions/{}/events", record["execution_id"].as_str().expect("an id"));
    let mut open = Vec::new();
    let refused = loop {
        let mut stream = owners.ask_without_reading(&owners.bob, &events).await;
        stream.write_all(b"\r\n").await.expect("sent");
        match status(&mut stream).await {
            200 => open.push(stream),
            refused => break refused,
        }
        assert!(open.len() <= 1000, "one owner may not have all requests");
    };
    assert_eq!((refused, open.len()), (429, 1000));
    assert_eq!(owners.run(&owners.bob, json!({ "code": "1" })).await.0, 429);
    owners.completes(&owners.ann, "1").await;
    // Closed streams are counted no longer.
    drop(open);
    let served = async { while owners.run(&owners.bob, json!({ "code": "1" })).await.0 != 202 {} };
    tokio::time::timeout(TIMEOUT, served).await.expect("in time");
}

/// Four readers that read nothing once blocked all transfers of heaps.
#[tokio::test]
async fn the_transfers_of_one_owner_leave_room_for_another() {
    let owners = TwoOwners::start(&[]);
    // Larger than the buffers of the sockets.
    let record = owners.completes(&owners.bob, "globalThis.big = 'x'.repeat(24 << 20); big.at(-1)").await;
    let export = format!("GET /api/heaps/{}/file", record["heap"].as_str().unwrap_or_else(|| panic!("{record}")));
    let mut open = Vec::new();
    for _ in 0..16 {
        let mut stream = owners.ask_without_reading(&owners.bob, &export).await;
        stream.write_all(b"\r\n").await.expect("sent");
        match status(&mut stream).await {
            200 => open.push(stream),
            429 => break,
            other => panic!("{other}"),
        }
    }
    assert!(!open.is_empty());
    let heap = owners.completes(&owners.ann, "globalThis.mine = 1").await["heap"].as_str().expect("a key").to_owned();
    let url = format!("{}/api/heaps/{heap}/file", owners.server.url);
    let anns = owners.server.client.get(url).bearer_auth(&owners.ann).send().await.expect("an answer");
    assert_eq!(anns.status(), 200, "beside {} transfers of the other owner", open.len());
}

/// Uploads that stop before their end once took all memory for bodies.
#[tokio::test]
async fn the_uploads_of_one_owner_leave_room_for_another() {
    let owners = TwoOwners::start(&["--max-body-mb", "1024"]);
    // Sixteen of these are all of it.
    let (part, parts) = (vec![b' '; 1 << 20], 64);
    let mut stalled = Vec::new();
    for _ in 0..17 {
        let mut stream = owners.ask_without_reading(&owners.bob, "POST /api/exec").await;
        let head = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n", (parts * part.len()) + 1);
        stream.write_all(head.as_bytes()).await.expect("sent");
        let mut sent = Ok(());
        for _ in 0..parts {
            sent = sent.and(stream.write_all(&part).await);
        }
        if sent.is_err() {
            break;
        }
        stalled.push(stream);
    }
    assert!(stalled.len() >= 4, "one owner alone may use half of it: {}", stalled.len());
    let code = format!("1 /* {} */", "x".repeat(1 << 20));
    assert_eq!(owners.run(&owners.ann, json!({ "code": code })).await.0, 202);
}
