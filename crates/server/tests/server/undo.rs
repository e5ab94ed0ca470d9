//! Undo: the head of a session moves back, and the log keeps the undone turns.

use crate::fixture::{Folders, Server};
use crate::live::{open, result, turn};
use serde_json::{Value, json};

async fn undo(server: &Server, session: &str, turns: Value) -> (u16, Value) {
    server.post(&format!("/api/sessions/{session}/undo"), turns).await
}

async fn log(server: &Server, session: &str) -> Vec<Value> {
    let (_, log) = server.get(&format!("/api/session-snapshots?session={session}")).await;
    log["entries"].as_array().expect("entries").clone()
}

/// Counts to `last` in a session, one turn each.
async fn counted(server: &Server, session: &str, last: u64) -> Vec<Value> {
    let mut records = Vec::new();
    for n in 1..=last {
        let record = turn(server, session, "globalThis.n = (globalThis.n ?? 0) + 1").await;
        assert_eq!(record["result"], n.to_string(), "{record}");
        records.push(record);
    }
    records
}

#[tokio::test]
async fn a_session_continues_from_before_the_undone_turns() {
    for durability in ["journal", "snapshot"] {
        let folders = Folders::new();
        let mut server = Server::start_with(&folders, &["--session-durability", durability]);
        let session = open(&server).await;
        let records = counted(&server, &session, 4).await;
        let (status, undone) = undo(&server, &session, json!({})).await;
        assert_eq!((status, &undone["undone"]), (200, &json!([3])), "{durability}: {undone}");
        assert_eq!(undone["session_id"], session.as_str());
        let at_head = server.run_with(json!({ "code": "n", "heap": undone["head"] })).await;
        assert_eq!(at_head["result"], "3", "{durability}: the answer has the heap to continue from: {at_head}");
        assert_eq!(result(&server, &session, "n").await, "3", "{durability}");
        // That was a turn: it is undone too.
        let (_, undone) = undo(&server, &session, json!({ "turns": 3 })).await;
        assert_eq!(undone["undone"], json!([1, 2, 4]), "{durability}");
        // What the answer says survives.
        server.kill();
        let server = Server::start_with(&folders, &["--session-durability", durability]);
        assert_eq!(result(&server, &session, "n += 10").await, "11", "{durability}");
        let marks: Vec<_> = log(&server, &session).await.iter().map(|entry| entry["undone"] == true).collect();
        assert_eq!(marks, [false, true, true, true, true, false], "{durability}");

        // An undone turn can be reached by a fork.
        let id = records[3]["execution_id"].as_str().expect("an id");
        let (_, last) = server.get(&format!("/api/executions/{id}?materialize=true")).await;
        let (status, fork) = server.post(&format!("/api/sessions/{session}/fork"), json!({ "heap": last["heap"] })).await;
        assert_eq!(status, 200, "{durability}: {fork}");
        assert_eq!(result(&server, fork["session_id"].as_str().expect("an id"), "n").await, "4", "{durability}");
        let (_, replayed) = server.post(&format!("/api/sessions/{session}/replay"), json!({})).await;
        assert_eq!(
            (&replayed["identical"], replayed["turns"].as_array().map(Vec::len)),
            (&json!(true), Some(6)),
            "{durability}: {replayed}"
        );
    }
}

#[tokio::test]
async fn a_session_is_undone_to_its_beginning_and_not_further() {
    let server = Server::start();
    let session = open(&server).await;
    let (status, refused) = undo(&server, &session, json!({})).await;
    assert_eq!((status, &refused["type"]), (409, &json!("urn:heapstead:error:conflict")), "{refused}");
    counted(&server, &session, 2).await;
    let (status, refused) = undo(&server, &session, json!({ "turns": 3 })).await;
    assert_eq!(status, 409, "{refused}");
    assert!(refused["detail"].as_str().is_some_and(|text| text.contains("`turns` is 3, and 2 turns")), "{refused}");
    assert_eq!(result(&server, &session, "n").await, "2", "nothing was undone");
    for turns in [json!(0), json!(-1), json!(1001), json!("two")] {
        let (status, refused) = undo(&server, &session, json!({ "turns": turns })).await;
        assert!(status == 400 && refused["detail"].as_str().is_some_and(|text| text.contains("turns")), "{turns}: {refused}");
    }
    let (_, undone) = undo(&server, &session, json!({ "turns": 3 })).await;
    assert_eq!((&undone["undone"], &undone["head"]), (&json!([0, 1, 2]), &Value::Null));
    assert_eq!(result(&server, &session, "typeof n").await, "\"undefined\"");
    let (status, _) = undo(&server, &"0".repeat(64), json!({})).await;
    assert_eq!(status, 404);
}

