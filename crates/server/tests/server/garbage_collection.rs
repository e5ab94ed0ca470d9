//! Garbage collection keeps every heap that a running execution, a session, a recent log entry or a tag refers to, whatever its age.

use crate::fixture::{Folders, SNAPSHOT, Server};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

const LONG: Duration = Duration::from_secs(40 * 24 * 3600);

fn key(record: &Value) -> String {
    record["heap"].as_str().unwrap_or_else(|| panic!("{record}")).to_owned()
}

/// Makes a heap look unused for a long time.
fn age(folders: &Folders, key: &str) {
    let file = std::fs::File::options().write(true).open(folders.heaps().join(key)).expect("a heap");
    file.set_modified(SystemTime::now() - LONG).expect("aged");
    let database = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("the database");
    database.busy_timeout(Duration::from_secs(5)).expect("a timeout");
    database.execute("UPDATE heaps SET last_used_at = last_used_at - ?1 WHERE key = ?2", (LONG.as_micros() as i64, key)).expect("aged");
}

async fn collected(server: &Server, dry_run: bool) -> BTreeSet<String> {
    let (status, answer) = server.post("/api/heaps/gc", json!({ "dry_run": dry_run })).await;
    assert_eq!(status, 200, "{answer}");
    removed(&answer)
}

fn removed(answer: &Value) -> BTreeSet<String> {
    answer["removed"].as_array().expect("a list").iter().map(|key| key.as_str().expect("a key").to_owned()).collect()
}

#[tokio::test]
async fn heaps_referenced_by_running_executions_logs_and_tags_stay() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let unused = key(&server.run("var unused = 1").await);
    let running_on = key(&server.run("var base = 1").await);
    let tagged = key(&server.run_with(json!({ "code": "var tagged = 1", "tags": { "keep": "me" } })).await);
    let log_input = key(&server.run("var input = 1").await);
    let in_session = json!({ "code": "var output = 1", "heap": log_input, "session": "log" });
    let log_output = key(&server.run_with(in_session).await);
    let code = "console.log('on'); await new Promise(done => setTimeout(done, 60000))";
    let (_, running) = server.post("/api/exec", json!({ "code": code, "heap": running_on })).await;
    let running = running["execution_id"].as_str().expect("an id");
    server.get(&format!("/api/executions/{running}/output?wait_secs=30")).await;
    let all = [&unused, &running_on, &tagged, &log_input, &log_output];
    all.iter().for_each(|key| age(&folders, key));

    assert_eq!(collected(&server, true).await, BTreeSet::from([unused.clone()]));
    assert!(all.iter().all(|key| folders.heaps().join(key).exists()), "a dry run removes nothing");
    assert_eq!(collected(&server, false).await, BTreeSet::from([unused.clone()]));
    assert!(!folders.heaps().join(&unused).exists());
    for key in &all[1..] {
        assert_eq!(server.run_with(json!({ "code": "1", "heap": key, "on_missing_heap": "fail" })).await["status"], "completed", "{key}");
    }

    // Without its reference, each heap is removed.
    server.post(&format!("/api/executions/{running}/cancel"), json!({})).await;
    let deleted = server.client.delete(format!("{}/api/heaps/{tagged}/tags", server.url)).send().await.expect("an answer");
    assert_eq!(deleted.status(), 200);
    let database = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("the database");
    database.busy_timeout(Duration::from_secs(5)).expect("a timeout");
    database.execute("UPDATE log SET timestamp = timestamp - ?1", [LONG.as_micros() as i64]).expect("aged");
    all[1..].iter().for_each(|key| age(&folders, key));
    let expected = BTreeSet::from([running_on, tagged, log_input, log_output]);
    assert_eq!(collected(&server, false).await, expected);
}

#[tokio::test]
async fn the_head_of_a_session_stays_as_long_as_the_session() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, SNAPSHOT);
    let (_, session) = server.post("/api/sessions", json!({})).await;
    let session = session["session_id"].as_str().expect("an id");
    let before = key(&server.run_with(json!({ "code": "var x = 1", "session": session })).await);
    let head = key(&server.run_with(json!({ "code": "x = 2", "session": session })).await);
    let database = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("the database");
    database.busy_timeout(Duration::from_secs(5)).expect("a timeout");
    database.execute("UPDATE log SET timestamp = timestamp - ?1", [LONG.as_micros() as i64]).expect("aged");
    [&before, &head].iter().for_each(|key| age(&folders, key));
    assert_eq!(collected(&server, false).await, BTreeSet::from([before]));
    assert_eq!(server.delete(&format!("/api/sessions/{session}")).await.0, 200);
    assert_eq!(collected(&server, false).await, BTreeSet::from([head]));
}

/// Two servers may share a folder, each with its own database. Regression: heaps of one server looked unreferenced to the other.
#[tokio::test]
async fn heaps_of_another_server_are_collected_only_with_unknown() {
    let (folders, other) = (Folders::new(), Server::start());
    let server = Server::start_with(&folders, &[]);
    let own = key(&server.run("var own = 1").await);
    let theirs = key(&other.run("var theirs = 1").await);
    std::fs::copy(other.folders().heaps().join(&theirs), folders.heaps().join(&theirs)).expect("copied");
    [&own, &theirs].iter().for_each(|key| age(&folders, key));
    for dry_run in [true, false] {
        assert_eq!(collected(&server, dry_run).await, BTreeSet::from([own.clone()]), "dry run: {dry_run}");
        assert!(folders.heaps().join(&theirs).exists());
    }
    for dry_run in [true, false] {
        let (_, answer) = server.post("/api/heaps/gc", json!({ "dry_run": dry_run, "unknown": true })).await;
        assert_eq!(removed(&answer), BTreeSet::from([theirs.clone()]), "dry run: {dry_run}");
        assert_eq!(folders.heaps().join(&theirs).exists(), dry_run);
    }
}

/// Regression: a dry run listed damaged heaps too, which are kept for inspection.
#[tokio::test]
async fn a_dry_run_and_a_real_run_agree_on_damaged_heaps() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let damaged = key(&server.run("var damaged = 1").await);
    let whole = key(&server.run("var whole = 1").await);
    let file = std::fs::File::options().write(true).open(folders.heaps().join(&damaged)).expect("a heap");
    file.set_len(1000).expect("damaged");
    [&damaged, &whole].iter().for_each(|key| age(&folders, key));
    for dry_run in [true, false] {
        assert_eq!(collected(&server, dry_run).await, BTreeSet::from([whole.clone()]), "dry run: {dry_run}");
    }
    assert!(folders.heaps().join(&damaged).exists());
}

/// Regression: a heap whose payload was damaged has an intact header, so it was removed once its retention was over.
#[tokio::test]
async fn a_heap_with_a_damaged_payload_is_kept_for_inspection() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let damaged = key(&server.run("var damaged = 1").await);
    let path = folders.heaps().join(&damaged);
    let mut bytes = std::fs::read(&path).expect("a heap");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).expect("damaged");
    let (_, record) = server.post("/api/exec", serde_json::json!({ "code": "1", "heap": damaged, "wait_secs": 60 })).await;
    assert_eq!(record["error_code"], "heap_damaged", "{record}");
    age(&folders, &damaged);
    assert_eq!(collected(&server, false).await, BTreeSet::new());
    assert!(path.exists());
}
