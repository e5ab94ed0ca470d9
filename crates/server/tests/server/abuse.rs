//! Clients that violate HTTP or stall: the right error, and no effect on other clients.

use crate::fixture::{Folders, Server};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Timeout for anything here on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.url.strip_prefix("http://").expect("an address")).await.expect("a connection")
}

/// Sends these bytes and reads until the server closes the connection. Returns the status of the first response, 0 if there is none.
async fn send_and_read_status(server: &Server, bytes: &[u8]) -> u16 {
    let mut stream = connect(server).await;
    let _ = stream.write_all(bytes).await;
    status(&mut stream).await
}

async fn status(stream: &mut TcpStream) -> u16 {
    let mut answer = Vec::new();
    tokio::time::timeout(TIMEOUT, async {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            answer.extend_from_slice(&buffer[..count]);
            if answer.windows(4).any(|end| end == b"\r\n\r\n") {
                break;
            }
        }
    })
    .await
    .expect("an answer or the end");
    std::str::from_utf8(answer.get(9..12).unwrap_or_default()).ok().and_then(|status| status.parse().ok()).unwrap_or_default()
}

#[tokio::test]
async fn invalid_and_oversized_http_is_refused() {
    let server = Server::start();
    let many: String = (0..200).map(|n| format!("x-{n}: 1\r\n")).collect();
    let long = "x".repeat(100_000);
    let (get, post) = (
        "GET /api/health HTTP/1.1\r\nhost: localhost\r\n",
        "POST /api/exec HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n",
    );
    for (what, bytes, allowed) in [
        ("no HTTP", "hello\r\n\r\n".to_owned(), &[400][..]),
        ("a TLS handshake", "\u{16}\u{3}\u{1}\r\n\r\n".to_owned(), &[400]),
        ("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), &[0, 400, 505]),
        ("no host", "GET /api/health HTTP/1.1\r\n\r\n".to_owned(), &[400]),
        ("two hosts", format!("{get}host: localhost\r\n\r\n"), &[400]),
        ("a foreign host in the target", "GET http://evil.example/api/health HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(), &[403]),
        ("a foreign host", "GET /api/health HTTP/1.1\r\nhost: evil.example\r\n\r\n".to_owned(), &[403]),
        ("a foreign origin", format!("{get}origin: http://evil.example\r\n\r\n"), &[403]),
        ("two origins", format!("{get}origin: http://127.0.0.1\r\norigin: http://127.0.0.1\r\n\r\n"), &[400]),
        ("two lengths", format!("{post}content-length: 5\r\ncontent-length: 6\r\n\r\n123456"), &[400]),
        ("no length", format!("{post}content-length: x\r\n\r\n"), &[400]),
        ("a bad chunk", format!("{post}transfer-encoding: chunked\r\n\r\nzz\r\n"), &[400]),
        ("many headers", format!("{get}{many}\r\n"), &[400, 431]),
        ("a long header", format!("{get}x: {long}\r\n\r\n"), &[400, 431]),
        ("a long path", format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n"), &[400, 414, 431]),
        (
            "a header name with a control character",
            "GET /api/health HTTP/1.1\r\nhost: localhost\r\nx-mcp-\u{1}: 1\r\n\r\n".to_owned(),
            &[400],
        ),
        ("an empty session name", format!("{get}x-mcp-session-id: \r\n\r\n"), &[400]),
        ("two sessions", format!("{get}x-mcp-session-id: a\r\nx-mcp-session-id: b\r\n\r\n"), &[400]),
        ("a path that is not UTF-8", "GET /api/executions/%ff HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(), &[400]),
        ("a path with a zero", "GET /api/executions/%00 HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(), &[404]),
    ] {
        let status = send_and_read_status(&server, bytes.as_bytes()).await;
        assert!(allowed.contains(&status), "{what}: {status}");
    }
    assert_eq!(server.terminate(), Some(0));
}

#[tokio::test]
async fn bodies_that_are_too_long_are_refused_before_they_are_read() {
    let server = Server::start();
    let head = "POST /api/exec HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    assert_eq!(send_and_read_status(&server, format!("{head}content-length: 104857601\r\n\r\n").as_bytes()).await, 413);
    assert_eq!(send_and_read_status(&server, format!("{head}content-length: 999999999999999\r\n\r\n").as_bytes()).await, 413);
    let import = "POST /api/heaps HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/octet-stream\r\n";
    assert_eq!(send_and_read_status(&server, format!("{import}content-length: 536870913\r\n\r\n").as_bytes()).await, 413);

    let before = server.memory_mb();
    let mut endless = connect(&server).await;
    endless.write_all(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes()).await.expect("sent");
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    let (mut reader, mut writer) = endless.split();
    let writing = async {
        // Until the server stops reading.
        while writer.write_all(chunk.as_bytes()).await.is_ok() {}
        std::future::pending::<()>().await
    };
    let mut answer = [0; 12];
    let reading = tokio::time::timeout(TIMEOUT, reader.read_exact(&mut answer));
    tokio::select! {
        () = writing => unreachable!("it never ends"),
        read = reading => drop(read.expect("in time").expect("an answer")),
    }
    assert_eq!(&answer[9..], b"413");
    let after = server.memory_mb();
    assert!(after < before + 300, "{before} MB before, {after} MB after");
    assert_eq!(server.run("1").await["status"], "completed");
}

#[tokio::test]
async fn clients_that_send_too_slowly_are_disconnected() {
    let server = Server::start();
    let began = Instant::now();
    let silent = async {
        let mut stream = connect(&server).await;
        assert_eq!(status(&mut stream).await, 0, "no request was sent, so there is no response");
    };
    let slow_head = async {
        let mut stream = connect(&server).await;
        stream.write_all(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nx-slow: ").await.expect("sent");
        let (mut reader, mut writer) = stream.split();
        let mut tick = tokio::time::interval(Duration::from_millis(500));
        let mut buffer = [0; 100];
        loop {
            tokio::select! {
                read = reader.read(&mut buffer) => { assert!(matches!(read, Ok(0) | Err(_))); break }
                _ = tick.tick() => drop(writer.write_all(b"x").await),
            }
        }
    };
    let slow_body = async {
        let mut stream = connect(&server).await;
        let head = "POST /api/exec HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n{";
        stream.write_all(head.as_bytes()).await.expect("sent");
        let (mut reader, mut writer) = stream.split();
        let mut tick = tokio::time::interval(Duration::from_millis(500));
        let mut answer = [0; 12];
        let mut reading = Box::pin(reader.read_exact(&mut answer));
        loop {
            tokio::select! {
                read = &mut reading => { read.expect("an answer"); break }
                _ = tick.tick() => drop(writer.write_all(b" ").await),
            }
        }
        drop(reading);
        assert_eq!(&answer[9..], b"408");
    };
    let other_clients = async { assert_eq!(server.run("1").await["status"], "completed") };
    tokio::time::timeout(TIMEOUT, async { tokio::join!(silent, slow_head, slow_body, other_clients) }).await.expect("in time");
    assert!(began.elapsed() >= Duration::from_secs(9), "a slow client is not disconnected at once: {:?}", began.elapsed());
}

#[tokio::test]
async fn a_thousand_idle_listeners_use_little_memory_and_get_the_final_event() {
    raise_open_files();
    // One owner has half of what a server has in all.
    let server = Server::start_with(&Folders::new(), &["--max-connections", "8000"]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).expect("a living server");
    let open_files: Vec<_> =
        limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit").split_whitespace().collect();
    assert_eq!(open_files[0], open_files[1], "the server raises its limit to the maximum");
    let before = server.memory_mb();
    let (_, answer) = server
        .post("/api/exec", json!({ "code": "await new Promise((done) => setTimeout(done, 120_000))", "execution_timeout_secs": 300 }))
        .await;
    let id = answer["execution_id"].as_str().expect("an id");
    let mut listeners = Vec::new();
    for _ in 0..1000 {
        let mut stream = connect(&server).await;
        let head = format!("GET /api/executions/{id}/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("sent");
        listeners.push(stream);
    }
    for stream in &mut listeners {
        assert_eq!(status(stream).await, 200);
    }
    let during = server.memory_mb();
    assert!(during < before + 200, "{before} MB before, {during} MB with all of them");
    assert_eq!(server.run("1").await["status"], "completed", "other clients are served");
    assert_eq!(server.post(&format!("/api/executions/{id}/cancel"), json!({})).await.0, 200);
    for mut stream in listeners {
        let mut rest = String::new();
        tokio::time::timeout(TIMEOUT, stream.read_to_string(&mut rest)).await.expect("in time").expect("the end");
        assert!(rest.contains("event: record") && rest.contains("\"status\":\"cancelled\""), "{rest}");
    }
}

/// The client side needs as many open files as the server.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("more files");
}

#[tokio::test]
async fn runs_of_disconnected_stateless_callers_are_cancelled() {
    let server = Server::start_with(&Folders::new(), &["--stateless", "--max-concurrent-executions", "1"]);
    let address = server.url.strip_prefix("http://").expect("an address").to_owned();
    let body = r#"{"code": "for (;;) {}", "execution_timeout_secs": 300}"#;
    for _ in 0..3 {
        let mut stream = TcpStream::connect(&address).await.expect("a connection");
        let head = format!(
            "POST /api/exec HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.expect("sent");
        drop(stream);
    }
    let (status, answer) = server.post("/api/exec", json!({ "code": "console.log('next')" })).await;
    assert_eq!((status, answer), (200, json!({ "output": "next\n" })), "their runs no longer hold the only slot");
}
