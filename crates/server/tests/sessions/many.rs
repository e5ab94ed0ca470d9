//! Many listeners, and stalled ones.

use crate::client::{LEGACY, LEGACY_KEY, Listener};
use crate::fixture::{Folders, Server, torture};
use crate::peer::{Http, request, result};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn create(http: &Http) -> Value {
    result(http.ask("sessions/create", json!({})).await)["session"].clone()
}

fn run_in(session: &Value, code: &str) -> Value {
    request("tools/call", json!({ "name": "run_js", "arguments": { "code": code, "wait_secs": 60 }, "_meta": { LEGACY_KEY: session } }))
}

/// 50 sessions with 20 listeners each: every listener receives each run of its own session, identified by the text that it threw, and no
/// other.
#[tokio::test]
async fn a_thousand_listeners_receive_all_events_of_their_own_session_only() {
    const SESSIONS: usize = 50;
    const EACH: usize = 20;
    let runs = if torture() { 20 } else { 3 };
    // One owner has half of the requests in progress that a server allows, which is half of its connections.
    let server = Server::start_with(&Folders::new(), &["--max-connections", "8000"]);
    let http = Http::connect(&server, LEGACY, &[]).await;
    let mut sessions = Vec::new();
    let mut listening = Vec::new();
    for number in 0..SESSIONS {
        let session = create(&http).await;
        for _ in 0..EACH {
            let (http, session) = (http.clone(), session.clone());
            let mut listener = Listener::open(&http, Some(&session)).await;
            listening.push(tokio::spawn(async move {
                let mut received = Vec::new();
                while received.len() < runs {
                    // Half of the listeners reconnect in the middle.
                    if received.len() == runs / 2 && number % 2 == 0 {
                        let last = listener.last.clone().expect("an id");
                        drop(listener);
                        let get = http.client.get(&http.url).header("accept", "text/event-stream").header("last-event-id", last);
                        listener = Listener::new(get.send().await.expect("an answer"));
                    }
                    let log = listener.next_of("notifications/message").await;
                    received.push(log["data"]["message"].as_str().expect("text").to_owned());
                }
                for (run, text) in received.iter().enumerate() {
                    assert!(text.contains(&format!("session {number}, run {run}!")), "{number}, {run}: {text}");
                }
            }));
        }
        sessions.push(session);
    }
    for run in 0..runs {
        for (number, session) in sessions.iter().enumerate() {
            let answer =
                result(http.all(&run_in(session, &format!("throw 'session {number}, run {run}!'"))).await.pop().expect("an answer"));
            assert_eq!(answer["structuredContent"]["status"], "failed");
        }
    }
    for listener in listening {
        listener.await.expect("all its messages");
    }
}

/// A listener that never reads, on a session with many events: its stream ends, the server's memory stays bounded, and runs take as long as
/// usual.
#[tokio::test]
async fn a_stalled_listener_is_disconnected_and_does_not_slow_runs() {
    let server = Server::start();
    let http = Http::connect(&server, LEGACY, &[]).await;
    let (session, quiet) = (create(&http).await, create(&http).await);
    let runs = if torture() { 20_000 } else { 400 };
    let timed = async |session: &Value| {
        let begun = Instant::now();
        for _ in 0..50 {
            result(http.all(&run_in(session, "throw new Error('x'.repeat(60000))")).await.pop().expect("an answer"));
        }
        begun.elapsed()
    };
    let alone = timed(&quiet).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let address = server.url.strip_prefix("http://").expect("an address");
        let mut stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
        let body = request("messages/listen", json!({ "_meta": { LEGACY_KEY: session } })).to_string();
        let id = session["sessionId"].as_str().expect("an id");
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\nmcp-session-id: {id}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await.expect("written");
        let mut begun = [0; 12];
        stream.read_exact(&mut begun).await.expect("an answer");
        assert_eq!(&begun, b"HTTP/1.1 200");
        slow.push(stream);
    }
    let before = server.memory_mb();
    let listened = timed(&session).await;
    for _ in 50..runs {
        result(http.all(&run_in(&session, "throw new Error('x'.repeat(60000))")).await.pop().expect("an answer"));
    }
    assert!(listened < alone * 3 + Duration::from_secs(1), "{listened:?} with listeners that do not read, {alone:?} without");
    // 400 messages of 16 KB are 6 MB, some of it in kernel buffers. If the server buffered the rest for twenty listeners, memory would
    // exceed this.
    assert!(server.memory_mb() < before + 30, "{} MB before, {} MB now", before, server.memory_mb());
    for mut stream in slow {
        let mut rest = Vec::new();
        let end = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut rest)).await.expect("cut off");
        let text = String::from_utf8_lossy(&rest);
        match end {
            Ok(_) => assert!(text.ends_with("0\r\n\r\n"), "the stream ended, properly"),
            // In the long form, a listener that reads nothing for minutes gets a connection reset.
            Err(error) => assert!(torture() && error.kind() == std::io::ErrorKind::ConnectionReset, "{error}"),
        }
        assert!(text.matches("notifications/message\"").count() < runs, "before all messages were sent");
    }
}
