//! JSON-RPC batches, which servers must accept from clients of 2025-03-26 and from no others.

use crate::fixture::{Folders, Server};
use crate::peer::{Http, MODERN, Sse, Stdio, initialize, messages, request, result};
use serde_json::{Value, json};

const VERSION: &str = "2025-03-26";

fn run(code: &str) -> Value {
    request("tools/call", json!({ "name": "run_js", "arguments": { "code": code, "wait_secs": 60 } }))
}

/// A batch of three requests and a notification.
fn batch() -> Vec<Value> {
    vec![run("1 + 1"), json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }), request("ping", json!({})), run("2 + 2")]
}

/// Every request has exactly one response.
fn check(batch: &[Value], answers: &[Value]) {
    let requests: Vec<&Value> = batch.iter().filter(|message| message.get("id").is_some()).collect();
    assert_eq!(answers.len(), requests.len(), "{answers:?}");
    let of = |number: usize| result(answers.iter().find(|answer| answer["id"] == requests[number]["id"]).expect("an answer").clone());
    assert_eq!(of(0)["structuredContent"]["result"], "2");
    assert_eq!(of(1), json!({}));
    assert_eq!(of(2)["structuredContent"]["result"], "4");
}

fn refused(answer: &Value, says: &str) {
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &Value::Null), "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains(says)), "{answer}");
}

/// Invalid batches and their errors.
fn bad_batches() -> Vec<(Value, &'static str)> {
    vec![
        (json!([]), "the batch is empty"),
        (json!([request("ping", json!({})), initialize(VERSION)]), "`initialize` can't be part of a batch"),
        (Value::Array((0..65).map(|_| request("ping", json!({}))).collect()), "at most 64 are allowed"),
    ]
}

/// Over HTTP, as a client that does not send its version with every request.
async fn post(server: &Server, client: &Http, version: Option<&str>, body: &Value) -> reqwest::Response {
    let mut post = server.client.post(&client.url).header("accept", "application/json, text/event-stream").json(body);
    if let Some(connection) = &client.connection {
        post = post.header("mcp-session-id", connection);
    }
    if let Some(version) = version {
        post = post.header("mcp-protocol-version", version);
    }
    post.send().await.expect("an answer")
}

#[tokio::test]
async fn over_streamable_http_a_batch_is_answered_on_one_stream() {
    let server = Server::start();
    let client = Http::connect(&server, VERSION, &[]).await;
    for version in [None, Some(VERSION)] {
        let batch = batch();
        let response = post(&server, &client, version, &json!(batch)).await;
        assert_eq!(response.status(), 200);
        check(&batch, &messages(response).await);
    }
    let silent = json!([{ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }]);
    assert_eq!(post(&server, &client, None, &silent).await.status(), 202, "nothing in it is to be answered");
    // An error in one message is reported for that message.
    let ping = request("ping", json!({}));
    let answers = messages(post(&server, &client, None, &json!([ping, 7, ping])).await).await;
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| answer["id"] == ping["id"] && answer["result"] == json!({})).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| answer["error"]["code"] == -32600 && answer["id"].is_null()).count(), 2, "{answers:?}");
    for (bad, says) in bad_batches() {
        let response = post(&server, &client, None, &bad).await;
        assert_eq!(response.status(), 400, "{says}");
        refused(&response.json().await.expect("JSON"), says);
    }
    let broken = post(&server, &client, None, &json!([7, "x"])).await;
    assert_eq!(broken.status(), 400);
    let answers: Value = broken.json().await.expect("JSON");
    assert_eq!(answers.as_array().map(Vec::len), Some(2), "{answers}");
}

#[tokio::test]
async fn over_streamable_http_other_versions_refuse_batches() {
    let server = Server::start();
    let one_by_one = "send the messages one by one";
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let client = Http::connect(&server, version, &[]).await;
        for named in [Some(version), None] {
            let response = post(&server, &client, named, &json!(batch())).await;
            assert_eq!(response.status(), 400, "{version}");
            refused(&response.json().await.expect("JSON"), one_by_one);
        }
    }
    let stranger = Http::modern(&server, &[]);
    let response = post(&server, &stranger, Some(MODERN), &json!(batch())).await;
    assert_eq!(response.status(), 400);
    refused(&response.json().await.expect("JSON"), one_by_one);
    // Without a connection no version is negotiated, and a batch does not create one.
    for body in [json!([initialize(VERSION)]), json!(batch())] {
        let response = post(&server, &stranger, None, &body).await;
        assert_eq!(response.status(), 400);
        refused(&response.json().await.expect("JSON"), one_by_one);
    }
}

