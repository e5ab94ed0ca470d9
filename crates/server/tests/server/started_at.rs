//! `started_at`: the time of acceptance until the code starts, and then the time of its start.

use crate::fixture::{Folders, Server};
use jiff::Timestamp;
use serde_json::{Value, json};

fn time(record: &Value, field: &str) -> Timestamp {
    record[field].as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{field}: {record}"))
}

async fn accept(server: &Server, code: &str) -> String {
    let (status, accepted) = server.post("/api/exec", json!({ "code": code })).await;
    assert_eq!(status, 202, "{accepted}");
    accepted["execution_id"].as_str().expect("an id").to_owned()
}

async fn listed(server: &Server, id: &str) -> Value {
    let (_, list) = server.get("/api/executions").await;
    list["executions"].as_array().and_then(|list| list.iter().find(|item| item["execution_id"] == id)).expect("listed").clone()
}

#[tokio::test]
async fn started_at_is_the_start_of_the_code() {
    const HELD_MS: i128 = 1500;
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, &["--max-concurrent-executions", "1"]);
    let holding = accept(&server, &format!("console.log('holds'); await new Promise(done => setTimeout(done, {HELD_MS}))")).await;
    server.get(&format!("/api/executions/{holding}/output?wait_secs=30")).await;
    let code = "console.log('begins'); const began = Date.now(); await new Promise(done => setTimeout(done, 1000)); began";
    let id = accept(&server, code).await;
    let (_, queued) = server.get(&format!("/api/executions/{id}")).await;
    let accepted = time(&queued, "started_at");
    server.get(&format!("/api/executions/{id}/output?wait_secs=30")).await;
    let (_, running) = server.get(&format!("/api/executions/{id}")).await;
    assert_eq!(running["status"], "running", "{running}");
    assert_eq!(listed(&server, &id).await["started_at"], running["started_at"], "the list has the same value");
    let (_, ended) = server.get(&format!("/api/executions/{id}?wait_secs=30")).await;
    assert_eq!((&ended["status"], &ended["started_at"]), (&json!("completed"), &running["started_at"]), "{ended}");
    let started = time(&ended, "started_at");
    let began: i128 = ended["result"].as_str().and_then(|text| text.parse().ok()).expect("a time");
    let apart_ms = (started.as_nanosecond() / 1_000_000 - began).abs();
    assert!(apart_ms < 500, "{apart_ms} ms apart from what the code saw: {ended}");
    let waited_ms = (started.as_nanosecond() - accepted.as_nanosecond()) / 1_000_000;
    assert!(waited_ms > HELD_MS / 2, "it waited for {waited_ms} ms: {queued}, then {ended}");
    assert!(started <= time(&ended, "completed_at"), "{ended}");
    assert_eq!(listed(&server, &id).await["started_at"], ended["started_at"]);
    server.kill();
    let server = Server::start_with(&folders, &[]);
    assert_eq!(server.get(&format!("/api/executions/{id}")).await.1, ended, "another server has the same value");
}

#[tokio::test]
async fn started_at_of_a_run_that_never_started_is_its_acceptance() {
    let server = Server::start_with(&Folders::new(), &["--max-concurrent-executions", "1"]);
    accept(&server, "await new Promise(done => setTimeout(done, 60000))").await;
    let id = accept(&server, "1").await;
    let (_, queued) = server.get(&format!("/api/executions/{id}")).await;
    server.post(&format!("/api/executions/{id}/cancel"), json!({})).await;
    let (_, cancelled) = server.get(&format!("/api/executions/{id}")).await;
    assert_eq!((&cancelled["status"], &cancelled["started_at"]), (&json!("cancelled"), &queued["started_at"]));
}
