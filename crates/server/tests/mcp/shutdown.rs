//! Shutdown of the server, as its clients see it.

use crate::fixture::{Folders, Server};
use crate::peer::{Http, Sse, Stdio, messages, request, result};
use serde_json::json;

#[tokio::test]
async fn waiting_calls_are_answered_before_open_streams_end() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let listen = client
        .client
        .get(&client.url)
        .header("accept", "text/event-stream")
        .header("mcp-session-id", client.connection.as_deref().expect("one"));
    let idle = listen.send().await.expect("an answer");
    let run = json!({ "name": "run_js", "arguments": { "code": "await new Promise((done) => setTimeout(done, 1500)); 'in time'", "wait_secs": 60 } });
    let waiting = client.send(&request("tools/call", run)).await;
    while server.get("/api/executions?status=running").await.1["executions"].as_array().is_none_or(Vec::is_empty) {}
    let ended = tokio::task::spawn_blocking(move || server.terminate());
    let answers = messages(waiting).await;
    assert_eq!(answers[0]["result"]["structuredContent"]["result"], "\"in time\"", "{answers:?}");
    assert_eq!(idle.text().await.expect("an orderly end"), "");
    assert_eq!(ended.await.expect("joined"), Some(0));
}

#[tokio::test]
async fn sse_streams_end() {
    let server = Server::start_with(&Folders::new(), &["--sse-port", "0"]);
    let mut client = Sse::open(&server).await;
    client.initialize("2024-11-05").await;
    let ended = tokio::task::spawn_blocking(move || server.terminate());
    assert_eq!(client.event().await, None);
    assert_eq!(ended.await.expect("joined"), Some(0));
}

#[tokio::test]
async fn over_stdio_end_of_input_shuts_down_and_runs_are_stored() {
    let folders = Folders::new();
    let mut client = Stdio::connect(&folders, "2025-11-25", &[]).await;
    let begun = client.call("run_js", json!({ "code": "await new Promise((done) => setTimeout(done, 1000)); 'ended'" })).await;
    assert_eq!(client.leave().await, Some(0));
    let mut again = Stdio::connect(&folders, "2025-11-25", &[]).await;
    let record = again.call("get_execution", begun["structuredContent"].clone()).await;
    assert_eq!(record["structuredContent"]["result"], "\"ended\"", "{record}");
}

#[tokio::test]
async fn over_stdio_waiting_calls_are_answered_after_a_signal() {
    let mut client = Stdio::connect(&Folders::new(), "2025-11-25", &[]).await;
    let code = "console.log('on'); await new Promise((done) => setTimeout(done, 1000)); 'ended'";
    let waiting =
        request("tools/call", json!({ "name": "run_js", "arguments": { "code": code, "wait_secs": 60 }, "_meta": { "progressToken": 1 } }));
    client.send(&waiting.to_string()).await;
    assert_eq!(client.receive().await.expect("progress")["method"], "notifications/progress");
    let pid = rustix::process::Pid::from_raw(client.child.id().expect("alive").cast_signed()).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
    assert_eq!(result(client.answer_to(&waiting["id"]).await)["structuredContent"]["result"], "\"ended\"");
    assert_eq!(client.child.wait().await.expect("an end").code(), Some(0));
}
