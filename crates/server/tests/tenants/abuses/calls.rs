//! Calls over MCP that wait, and whose clients leave at once; and calls for results of megabytes.

use crate::abuse::Abuser;
use crate::abuses::initialize;
use futures_util::future::join_all;
use serde_json::{Value, json};

pub async fn abandon(abuser: Abuser) {
    let body = json!({ "code": "await new Promise((done) => setTimeout(done, 100_000))", "execution_timeout_secs": 110 });
    let (_, record) = abuser.tenant.ask("POST", "/api/exec", Some(body)).await;
    let call = json!({ "name": "get_execution", "arguments": { "execution_id": record["execution_id"], "wait_secs": 100 } });
    let connection = initialize::connect(&abuser).await.unwrap_or_default();
    let mut id = 1;
    loop {
        for _ in 0..abuser.times(100, 1_000) {
            id += 1;
            let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call });
            // The response is an event stream, which is closed here.
            drop(post(&abuser, &connection, &message).await);
        }
        abuser.in_effect();
    }
}

/// One reader made the server copy and measure its whole result, on the threads that serve everybody.
pub async fn read_large_results(abuser: Abuser) {
    let body = json!({ "code": "'x'.repeat(16_000_000)", "wait_secs": 60 });
    let (_, record) = abuser.tenant.ask("POST", "/api/exec", Some(body)).await;
    let params = json!({ "name": "get_execution", "arguments": { "execution_id": record["execution_id"] } });
    let connection = initialize::connect(&abuser).await.unwrap_or_default();
    let call = |id: usize| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    loop {
        let calls: Vec<Value> = (0..abuser.times(20, 40)).map(call).collect();
        abuser.in_effect();
        join_all(calls.iter().map(async |call| {
            if let Some(response) = post(&abuser, &connection, call).await {
                drop(response.bytes().await);
            }
        }))
        .await;
    }
}

async fn post(abuser: &Abuser, connection: &str, message: &Value) -> Option<reqwest::Response> {
    let request = abuser.tenant.request("POST", "/mcp").header("accept", "application/json, text/event-stream");
    request.header("mcp-session-id", connection).json(message).send().await.ok()
}