/// A turn that started from another heap is undone to the head before it, not to that heap.
#[tokio::test]
async fn a_turn_from_another_heap_is_undone_to_the_head_before_it() {
    let server = Server::start();
    let session = open(&server).await;
    let other = server.run("var n = 100").await["heap"].clone();
    counted(&server, &session, 2).await;
    let given = server.run_with(json!({ "code": "n += 1", "session": session, "heap": other })).await;
    assert_eq!(given["result"], "101");
    undo(&server, &session, json!({})).await;
    assert_eq!(result(&server, &session, "n").await, "2");
}

/// Undo waits for the turns that were accepted before it.
#[tokio::test]
async fn undo_takes_its_turn() {
    let server = Server::start();
    let session = open(&server).await;
    counted(&server, &session, 1).await;
    let (_, slow) = server
        .post("/api/exec", json!({ "code": "await new Promise(r => setTimeout(r, 500)); n = 50", "session": session, "wait_secs": 0 }))
        .await;
    assert_eq!(slow["status"], "running", "{slow}");
    let (status, undone) = undo(&server, &session, json!({})).await;
    assert_eq!((status, &undone["undone"]), (200, &json!([1])), "{undone}");
    assert_eq!(result(&server, &session, "n").await, "1");
}

/// Story: it was refused, because the state to go back to had to be stored.
#[tokio::test]
async fn a_session_goes_back_to_a_state_that_can_not_be_stored() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, &[]);
    let session = open(&server).await;
    let first = turn(&server, &session, "let n = 1; n").await;
    let id = first["execution_id"].as_str().expect("an id");
    let heap = server.get(&format!("/api/executions/{id}?materialize=true")).await.1["heap"].as_str().expect("a heap").to_owned();
    for code in ["globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); n += 1", "n += 10", "kept = null; n += 100"] {
        result(&server, &session, code).await;
    }
    let (status, undone) = undo(&server, &session, json!({})).await;
    assert_eq!((status, &undone["undone"], &undone["head"]), (200, &json!([3]), &Value::Null), "{undone}");
    assert!(undone["heap_error"].as_str().is_some_and(|why| why.contains("maxByteLength")), "{undone}");
    // The journal starts from there.
    let (status, refusal) = server.delete(&format!("/api/heaps/{heap}")).await;
    assert_eq!((status, &refusal["type"]), (409, &json!("urn:heapstead:error:heap_in_use")), "{refusal}");
    server.kill();
    let mut server = Server::start_with(&folders, &[]);
    let resumed = turn(&server, &session, "[n, kept.maxByteLength]").await;
    assert_eq!(
        (&resumed["result"], &resumed["continuity"]["resumed_from_snapshot"]),
        (&json!("[12,4294967296]"), &json!(true)),
        "{resumed}"
    );
    let (_, undone) = undo(&server, &session, json!({ "turns": 2 })).await;
    assert_eq!(undone["undone"], json!([2, 4]), "{undone}");
    assert_eq!(result(&server, &session, "n").await, "2");
    server.kill();
    // Runs that restore a heap for every turn could not continue from there.
    let server = Server::start_with(&folders, &["--live", "off"]);
    let (status, refused) = undo(&server, &session, json!({})).await;
    assert_eq!((status, &refused["type"]), (409, &json!("urn:heapstead:error:not_recorded")), "{refused}");
    let (status, undone) = undo(&server, &session, json!({ "turns": 2 })).await;
    assert_eq!((status, &undone["head"], &undone["heap_error"]), (200, &json!(heap), &Value::Null), "{undone}");
    assert_eq!(result(&server, &session, "n").await, "1");
}
