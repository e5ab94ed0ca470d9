//! Server-sent events: every byte once and in order, for slow readers and across interruptions and restarts.

use crate::fixture::{Folders, Server};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Debug, PartialEq)]
struct Event {
    name: String,
    id: String,
    data: Value,
}

/// A stream of events, read one by one.
struct Events {
    chunks: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    read: Vec<u8>,
}

impl Events {
    async fn open(server: &Server, id: &str, last: Option<&str>) -> Self {
        let mut request = server.client.get(format!("{}/api/executions/{id}/events", server.url)).header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { chunks: response.bytes_stream().boxed(), read: Vec::new() }
    }

    /// The next event that is not a comment. `None` when the stream has ended.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.read.windows(2).position(|bytes| bytes == b"\n\n") {
                let event = String::from_utf8(self.read.drain(..end + 2).collect()).expect("UTF-8");
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned);
                if event.starts_with(':') {
                    continue;
                }
                let data = serde_json::from_str(&field("data").expect("data")).expect("JSON");
                return Some(Event { name: field("event").expect("a name"), id: field("id").expect("an id"), data });
            }
            let chunk = tokio::time::timeout(Duration::from_secs(60), self.chunks.next()).await.expect("something within a minute")?;
            self.read.extend_from_slice(&chunk.expect("a chunk"));
        }
    }

    /// All text up to the record, and the record.
    async fn rest(mut self) -> (String, Value) {
        let mut text = String::new();
        while let Some(event) = self.next().await {
            match event.name.as_str() {
                "output" => text += event.data["data"].as_str().expect("text"),
                _ => {
                    assert_eq!((event.name.as_str(), event.id.as_str()), ("record", "end"));
                    assert_eq!(self.next().await, None, "then the stream ends");
                    return (text, event.data);
                }
            }
        }
        panic!("no record");
    }
}

async fn start(server: &Server, code: &str) -> String {
    let (status, answer) = server.post("/api/exec", json!({ "code": code })).await;
    assert_eq!(status, 202, "{answer}");
    answer["execution_id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn output_is_streamed_as_it_is_written_then_the_record() {
    let server = Server::start();
    let id = start(&server, "console.log('één'); await new Promise((done) => setTimeout(done, 60_000))").await;
    let mut events = Events::open(&server, &id, None).await;
    let first = events.next().await;
    let expected = Event { name: "output".into(), id: "6".into(), data: json!({ "data": "één\n", "start_byte": 0, "end_byte": 6 }) };
    assert_eq!(first, Some(expected), "while it runs");
    server.post(&format!("/api/executions/{id}/cancel"), json!({})).await;
    let record = events.next().await.expect("a record");
    let (_, stored) = server.get(&format!("/api/executions/{id}")).await;
    assert_eq!(record, Event { name: "record".into(), id: "end".into(), data: stored });
    assert_eq!(events.next().await, None);
}

/// Text that a careless implementation would corrupt: carriage returns, empty lines, characters of every length, no final newline.
const DIFFICULT: &str = r#"
for (let i = 0; i < 3000; i++) console.log(`${i}: \r\n\n data: x\r é 日本 😀 ${'y'.repeat(i % 97)}`);
"#;

#[tokio::test]
async fn a_reader_resumes_after_any_event_also_after_a_restart() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let id = start(&server, DIFFICULT).await;
    let (whole, record) = Events::open(&server, &id, None).await.rest().await;
    assert_eq!(record["status"], "completed");
    let stored: String = {
        let (_, page) = server.get(&format!("/api/executions/{id}/output?byte_offset=0&byte_limit=4194304")).await;
        page["data"].as_str().expect("text").to_owned()
    };
    assert_eq!(whole, stored);
    let mut events = Events::open(&server, &id, None).await;
    let mut marks = Vec::new();
    while let Some(event) = events.next().await {
        if event.name == "output" {
            marks.push(event.id);
        }
    }
    assert!(marks.len() > 3, "several pages: {marks:?}");
    drop(server);
    let server = Server::start_with(&folders, &[]);
    for mark in marks {
        let (rest, again) = Events::open(&server, &id, Some(&mark)).await.rest().await;
        assert_eq!(rest, whole[mark.parse().expect("a number")..], "after {mark}");
        assert_eq!(again, record);
    }
}

#[tokio::test]
async fn interrupted_readers_of_a_running_execution_see_every_byte_once() {
    let server = Server::start();
    let code =
        "for (let i = 0; i < 400; i++) { console.log(`line ${i} é`); if (i % 20 == 0) await new Promise((done) => setTimeout(done, 5)) }";
    let id = start(&server, code).await;
    let (mut seen, mut last) = (String::new(), None::<String>);
    'reading: loop {
        let mut events = Events::open(&server, &id, last.as_deref()).await;
        for _ in 0..3 {
            match events.next().await {
                Some(event) if event.name == "output" => {
                    seen += event.data["data"].as_str().expect("text");
                    last = Some(event.id);
                }
                _ => break 'reading,
            }
        }
    }
    let expected: String = (0..400).map(|i| format!("line {i} é\n")).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_reader_that_has_everything_gets_204() {
    let server = Server::start();
    let record = server.run("console.log(1)").await;
    let path = format!("{}/api/executions/{}/events", server.url, record["execution_id"].as_str().expect("an id"));
    let ask = async |last: &str| server.client.get(&path).header("last-event-id", last).send().await.expect("an answer").status().as_u16();
    assert_eq!(ask("end").await, 204, "a browser's EventSource does not reconnect after 204");
    assert_eq!(ask("2").await, 200);
    for bad in ["-1", "x", "1.5", "99999999999999999999999"] {
        assert_eq!(ask(bad).await, 400, "{bad}");
    }
}

#[tokio::test]
async fn a_stalled_reader_delays_no_other_client_and_uses_little_memory() {
    let server = Server::start();
    let id = start(&server, "for (let i = 0; i < 40; i++) console.log('x'.repeat(1 << 20))").await;
    let stalled: Vec<Events> = futures_util::future::join_all((0..20).map(|_| Events::open(&server, &id, None))).await;
    let (_, record) = server.get(&format!("/api/executions/{id}?wait_secs=60")).await;
    assert_eq!(record["status"], "completed");
    // Without limits, this would be twenty times forty megabytes.
    let mb = server.memory_mb();
    assert!(mb < 400, "the server holds {mb} MB");
    let (text, _) = stalled.into_iter().next().expect("one").rest().await;
    assert_eq!(text.len(), 40 * ((1 << 20) + 1), "it continues where it stopped");
}
