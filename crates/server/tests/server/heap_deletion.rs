//! Owners delete their heaps. Until now a heap stayed for its retention and counted towards the quota, whatever its owner wanted.

use crate::fixture::{Folders, SNAPSHOT, Server};
use crate::heap_store_state::{HeapState, settled, until};
use crate::pause::Pause;
use serde_json::{Value, json};

const IN_USE: &str = "urn:heapstead:error:heap_in_use";
const NOT_FOUND: &str = "urn:heapstead:error:heap_not_found";

fn path(record: &Value) -> String {
    format!("/api/heaps/{}", record["heap"].as_str().unwrap_or_else(|| panic!("{record}")))
}

#[tokio::test]
async fn a_heap_is_deleted_with_its_tags_its_file_and_its_share_of_the_quota() {
    let server = Server::start();
    let logged = json!({ "code": "let n = 1", "session": "notes", "tags": { "name": "n" } });
    let record = server.run_with(logged).await;
    let (_, before) = server.get("/api/usage").await;
    assert_eq!(server.delete(&path(&record)).await, (200, json!({ "ok": true })));
    let (_, after) = server.get("/api/usage").await;
    assert_eq!(after["heap_bytes"], 0, "{after}");
    assert!(after["other_bytes"].as_u64() < before["other_bytes"].as_u64(), "its tags are gone: {after}");
    for (status, gone) in [
        server.delete(&path(&record)).await,
        server.get(&path(&record)).await,
        server.get(&format!("{}/file", path(&record))).await,
        server.post("/api/exec", json!({ "code": "n", "heap": record["heap"], "on_missing_heap": "fail" })).await,
    ] {
        assert_eq!((status, &gone["type"]), (404, &json!(NOT_FOUND)), "{gone}");
    }
    assert_eq!(server.get(&format!("{}/tags", path(&record))).await.1, json!({ "tags": {} }));
    assert_eq!(settled(server.folders()).await, HeapState::default());
    let sidecars = std::fs::read_dir(server.folders().heaps().join(".meta")).map(Iterator::count).unwrap_or_default();
    assert_eq!(sidecars, 0, "its sidecar is gone");
    // The log still names it; a run on it is one on a heap that does not exist.
    let (_, log) = server.get("/api/session-snapshots?session=notes&fields=output_heap").await;
    assert_eq!(log["entries"][0]["output_heap"], record["heap"]);
    let fresh = server.run_with(json!({ "code": "typeof n", "heap": record["heap"] })).await;
    assert_eq!((&fresh["result"], fresh["warnings"].as_array().map(Vec::len)), (&json!("\"undefined\""), Some(1)), "{fresh}");
    // The same code makes the same heap again.
    assert_eq!(server.run("let n = 1").await["heap"], record["heap"]);
    assert_eq!(settled(server.folders()).await.files.len(), 2);
}

#[tokio::test]
async fn a_heap_that_is_needed_is_not_deleted() {
    let server = Server::start_with(&Folders::new(), SNAPSHOT);
    let (_, session) = server.post("/api/sessions", json!({})).await;
    let id = session["session_id"].as_str().expect("an id");
    let earlier = server.run_with(json!({ "code": "let n = 1", "session": id })).await;
    let head = server.run_with(json!({ "code": "n = 2", "session": id })).await;
    let (status, refused) = server.delete(&path(&head)).await;
    assert_eq!((status, &refused["type"], &refused["ok"]), (409, &json!(IN_USE), &json!(false)), "{refused}");
    assert!(refused["detail"].as_str().is_some_and(|text| text.contains("is the head of a session")), "{refused}");
    assert_eq!(server.delete(&path(&earlier)).await.0, 200, "only the log of the session has it");
    assert_eq!(server.run_with(json!({ "code": "n", "session": id })).await["result"], "2", "the session goes on");

    let code = "await new Promise(done => setTimeout(done, 250000))";
    let base = server.run("let base = 1").await;
    let (_, running) = server.post("/api/exec", json!({ "code": code, "heap": base["heap"] })).await;
    let execution = running["execution_id"].as_str().expect("an id");
    let (status, refused) = server.delete(&path(&base)).await;
    assert_eq!((status, &refused["type"]), (409, &json!(IN_USE)), "{refused}");
    assert!(refused["detail"].as_str().is_some_and(|text| text.contains(execution) && text.contains("cancel it first")), "{refused}");
    server.post(&format!("/api/executions/{execution}/cancel"), json!({})).await;
    server.get(&format!("/api/executions/{execution}?wait_secs=60")).await;
    assert_eq!(server.delete(&path(&base)).await.0, 200);
    assert_eq!(server.delete(&format!("/api/sessions/{id}")).await.0, 200);
    assert_eq!(server.delete(&path(&head)).await.0, 200);
}

