//! Log messages of runs outside of sessions: they are sent only to the client that started the run, at or above its chosen level.
//! Regression: messages existed only in sessions, so a client that chose a level and ran code without a session received none.

use crate::client::{LEGACY, LEGACY_KEY, Listener, MODERN_KEY};
use crate::fixture::{Folders, Server};
use crate::peer::{Http, Sse, Stdio, modern, request, result};
use serde_json::{Value, json};

const MESSAGE: &str = "notifications/message";
const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

fn run(code: &str) -> Value {
    json!({ "name": "run_js", "arguments": { "code": code, "wait_secs": 60 } })
}

/// Checks the message of a completed or failed run.
fn check(message: &Value, ran: &Value) {
    let (record, data) = (&ran["structuredContent"], &message["params"]["data"]);
    assert_eq!((&message["method"], &data["execution_id"]), (&json!(MESSAGE), &record["execution_id"]), "{message}");
    let failed = record["status"] == "failed";
    assert_eq!(message["params"]["level"], if failed { "error" } else { "info" }, "{message}");
    assert!(data["message"].as_str().is_some_and(|text| text.starts_with(record["status"].as_str().expect("a status"))), "{message}");
}

/// The next log message, which may have arrived before a response.
async fn next(client: &mut Stdio) -> Value {
    loop {
        let received =
            if client.notifications.is_empty() { client.receive().await.expect("a message") } else { client.notifications.remove(0) };
        if received["method"] == MESSAGE {
            return received;
        }
    }
}

#[tokio::test]
async fn over_stdio_a_client_gets_log_messages_of_its_runs_at_its_level() {
    let mut client = Stdio::connect(&Folders::new(), LEGACY, &[]).await;
    let before = result(client.ask("tools/call", run("'before a level was chosen'")).await);
    result(client.ask("logging/setLevel", json!({ "level": "info" })).await);
    let ran = result(client.ask("tools/call", run("1")).await);
    let mut message = next(&mut client).await;
    // The end of a run is published after its response, so this one may have been published after the level was chosen.
    if message["params"]["data"]["execution_id"] == before["structuredContent"]["execution_id"] {
        message = next(&mut client).await;
    }
    check(&message, &ran);
    result(client.ask("logging/setLevel", json!({ "level": "error" })).await);
    result(client.ask("tools/call", run("2")).await);
    let failed = result(client.ask("tools/call", run("throw new Error('no')")).await);
    check(&next(&mut client).await, &failed);
    // A missing heap is reported as soon as it is known.
    result(client.ask("logging/setLevel", json!({ "level": "warning" })).await);
    let missing = json!({ "name": "run_js", "arguments": { "code": "1", "heap": "0".repeat(64), "wait_secs": 60 } });
    let ran = result(client.ask("tools/call", missing).await);
    let warned = next(&mut client).await;
    assert_eq!(warned["params"]["level"], "warning", "{warned}");
    assert_eq!(warned["params"]["data"]["message"], ran["structuredContent"]["warnings"][0], "{warned}");
}

/// Fails on timeout, even if keep-alives keep the stream open.
async fn soon<T>(event: impl Future<Output = T>) -> T {
    tokio::time::timeout(std::time::Duration::from_secs(60), event).await.expect("in time")
}

/// The connection's standalone stream.
async fn own_stream(client: &Http) -> Listener {
    let get = client.client.get(&client.url).header("accept", "text/event-stream");
    Listener::new(get.header("mcp-session-id", client.connection.as_deref().expect("a connection")).send().await.expect("an answer"))
}

