//! Progress notifications while a call waits, and cancellation of the call.

use crate::fixture::{Folders, Server};
use crate::peer::{Http, Stdio, request, result};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn call(name: &str, arguments: Value, token: &str) -> Value {
    request("tools/call", json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": token } }))
}

/// The progress values, which must increase.
fn values(messages: &[Value], token: &str) -> Vec<f64> {
    let notifications: Vec<_> = messages.iter().filter(|message| message["method"] == "notifications/progress").collect();
    assert!(notifications.iter().all(|message| message["params"]["progressToken"] == token), "{notifications:?}");
    let values: Vec<_> = notifications.iter().map(|message| message["params"]["progress"].as_f64().expect("a number")).collect();
    assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
    values
}

#[tokio::test]
async fn output_causes_progress_notifications() {
    let server = Server::start();
    let slow = "for (let i = 0; i < 4; i++) { console.log('more'); await new Promise((done) => setTimeout(done, 300)) } 7";
    for client in [Http::connect(&server, "2025-06-18", &[]).await, Http::modern(&server, &[])] {
        let messages = client.all(&call("run_js", json!({ "code": slow, "wait_secs": 60 }), "t")).await;
        assert!(values(&messages, "t").len() >= 3, "{messages:?}");
        assert!(messages[0]["params"]["message"].as_str().is_some_and(|text| text.contains("bytes of output")), "{messages:?}");
        assert_eq!(messages.last().expect("an answer")["result"]["structuredContent"]["result"], "7");
        // The same for a call that waits for a run of another call.
        let begun = client.call("run_js", json!({ "code": slow })).await;
        let id = &begun["structuredContent"]["execution_id"];
        let messages = client.all(&call("get_execution", json!({ "execution_id": id, "wait_secs": 60 }), "u")).await;
        assert!(values(&messages, "u").len() >= 2, "{messages:?}");
    }
}

#[tokio::test]
async fn progress_is_sent_every_few_seconds_without_output() {
    let mut stateful = Stdio::connect(&Folders::new(), "2025-11-25", &[]).await;
    let mut stateless = Stdio::connect(&Folders::new(), "2025-11-25", &["--stateless"]).await;
    let code = "await new Promise((done) => setTimeout(done, 4000))";
    let (with_heap, without) =
        (call("run_js", json!({ "code": code, "wait_secs": 60 }), "a"), call("run_js", json!({ "code": code }), "b"));
    let (first, second) = tokio::join!(stateful.answer(&with_heap), stateless.answer(&without));
    assert_eq!(result(first)["structuredContent"]["status"], "completed");
    result(second);
    // One every three seconds; a busy machine makes the run longer.
    assert!((1..=10).contains(&values(&stateful.notifications, "a").len()));
    assert!((1..=10).contains(&values(&stateless.notifications, "b").len()));
}

#[tokio::test]
async fn without_a_token_there_is_no_progress_and_an_invalid_wait_runs_nothing() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let quiet = request("tools/call", json!({ "name": "run_js", "arguments": { "code": "console.log(1)", "wait_secs": 60 } }));
    assert_eq!(client.all(&quiet).await.len(), 1);
    let messages = client.all(&call("run_js", json!({ "code": "1", "wait_secs": 1000 }), "t")).await;
    assert_eq!(messages[0]["result"]["isError"], true, "{messages:?}");
    let listed = client.call("list_executions", json!({})).await;
    assert_eq!(listed["structuredContent"]["executions"].as_array().map(Vec::len), Some(1));
}

fn cancel(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": "enough" } })
}

#[tokio::test]
async fn cancelling_a_call_does_not_cancel_a_stored_run() {
    let mut client = Stdio::connect(&Folders::new(), "2025-11-25", &[]).await;
    let waiting = call(
        "run_js",
        json!({ "code": "console.log('on'); await new Promise((done) => setTimeout(done, 1500)); 'went on'", "wait_secs": 60 }),
        "t",
    );
    client.send(&waiting.to_string()).await;
    // The first progress notification means that it has started.
    assert_eq!(client.receive().await.expect("progress")["method"], "notifications/progress");
    client.send(&cancel(&waiting["id"]).to_string()).await;
    let listed = client.call("list_executions", json!({ "status": "running" })).await;
    let id = listed["structuredContent"]["executions"][0]["execution_id"].clone();
    let record = client.call("get_execution", json!({ "execution_id": id, "wait_secs": 60 })).await;
    assert_eq!(record["structuredContent"]["result"], "\"went on\"", "{record}");
    assert!(client.notifications.iter().all(|message| message["id"] != waiting["id"]), "a cancelled call is not answered");
}

#[tokio::test]
async fn cancelling_a_call_cancels_a_stateless_run() {
    let arguments = ["--stateless", "--max-concurrent-executions", "1", "--execution-timeout", "300"];
    let mut client = Stdio::connect(&Folders::new(), "2025-11-25", &arguments).await;
    let endless = call("run_js", json!({ "code": "for (;;);" }), "t");
    client.send(&endless.to_string()).await;
    assert_eq!(client.receive().await.expect("progress")["method"], "notifications/progress");
    let started = Instant::now();
    client.send(&cancel(&endless["id"]).to_string()).await;
    let answer = client.call("run_js", json!({ "code": "console.log('my turn')" })).await;
    assert_eq!(answer["structuredContent"]["output"], "my turn\n");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());

    // Over HTTP without connections, closing the request cancels the call.
    let server = Server::start_with(&Folders::new(), &arguments);
    let http = Http::modern(&server, &[]);
    let mut waiting = http.send(&call("run_js", json!({ "code": "for (;;);" }), "t")).await;
    assert!(waiting.chunk().await.expect("progress").is_some());
    drop(waiting);
    let answer = http.call("run_js", json!({ "code": "console.log('my turn')" })).await;
    assert_eq!(answer["structuredContent"]["output"], "my turn\n");
}