#[tokio::test]
async fn the_command_line_deletes_heaps_of_a_server_and_of_the_local_stores() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let keys: Vec<String> = [server.run("let a = 1").await, server.run("let b = 1").await, server.run("let c = 1").await]
        .iter()
        .map(|record| record["heap"].as_str().expect("a key").to_owned())
        .collect();
    let heaps = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_heapstead"));
        let ran = command.arg("heaps").args(arguments).output().expect("the command runs");
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let (code, said) = heaps(&["rm", &keys[0], &keys[1], "--url", &server.url]);
    assert_eq!((code, said.matches("deleted").count()), (Some(0), 2), "{said}");
    let (code, said) = heaps(&["rm", &keys[0], "--url", &server.url]);
    assert_eq!((code, said.contains("is not known")), (Some(1), true), "{said}");
    folders.heaps_command(&["rm", &keys[2]]);
    // The command waits for the removal of the file: it may be the only process.
    assert!(!folders.heaps().join(&keys[2]).exists());
    assert_eq!(settled(&folders).await, HeapState::default());
}

/// Kills a server at each point of a deletion. The next server removes the file when it starts; the record is gone as soon as it is answered.
#[tokio::test]
async fn a_deletion_that_was_interrupted_is_completed_by_the_next_server() {
    for point in ["heap-deleted", "removal-recorded", "heap-removed"] {
        let folders = Folders::new();
        let mut server = Server::start_in(&folders, &[], &[("HEAPSTEAD_CRASH_AT", &format!("{point}:1"))]);
        let kept = server.run("let kept = 1").await;
        let record = server.run("let n = 1").await;
        let _ = server.client.delete(format!("{}{}", server.url, path(&record))).send().await;
        tokio::time::timeout(std::time::Duration::from_secs(30), server.ended()).await.expect("it kills itself");
        server.kill();
        let server = Server::start_with(&folders, &[]);
        assert_eq!(server.get(&path(&record)).await.0, 404, "{point}");
        let state = settled(&folders).await;
        assert_eq!(state.files.iter().map(String::as_str).collect::<Vec<_>>(), [kept["heap"].as_str().expect("a key")], "{point}");
        assert_eq!(server.run_with(json!({ "code": "kept", "heap": kept["heap"], "on_missing_heap": "fail" })).await["result"], "1");
    }
}

/// One server deletes a heap while another one stores it: it is refused, or the heap is stored again. It is never lost.
#[tokio::test]
async fn a_heap_that_another_server_stores_is_not_lost() {
    const CODE: &str = "let same = 1";
    for point in ["heap-reserved", "heap-stored", "before-commit"] {
        let folders = Folders::new();
        let (deleting, pause) = (Server::start_with(&folders, &[]), Pause::new(&folders));
        let storing = pause.server(&folders, point);
        let record = deleting.run(CODE).await;
        let running = run(&storing, CODE);
        let paused = pause.reached().await;
        let (status, refused) = deleting.delete(&path(&record)).await;
        assert_eq!((status, &refused["type"]), (409, &json!(IN_USE)), "{point}: {refused}");
        drop(paused);
        assert_eq!(running.await.expect("no panic")["heap"], record["heap"]);
        assert_eq!(deleting.delete(&path(&record)).await.0, 200, "{point}");
        assert_eq!(settled(&folders).await, HeapState::default(), "{point}");
    }
    for point in ["heap-deleted", "removal-recorded", "heap-removed"] {
        let folders = Folders::new();
        let (storing, pause) = (Server::start_with(&folders, &[]), Pause::new(&folders));
        let deleting = pause.server(&folders, point);
        let record = storing.run(CODE).await;
        let deletion = tokio::spawn(deleting.client.delete(format!("{}{}", deleting.url, path(&record))).send());
        let paused = pause.reached().await;
        let running = run(&storing, CODE);
        // No server has begun to remove the file at the first point, so the heap is stored again without waiting.
        if point == "heap-deleted" {
            until(&folders, |state| state.recorded.len() == 1).await;
        }
        drop(paused);
        assert_eq!(deletion.await.expect("no panic").expect("an answer").status(), 200, "{point}");
        let again = running.await.expect("no panic");
        assert_eq!(again["heap"], record["heap"], "{point}: {again}");
        let state = settled(&folders).await;
        assert_eq!(state.files.len(), 1, "{point}");
        let next = storing.run_with(json!({ "code": "same", "heap": record["heap"], "on_missing_heap": "fail" })).await;
        assert_eq!(next["result"], "1", "{point}: {next}");
    }
}

fn run(server: &Server, code: &str) -> tokio::task::JoinHandle<Value> {
    let request = server.client.post(format!("{}/api/exec", server.url)).json(&json!({ "code": code, "wait_secs": 60 }));
    tokio::spawn(async move { request.send().await.expect("an answer").json().await.expect("JSON") })
}