#[tokio::test]
async fn over_streamable_http_each_connection_gets_messages_of_its_own_runs_only() {
    let server = Server::start();
    let (one, two) = (Http::connect(&server, LEGACY, &[]).await, Http::connect(&server, LEGACY, &[]).await);
    let (mut ones, mut twos) = (own_stream(&one).await, own_stream(&two).await);
    for client in [&one, &two] {
        result(client.ask("logging/setLevel", json!({ "level": "debug" })).await);
    }
    // No level is set for this session, and messages of its runs go to its listeners.
    let session = result(one.ask("sessions/create", json!({})).await)["session"].clone();
    let mut in_session = run("'in a session'");
    in_session["_meta"] = json!({ LEGACY_KEY: session });
    result(one.ask("tools/call", in_session).await);
    server.run("'over REST'").await;
    let of_one = result(one.ask("tools/call", run("1")).await);
    check(&soon(ones.next()).await.expect("a message"), &of_one);
    let of_two = result(two.ask("tools/call", run("throw 2")).await);
    check(&soon(twos.next()).await.expect("a message"), &of_two);
    let again = result(one.ask("tools/call", run("3")).await);
    check(&soon(ones.next()).await.expect("a message"), &again);
}

#[tokio::test]
async fn over_sse_a_client_gets_log_messages_of_its_runs() {
    let server = Server::start_with(&Folders::new(), &["--sse-port", "0"]);
    let mut client = Sse::open(&server).await;
    client.initialize(LEGACY).await;
    result(client.ask("logging/setLevel", json!({ "level": "info" })).await);
    let call = request("tools/call", run("1"));
    assert_eq!(client.post(&call, &[]).await, 202);
    let (mut answer, mut message) = (None, None);
    while answer.is_none() || message.is_none() {
        let received: Value = serde_json::from_str(&soon(client.event()).await.expect("an event").1).expect("JSON");
        let place = if received["id"] == call["id"] { &mut answer } else { &mut message };
        *place = Some(received);
    }
    check(&message.expect("a message"), &result(answer.expect("an answer")));
}

#[tokio::test]
async fn since_2026_07_28_a_request_gets_log_messages_of_its_run_at_its_level() {
    let server = Server::start();
    let client = Http::modern(&server, &[]);
    let discovered = result(client.ask("server/discover", json!({})).await);
    assert_eq!(discovered["capabilities"]["logging"], json!({}), "{discovered}");
    let call = |code: &str, level: Option<&str>| {
        let mut call = request("tools/call", run(code));
        if let Some(level) = level {
            call["params"]["_meta"] = json!({ LEVEL_KEY: level });
        }
        call
    };
    for (code, level, expected) in [("1", None, 0), ("1", Some("info"), 1), ("1", Some("error"), 0), ("throw 1", Some("error"), 1)] {
        let mut messages = client.all(&call(code, level)).await;
        let answer = result(messages.pop().expect("an answer"));
        assert_eq!(messages.len(), expected, "{code} {level:?}: {messages:?}");
        messages.iter().for_each(|message| check(message, &answer));
    }
    // A call that waits for a run of an earlier call is notified of its end. After the end there are no more messages.
    let slow = json!({ "name": "run_js", "arguments": { "code": "await new Promise(done => setTimeout(done, 500))" } });
    let begun = result(client.ask("tools/call", slow).await)["structuredContent"]["execution_id"].clone();
    for expected in [1, 0] {
        let waiting =
            json!({ "name": "get_execution", "arguments": { "execution_id": begun, "wait_secs": 60 }, "_meta": { LEVEL_KEY: "info" } });
        let mut messages = client.all(&request("tools/call", waiting)).await;
        let answer = result(messages.pop().expect("an answer"));
        assert_eq!(messages.len(), expected, "{messages:?}");
        messages.iter().for_each(|message| check(message, &answer));
    }
    // In a session, the message names it.
    let session = result(client.ask("sessions/create", json!({})).await)["session"]["sessionId"].clone();
    let mut inside = call("1", Some("info"));
    inside["params"]["_meta"][MODERN_KEY] = json!({ "sessionId": session });
    let messages = client.all(&inside).await;
    assert_eq!(messages[0]["params"]["_meta"][MODERN_KEY]["sessionId"], session, "{messages:?}");

    let mut stdio = Stdio::start(&Folders::new(), &[]);
    let ran = result(stdio.answer(&modern(call("1", Some("info")), json!({}))).await);
    assert_eq!(stdio.notifications.len(), 1, "it comes before the answer: {:?}", stdio.notifications);
    check(&stdio.notifications[0], &ran);
}