#[tokio::test]
async fn over_stdio_a_batch_is_answered_by_one_array() {
    let mut client = Stdio::connect(&Folders::new(), VERSION, &[]).await;
    let batch = batch();
    client.send(&json!(batch).to_string()).await;
    let answers = client.receive().await.expect("an answer");
    check(&batch, answers.as_array().expect("an array"));
    let ping = request("ping", json!({}));
    client.send(&json!([ping, 7, ping]).to_string()).await;
    let answers = client.receive().await.expect("an answer");
    assert_eq!(answers.as_array().map(Vec::len), Some(3), "{answers}");
    for (bad, says) in bad_batches() {
        client.send(&bad.to_string()).await;
        refused(&client.receive().await.expect("an answer"), says);
    }
    // A batch of notifications gets no response, and a partly cancelled batch gets a partial response.
    client.send(&json!([{ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }]).to_string()).await;
    let (quick, slow) = (request("ping", json!({})), run("await new Promise(done => setTimeout(done, 60000))"));
    client.send(&json!([slow, quick]).to_string()).await;
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": slow["id"] } });
    client.send(&cancelled.to_string()).await;
    let answers = client.receive().await.expect("an answer");
    assert_eq!(answers, json!([{ "jsonrpc": "2.0", "id": quick["id"], "result": {} }]));
    assert_eq!(client.leave().await, Some(0));
    let mut later = Stdio::connect(&Folders::new(), "2025-11-25", &[]).await;
    later.send(&json!(self::batch()).to_string()).await;
    refused(&later.receive().await.expect("an answer"), "send the messages one by one");
}

#[tokio::test]
async fn over_sse_a_batch_is_answered_by_one_event() {
    let server = Server::start_with(&Folders::new(), &["--sse-port", "0"]);
    let connect = async |version: &str| {
        let mut client = Sse::open(&server).await;
        let hello = initialize(version);
        assert_eq!(client.post(&json!([hello]), &[]).await, 400, "nothing is agreed on yet");
        assert_eq!(client.post(&hello, &[]).await, 202);
        result(client.answer_to(&hello["id"]).await);
        client
    };
    let mut client = connect(VERSION).await;
    let batch = batch();
    assert_eq!(client.post(&json!(batch), &[]).await, 202);
    let (_, data) = client.event().await.expect("an answer");
    let answers: Value = serde_json::from_str(&data).expect("JSON");
    check(&batch, answers.as_array().expect("an array"));
    let later = connect("2025-06-18").await;
    assert_eq!(later.post(&json!(batch), &[]).await, 400);
}

/// Responses too large for one message are split into several arrays, each within the message limit.
#[tokio::test]
async fn a_batch_of_long_responses_is_split_into_several_arrays() {
    let mut client = Stdio::connect(&Folders::new(), VERSION, &[]).await;
    let ran = result(client.answer(&run("'x'.repeat(2_000_000)")).await);
    let record: Value = serde_json::from_str(ran["content"][0]["text"].as_str().expect("a text")).expect("JSON");
    let uri = format!("heapstead://executions/{}/result", record["execution_id"].as_str().expect("an id"));
    let batch: Vec<Value> = (0..3).map(|_| request("resources/read", json!({ "uri": uri }))).collect();
    client.send(&json!(batch).to_string()).await;
    let mut answered = Vec::new();
    while answered.len() < batch.len() {
        let answers = client.receive().await.expect("answers");
        assert!(answers.to_string().len() <= 900_000, "{} bytes", answers.to_string().len());
        answered.extend(answers.as_array().expect("an array").iter().map(|answer| answer["id"].clone()));
    }
    answered.sort_by_key(Value::as_u64);
    assert_eq!(answered, batch.iter().map(|message| message["id"].clone()).collect::<Vec<_>>());
}
