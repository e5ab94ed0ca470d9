//! Two servers on one database store and collect the same heap, in every order: it is never lost and never left without a record.
//!
//! Story: the lock between storing and collecting a heap was one of the process. Another server could remove the file of a heap after it was
//! stored and before it was recorded: the run completed, and its heap was gone.

use crate::fixture::{Folders, Server};
use crate::heap_store_state::{HeapState, database, settled};
use crate::pause::Pause;
use serde_json::{Value, json};
use std::fs::File;
use std::time::{Duration, SystemTime};

const CODE: &str = "let same = 1";

fn age(folders: &Folders) {
    database(folders).execute_batch("UPDATE heaps SET last_used_at = 0").expect("aged");
    for entry in std::fs::read_dir(folders.heaps()).expect("heaps").flatten().filter(|entry| entry.path().is_file()) {
        let file = File::options().append(true).open(entry.path()).expect("a file");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)).expect("aged");
    }
}

async fn collect(server: &Server) -> Value {
    server.post("/api/heaps/gc", json!({})).await.1["removed"].clone()
}

fn run(server: &Server) -> tokio::task::JoinHandle<Value> {
    let request = server.client.post(format!("{}/api/exec", server.url)).json(&json!({ "code": CODE, "wait_secs": 60 }));
    tokio::spawn(async move { request.send().await.expect("an answer").json().await.expect("JSON") })
}

/// The heap is there, and is the only one.
async fn check(folders: &Folders, server: &Server, record: &Value) {
    assert_eq!(record["status"], "completed", "{record}");
    let state = settled(folders).await;
    assert_eq!(state.files.iter().map(String::as_str).collect::<Vec<_>>(), [record["heap"].as_str().expect("a heap")]);
    let next = server.run_with(json!({ "code": "same", "heap": record["heap"], "on_missing_heap": "fail" })).await;
    assert_eq!(next["result"], "1", "{next}");
}

#[tokio::test]
async fn a_heap_that_one_server_stores_is_not_collected_by_another() {
    for point in ["heap-reserved", "heap-stored", "before-commit"] {
        let folders = Folders::new();
        let (collecting, pause) = (Server::start_with(&folders, &[]), Pause::new(&folders));
        let storing = pause.server(&folders, point);
        collecting.run(CODE).await;
        age(&folders);
        let running = run(&storing);
        let paused = pause.reached().await;
        assert_eq!(collect(&collecting).await, json!([]), "{point}: it is being stored");
        drop(paused);
        check(&folders, &collecting, &running.await.expect("no panic")).await;
    }
}

#[tokio::test]
async fn a_heap_that_one_server_removes_is_stored_again_by_another() {
    for point in ["removal-recorded", "heap-removed"] {
        let folders = Folders::new();
        let (storing, pause) = (Server::start_with(&folders, &[]), Pause::new(&folders));
        storing.run(CODE).await;
        let collecting = pause.server(&folders, point);
        age(&folders);
        let (client, url) = (collecting.client.clone(), collecting.url.clone());
        let collected =
            tokio::spawn(async move { client.post(format!("{url}/api/heaps/gc")).json(&json!({})).send().await.expect("an answer") });
        let paused = pause.reached().await;
        assert_eq!(HeapState::of(&folders).removals, 1, "{point}");
        let running = run(&storing);
        // Long enough for a run that does not wait for the removal.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(!running.is_finished(), "{point}: it waits for the removal");
        drop(paused);
        assert_eq!(collected.await.expect("no panic").status(), 200);
        check(&folders, &storing, &running.await.expect("no panic")).await;
    }
}

/// The server that removes a heap dies meanwhile: the one that stores it does not wait for ever.
#[tokio::test]
async fn a_heap_whose_remover_died_is_stored_again() {
    let folders = Folders::new();
    let (storing, pause) = (Server::start_with(&folders, &[]), Pause::new(&folders));
    storing.run(CODE).await;
    let mut collecting = pause.server(&folders, "removal-recorded");
    age(&folders);
    let (client, url) = (collecting.client.clone(), collecting.url.clone());
    let collected = tokio::spawn(async move { client.post(format!("{url}/api/heaps/gc")).json(&json!({})).send().await });
    let _paused = pause.reached().await;
    let running = run(&storing);
    tokio::time::sleep(Duration::from_millis(200)).await;
    collecting.kill();
    assert!(collected.await.expect("no panic").is_err());
    check(&folders, &storing, &running.await.expect("no panic")).await;
}
