//! Deletion by owners, and the quota on everything that they store. Named sessions and their logs, logical sessions and executions could not
//! be deleted, and only heaps had a quota, so that one owner could fill the disk with logs, results and output.

use crate::fixture::{Folders, Server};
use serde_json::{Value, json};

async fn used(server: &Server) -> u64 {
    server.get("/api/usage").await.1["stored_bytes"].as_u64().expect("bytes")
}

#[tokio::test]
async fn a_named_session_is_deleted_by_its_owner() {
    let server = Server::start();
    for name in ["notes", "s0", &"ab".repeat(32)] {
        server.run_with(json!({ "code": "1", "session": name })).await;
        let before = used(&server).await;
        assert_eq!(server.delete(&format!("/api/sessions/{name}")).await, (200, json!({ "ok": true })), "{name}");
        assert!(used(&server).await < before, "it makes room at once");
        assert_eq!(server.delete(&format!("/api/sessions/{name}")).await.0, 404, "{name} is gone");
        let (_, log) = server.get(&format!("/api/session-snapshots?session={name}")).await;
        assert_eq!(log["entries"], json!([]), "{name}");
        server.run_with(json!({ "code": "2", "session": name })).await;
        let (_, log) = server.get(&format!("/api/session-snapshots?session={name}&fields=index,code")).await;
        assert_eq!(log["entries"], json!([{ "index": 0, "code": "2" }]), "a new session with that name");
    }
}

#[tokio::test]
async fn an_ended_execution_is_deleted_with_its_output() {
    let server = Server::start();
    let record = server.run("console.log('x'.repeat(100_000)); 'y'.repeat(100_000)").await;
    let path = format!("/api/executions/{}", record["execution_id"].as_str().expect("an id"));
    let before = used(&server).await;
    assert_eq!(server.delete(&path).await, (200, json!({ "ok": true })));
    assert!(used(&server).await + 200_000 <= before);
    for gone in [server.get(&path).await, server.get(&format!("{path}/output")).await, server.delete(&path).await] {
        assert_eq!((gone.0, &gone.1["type"]), (404, &json!("urn:heapstead:error:execution_not_found")));
    }
    let outputs = std::process::Command::new("find").arg(server.folders().database()).args(["-name", "*.out*"]).output().expect("listed");
    assert!(!String::from_utf8_lossy(&outputs.stdout).contains(record["execution_id"].as_str().expect("an id")), "its output is gone");
    let (_, running) = server.post("/api/exec", json!({ "code": "await new Promise(done => setTimeout(done, 250000))" })).await;
    let path = format!("/api/executions/{}", running["execution_id"].as_str().expect("an id"));
    let (status, refused) = server.delete(&path).await;
    assert_eq!((status, &refused["type"], &refused["ok"]), (409, &json!("urn:heapstead:error:execution_running"), &Value::Bool(false)));
    server.post(&format!("{path}/cancel"), json!({})).await;
    assert_eq!(server.delete(&path).await.0, 200);
}

#[tokio::test]
async fn an_owner_at_its_storage_quota_is_refused_until_it_deletes() {
    let server = Server::start_with(&Folders::new(), &["--max-stored-mb-per-owner", "24"]);
    let record = server.run_with(json!({ "code": "for (let i = 0; i < 40; i++) console.log('x'.repeat(1 << 20))" })).await;
    let path = format!("/api/executions/{}", record["execution_id"].as_str().expect("an id"));
    let (_, end) = server.get(&format!("{path}/output?byte_offset=0&byte_limit=1")).await;
    let total = end["total_bytes"].as_u64().expect("bytes");
    assert!((15 << 20..26 << 20).contains(&total), "the output is cut at the quota: {total}");
    let (_, last) = server.get(&format!("{path}/output?byte_offset={}", total - 90)).await;
    let last = last["data"].as_str().expect("text").lines().last().expect("a line").to_owned();
    assert_eq!(last, "[output truncated: you have 24 MB stored, which is as much as an owner may have]");
    let heap = "0".repeat(64);
    let tag = async || server.put(&format!("/api/heaps/{heap}/tags"), json!({ "tags": { "a": "1" } })).await;
    for (status, refused) in
        [server.post("/api/exec", json!({ "code": "1" })).await, tag().await, server.post("/api/sessions", json!({})).await]
    {
        assert_eq!((status, &refused["type"]), (429, &json!("urn:heapstead:error:storage_quota_exceeded")), "{refused}");
    }
    assert_eq!(server.get(&path).await.0, 200, "reading is possible");
    assert_eq!(server.delete(&path).await.0, 200, "deleting is possible");
    assert_eq!(server.run("1").await["status"], "completed", "there is room again");
    assert_eq!(tag().await.0, 200);
}
