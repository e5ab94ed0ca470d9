//! Sessions and heaps outlive their engine: what another engine can't load is rebuilt by repeating the runs that led to it. Another set of V8's
//! flags is another engine.

use crate::fixture::{Folders, Server};
use serde_json::{Value, json};

const OTHER_ENGINE: &[&str] = &["--jitless"];

/// State of all kinds, with randomness and times in it.
const TURNS: [&str; 4] = [
    "var seen = [Math.random(), Date.now()]; function* ids() { for (;;) yield crypto.randomUUID() } var next = ids(); seen.length",
    "class Kept { #at = Date.now(); get at() { return this.#at } } var kept = new Kept(); seen.push(next.next().value); console.log(kept.at)",
    "const x: number = seen.length; await new Promise(done => setTimeout(done, 10)); seen.push(performance.now()); x",
    "var error = new Error('kept'); var when = new Map([[kept, new Date()]]); seen.push(next.next().value)",
];
const STATE: &str = "JSON.stringify([seen, kept.at, [...when.values()], error.stack])";

async fn open(server: &Server) -> String {
    server.post("/api/sessions", json!({})).await.1["session_id"].as_str().expect("an id").to_owned()
}

async fn run(server: &Server, session: &str, code: &str) -> Value {
    let record = server.run_with(json!({ "code": code, "session": session })).await;
    assert_eq!(record["status"], "completed", "{code}: {record}");
    record
}

#[tokio::test]
async fn a_session_goes_from_engine_to_engine() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let session = open(&server).await;
    for code in TURNS {
        run(&server, &session, code).await;
    }
    let state = run(&server, &session, STATE).await["result"].clone();
    assert_eq!(server.terminate(), Some(0));

    for (arguments, added) in [(OTHER_ENGINE, 1), (&[], 2), (OTHER_ENGINE, 3)] {
        let server = Server::start_with(&folders, arguments);
        let first = run(&server, &session, STATE).await;
        assert_eq!(first["result"], state, "{arguments:?}");
        assert_eq!(first["continuity"]["resumed_from_snapshot"], true, "{first}");
        let next = run(&server, &session, "globalThis.added = (globalThis.added ?? 0) + 1").await;
        assert_eq!((&next["result"], &next["continuity"]), (&json!(added.to_string()), &Value::Null), "it is rebuilt once: {next}");
        let (_, report) = server.post(&format!("/api/sessions/{session}/replay"), json!({})).await;
        assert_eq!(report["identical"], true, "all turns of all engines repeat: {report}");
        assert_eq!(server.terminate(), Some(0));
    }
}

#[tokio::test]
async fn a_session_returns_to_the_last_state_that_repeats() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let mut sessions = Vec::new();
    for codes in [["var n = 1", "n += 1", "n += 10", "n += 100"], ["var n = 1", "n += 1", "new WeakRef({}).deref(); n += 10", "n += 100"]] {
        let session = open(&server).await;
        let mut records = Vec::new();
        for code in codes {
            records.push(run(&server, &session, code).await);
        }
        sessions.push((session, records));
    }
    assert_eq!(server.terminate(), Some(0));
    // As if the third turn had done something else.
    let database = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("the database");
    let id = sessions[0].1[2]["execution_id"].as_str().expect("an id");
    assert_eq!(database.execute("UPDATE journal SET result_sha256 = zeroblob(32) WHERE execution_id = ?", [id]).expect("changed"), 1);
    drop(database);

    let server = Server::start_with(&folders, OTHER_ENGINE);
    let (session, _) = &sessions[0];
    let refused = server.run_with(json!({ "code": "n", "session": session, "on_stale": "fail" })).await;
    assert_eq!((&refused["status"], &refused["error_code"]), (&json!("failed"), &json!("session_stale")), "{refused}");
    assert!(refused["error"].as_str().is_some_and(|error| error.contains("turn 2") && error.contains("its result differs")), "{refused}");
    let record = run(&server, session, "n").await;
    let continuity = &record["continuity"];
    assert_eq!(record["result"], "2", "{record}");
    assert_eq!(
        (&continuity["stale_binding_recovered"], &continuity["reason"], &continuity["turn"]),
        (&json!(true), &json!("replay_diverged"), &json!(2)),
        "{record}"
    );
    assert!(record["warnings"][0].as_str().is_some_and(|warning| warning.contains("before turn 2")), "{record}");
    let next = run(&server, session, "n += 1").await;
    assert_eq!((&next["result"], &next["continuity"]), (&json!("3"), &Value::Null), "it is reported once: {next}");

    // The same for a turn that can't be repeated.
    let (session, _) = &sessions[1];
    let record = run(&server, session, "n").await;
    assert_eq!((&record["result"], &record["continuity"]["turn"]), (&json!("2"), &json!(2)), "{record}");
    assert!(record["warnings"][0].as_str().is_some_and(|warning| warning.contains("WeakRef")), "{record}");

    // Without a journal there is nothing to rebuild from.
    assert_eq!(server.terminate(), Some(0));
    let database = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("the database");
    database.execute("DELETE FROM journal", []).expect("deleted");
    drop(database);
    let server = Server::start_with(&folders, &[]);
    let record = server.run_with(json!({ "code": "n", "session": session })).await;
    assert_eq!((&record["status"], &record["error_code"]), (&json!("failed"), &json!("heap_incompatible")), "{record}");
    assert!(record["warnings"][0].as_str().is_some_and(|warning| warning.contains("no run is recorded")), "{record}");
}

