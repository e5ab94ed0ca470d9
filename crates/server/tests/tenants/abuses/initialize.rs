//! Connections: with an `initialize` of megabytes, which the server could keep as long as the connection, and more than it keeps in all.

use crate::abuse::Abuser;
use serde_json::{Value, json};

/// How many requests are under way at once.
const CONCURRENT: usize = 16;

fn message(name: String) -> Value {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": name, "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

async fn initialize(abuser: &Abuser, name: String) -> Option<String> {
    let request = abuser.tenant.request("POST", "/mcp").header("accept", "application/json, text/event-stream");
    let response = request.json(&message(name)).send().await.ok()?;
    let id = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let _ = response.bytes().await;
    id
}

/// Opens a connection. Returns its id, unless it was refused.
pub async fn connect(abuser: &Abuser) -> Option<String> {
    initialize(abuser, "x".into()).await
}

pub async fn large(abuser: Abuser) {
    let bytes = abuser.times(8 << 20, 40 << 20);
    loop {
        for _ in 0..6 {
            initialize(&abuser, "x".repeat(bytes)).await;
        }
        abuser.in_effect();
    }
}

pub async fn many(abuser: Abuser) {
    let count = abuser.times(300, 2_100);
    loop {
        for _ in 0..count / CONCURRENT {
            futures_util::future::join_all((0..CONCURRENT).map(|_| connect(&abuser))).await;
        }
        abuser.in_effect();
    }
}
