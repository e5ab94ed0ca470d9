//! Graceful shutdown: runs that end in time complete, others report that they did not, and waiting callers get a response.

use crate::fixture::{Folders, Server};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const STOPPED: &str = "the server was shut down before the run ended: run the code again";

/// Starts a run and waits until its code runs.
async fn running(server: &Server, code: &str) -> String {
    let body = json!({ "code": format!("console.log('running'); {code}"), "execution_timeout_secs": 300 });
    let (status, answer) = server.post("/api/exec", body).await;
    assert_eq!(status, 202, "{answer}");
    let id = answer["execution_id"].as_str().expect("an id").to_owned();
    let (_, page) = server.get(&format!("/api/executions/{id}/output?wait_secs=60")).await;
    assert_eq!(page["data"], "running\n");
    id
}

/// A caller that waits at this path during shutdown.
fn waiting(server: &Server, path: String) -> tokio::task::JoinHandle<(u16, String)> {
    let request = server.client.get(format!("{}{path}", server.url));
    tokio::spawn(async move {
        let response = request.send().await.expect("an answer");
        (response.status().as_u16(), response.text().await.expect("a body"))
    })
}

async fn terminate(server: Server) -> Option<i32> {
    tokio::task::spawn_blocking(move || server.terminate()).await.expect("the end")
}

#[tokio::test]
async fn a_run_that_ends_in_time_completes() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let id = running(&server, "await new Promise((done) => setTimeout(done, 1500)); 'done'").await;
    let record = waiting(&server, format!("/api/executions/{id}?wait_secs=60"));
    let events = waiting(&server, format!("/api/executions/{id}/events"));
    // Both callers wait before the signal is sent.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let began = Instant::now();
    assert_eq!(terminate(server).await, Some(0));
    assert!(began.elapsed() < Duration::from_secs(9), "shutdown ends with the last run: {:?}", began.elapsed());
    let (status, record) = record.await.expect("an answer");
    let record: Value = serde_json::from_str(&record).expect("JSON");
    assert_eq!((status, &record["status"], &record["result"]), (200, &json!("completed"), &json!("\"done\"")));
    let (_, events) = events.await.expect("events");
    assert!(events.contains("event: record") && events.contains("\"status\":\"completed\""), "{events}");
    let server = Server::start_with(&folders, &[]);
    assert_eq!(server.get(&format!("/api/executions/{id}")).await.1, record);
}

#[tokio::test]
async fn a_run_that_does_not_end_in_time_fails_and_says_why() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &["--max-concurrent-executions", "2"]);
    let codes = ["for (;;) {}", "await new Promise((done) => setTimeout(done, 200_000))"];
    let ids = [running(&server, codes[0]).await, running(&server, codes[1]).await];
    let (_, queued) = server.post("/api/exec", json!({ "code": "1" })).await;
    let ids = [ids[0].clone(), ids[1].clone(), queued["execution_id"].as_str().expect("an id").to_owned()];
    let waiting: Vec<_> = ids.iter().map(|id| waiting(&server, format!("/api/executions/{id}?wait_secs=300"))).collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(terminate(server).await, Some(0));
    let mut records = Vec::new();
    for answer in waiting {
        let (status, record) = answer.await.expect("an answer");
        let record: Value = serde_json::from_str(&record).expect("JSON");
        assert_eq!((status, &record["status"], &record["error"]), (200, &json!("failed"), &json!(STOPPED)), "{record}");
        records.push(record);
    }
    let server = Server::start_with(&folders, &[]);
    for (id, record) in ids.iter().zip(records) {
        assert_eq!(server.get(&format!("/api/executions/{id}")).await.1, record, "the record matches the response");
    }
}

#[tokio::test]
async fn a_stateless_run_that_does_not_end_in_time_is_answered_too() {
    let server = Server::start_with(&Folders::new(), &["--stateless"]);
    let request = server.client.post(format!("{}/api/exec", server.url));
    let request = request.json(&json!({ "code": "await new Promise((done) => setTimeout(done, 200_000))", "execution_timeout_secs": 300 }));
    let answer = tokio::spawn(async move { request.send().await.expect("an answer").status().as_u16() });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(terminate(server).await, Some(0));
    assert_eq!(answer.await.expect("an answer"), 503);
}
