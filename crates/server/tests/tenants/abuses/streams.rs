//! Event streams and listening connections that nobody reads.

use crate::abuse::Abuser;
use crate::abuses::initialize;
use serde_json::json;

pub async fn idle(abuser: Abuser) {
    let code = "for (let i = 0; ; i++) { console.log('x'.repeat(1000)); await new Promise((done) => setTimeout(done, 5)) }";
    let body = json!({ "code": code, "execution_timeout_secs": 60 });
    let (_, record) = abuser.tenant.ask("POST", "/api/exec", Some(body)).await;
    let path = format!("/api/executions/{}/events", record["execution_id"].as_str().unwrap_or_default());
    let mut held = Vec::new();
    for _ in 0..abuser.times(100, 1_000) {
        held.push(abuser.tenant.begin("GET", &path, "application/json", 0).await);
    }
    abuser.in_effect();
    std::future::pending::<()>().await;
}

/// The stream of a connection for messages from the server, of many connections.
pub async fn listen(abuser: Abuser) {
    let mut held = Vec::new();
    for _ in 0..abuser.times(50, 500) {
        let Some(connection) = initialize::connect(&abuser).await else { continue };
        let request = abuser.tenant.request("GET", "/mcp").header("accept", "text/event-stream");
        held.push(request.header("mcp-session-id", connection).send().await);
    }
    abuser.in_effect();
    std::future::pending::<()>().await;
}