/// A replay that was interrupted says nothing about the run: the session must not lose its state because the machine was slow.
#[tokio::test]
async fn a_replay_that_does_not_come_to_its_end_changes_nothing() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let session = open(&server).await;
    run(&server, &session, "var n = 1").await;
    // A fraction of a second with V8's compilers, many seconds without.
    run(&server, &session, "for (let i = 0; i < 4e8; i++); n += 1").await;
    run(&server, &session, "n += 10").await;
    assert_eq!(server.terminate(), Some(0));
    let server = Server::start_with(&folders, OTHER_ENGINE);
    let (_, accepted) = server.post("/api/exec", json!({ "code": "n", "session": session })).await;
    let id = accepted["execution_id"].as_str().expect("an id");
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(server.post(&format!("/api/executions/{id}/cancel"), json!({})).await.0, 200);
    let (_, interrupted) = server.get(&format!("/api/executions/{id}")).await;
    assert_eq!((&interrupted["status"], &interrupted["continuity"]), (&json!("cancelled"), &Value::Null), "{interrupted}");
    let record = run(&server, &session, "n").await;
    assert_eq!((&record["result"], &record["continuity"]["resumed_from_snapshot"]), (&json!("12"), &json!(true)), "{record}");
}

#[tokio::test]
async fn a_heap_outside_sessions_is_upgraded() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let mut heap = Value::Null;
    for code in TURNS {
        heap = server.run_with(json!({ "code": code, "heap": heap })).await["heap"].clone();
    }
    // The same state again: the heap has two producers, one of which starts from it.
    let same = server.run_with(json!({ "code": "1", "heap": heap })).await["heap"].clone();
    let state = server.run_with(json!({ "code": STATE, "heap": heap })).await["result"].clone();
    let key = heap.as_str().expect("a heap");
    let (_, answer) = server.post(&format!("/api/heaps/{key}/upgrade"), json!({})).await;
    assert_eq!((&answer["upgraded"], &answer["runs"]), (&heap, &json!(0)), "{answer}");
    assert_eq!(server.terminate(), Some(0));

    let server = Server::start_with(&folders, OTHER_ENGINE);
    let refused = server.run_with(json!({ "code": STATE, "heap": heap })).await;
    assert_eq!(refused["error_code"], "heap_incompatible", "{refused}");
    let (status, answer) = server.post(&format!("/api/heaps/{key}/upgrade"), json!({})).await;
    assert_eq!((status, &answer["heap"], &answer["runs"]), (200, &heap, &json!(TURNS.len())), "{answer}");
    assert_ne!(answer["upgraded"], heap);
    let on_it = server.run_with(json!({ "code": STATE, "heap": answer["upgraded"] })).await;
    assert_eq!(on_it["result"], state, "{on_it}");
    let same = same.as_str().expect("a heap");
    assert_eq!(server.post(&format!("/api/heaps/{same}/upgrade"), json!({})).await.0, 200);

    let unknown = "0".repeat(64);
    assert_eq!(server.post(&format!("/api/heaps/{unknown}/upgrade"), json!({})).await.0, 404);
    let database = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("the database");
    database.execute("UPDATE journal SET output_sha256 = zeroblob(32)", []).expect("changed");
    database.execute("UPDATE journal SET rebuilt_heap = NULL", []).expect("changed");
    let (status, refusal) = server.post(&format!("/api/heaps/{key}/upgrade"), json!({})).await;
    assert_eq!((status, &refusal["type"]), (409, &json!("urn:heapstead:error:replay_diverged")), "{refusal}");
    // The run that changes nothing is the only one left that produced the heap, and started from it.
    database.execute("DELETE FROM journal WHERE output_heap IS NOT input_heap", []).expect("deleted");
    let (status, refusal) = server.post(&format!("/api/heaps/{same}/upgrade"), json!({})).await;
    assert_eq!((status, &refusal["type"]), (409, &json!("urn:heapstead:error:not_recorded")), "{refusal}");
    database.execute("DELETE FROM journal", []).expect("deleted");
    let (status, refusal) = server.post(&format!("/api/heaps/{key}/upgrade"), json!({})).await;
    assert_eq!((status, &refusal["type"]), (409, &json!("urn:heapstead:error:not_recorded")), "{refusal}");
}
