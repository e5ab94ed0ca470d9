//! Repeating a run from its journal over REST: it does the same again, nothing is stored, and what can't be repeated is refused with the reason.

use crate::fixture::{Folders, SNAPSHOT, Server};
use serde_json::{Value, json};

async fn replay(server: &Server, record: &Value) -> (u16, Value) {
    let id = record["execution_id"].as_str().expect("an id");
    server.post(&format!("/api/executions/{id}/replay"), json!({})).await
}

#[tokio::test]
async fn runs_are_repeated_identically() {
    let server = Server::start_with(&Folders::new(), SNAPSHOT);
    let random = "console.log(Math.random(), Date.now()); globalThis.id = crypto.randomUUID()";
    let first = server.run_with(json!({ "code": random })).await;
    let on_it = server.run_with(json!({ "code": "console.log(performance.now()); id + Date.now()", "heap": first["heap"] })).await;
    let failed = server.run("console.log(1); throw new Error(`at ${Math.random()}`)").await;
    let session = server.post("/api/sessions", json!({})).await.1["session_id"].clone();
    let mut records = vec![first, on_it, failed];
    for _ in 0..3 {
        let code =
            "var list = (globalThis.list ?? []).concat(Math.random()); setTimeout(() => console.log(list.length, Date.now()), 5); list";
        records.push(server.run_with(json!({ "code": code, "session": session })).await);
    }
    let executions = server.get("/api/executions?limit=100").await;
    for record in &records {
        let (status, report) = replay(&server, record).await;
        assert_eq!((status, &report["identical"], &report["differs"]), (200, &json!(true), &json!([])), "{record}: {report}");
        assert_eq!((&report["status"], &report["recorded_heap"]), (&record["status"], &record["heap"]), "{report}");
        assert_eq!((&report["heap"], &report["engine"]), (&record["heap"], &report["recorded_engine"]), "{report}");
    }
    assert_eq!(server.get("/api/executions?limit=100").await, executions, "a replay is not an execution");
    let next = server.run_with(json!({ "code": "list.length", "session": session })).await;
    assert_eq!(next["result"], "3", "a replay does not change the session: {next}");
}

#[tokio::test]
async fn a_replay_that_differs_says_in_what() {
    let server = Server::start();
    let record = server.run("console.log('a'); 1").await;
    let database = rusqlite::Connection::open(server.folders().database().join("heapstead.db")).expect("the database");
    let change = |column: &str| {
        let changed = database.execute(&format!("UPDATE journal SET {column} = zeroblob(32)"), []).expect("changed");
        assert_eq!(changed, 1);
    };
    for (column, differs) in [("output_sha256", json!(["output"])), ("result_sha256", json!(["result", "output"]))] {
        change(column);
        let (status, report) = replay(&server, &record).await;
        assert_eq!((status, &report["identical"], &report["differs"]), (200, &json!(false), &differs), "{report}");
    }
}

/// Generated code, a stack with positions in it, and a result that stays on the heap.
const TYPED: &str = "enum Level { Low = 1, High }\nclass Step { constructor(private name: string) {}\n  \
    failed(): Error { return new Error(`${this.name} ${Level.High}`) } }\nvar kept = new Step('typed').failed(); console.log(kept.stack); \
    Math.random()\n//# keepResult";

/// The journal held the source, and a replay stripped its types again: a later version of the stripper could have executed something else.
#[tokio::test]
async fn replays_evaluate_the_javascript_that_ran() {
    let server = Server::start_with(&Folders::new(), SNAPSHOT);
    let record = server.run(TYPED).await;
    let database = rusqlite::Connection::open(server.folders().database().join("heapstead.db")).expect("the database");
    let javascript: String =
        database.query_row("SELECT code FROM journal WHERE form IS NOT NULL", [], |row| row.get(0)).expect("JavaScript in the journal");
    assert!(!javascript.contains("enum") && !javascript.contains("keepResult") && javascript.contains("Level"), "{javascript}");
    let identical = async || {
        let (status, report) = replay(&server, &record).await;
        assert_eq!((status, &report["identical"], &report["heap"]), (200, &json!(true), &record["heap"]), "{report}");
    };
    identical().await;
    let set = |columns: &str| assert_eq!(database.execute(&format!("UPDATE journal SET {columns}"), []).expect("set"), 1);
    set("code = replace(code, 'typed', 'other')");
    let (_, report) = replay(&server, &record).await;
    assert_eq!(report["differs"], json!(["output"]), "{report}");
    // As an earlier version has recorded it.
    set(&format!("form = NULL, code = '{}'", TYPED.replace('\'', "''")));
    identical().await;
    set("form = x'ff'");
    let (status, refusal) = replay(&server, &record).await;
    assert_eq!((status, &refusal["type"]), (409, &json!("urn:heapstead:error:not_recorded")), "{refusal}");
}

/// A worker sent nothing but the failure of its run, so the journal had the source. It still has if nothing has run.
#[tokio::test]
async fn failed_runs_are_repeated_from_the_javascript_that_ran() {
    let server = Server::start();
    let database = rusqlite::Connection::open(server.folders().database().join("heapstead.db")).expect("the database");
    let again = async |record: &Value| {
        let (status, report) = replay(&server, record).await;
        assert_eq!((status, &report["status"]), (200, &json!("failed")), "{report}");
        report["differs"].clone()
    };
    let recorded = |form: &str| -> String {
        database.query_row(&format!("SELECT code FROM journal WHERE form {form}"), [], |row| row.get(0)).expect("an entry")
    };
    let thrown = server.run("enum E { A } console.log(E.A); throw new Error('typed' as string)").await;
    assert!(!recorded("IS NOT NULL").contains("enum"), "{}", recorded("IS NOT NULL"));
    assert_eq!(again(&thrown).await, json!([]));
    assert_eq!(database.execute("UPDATE journal SET code = replace(code, 'typed', 'other')", []).expect("changed"), 1);
    assert_eq!(again(&thrown).await, json!(["result"]));
    let refused = server.run("enum E { A } let x: = 1").await;
    assert_eq!(recorded("IS NULL"), "enum E { A } let x: = 1");
    assert_eq!(again(&refused).await, json!([]));
}

#[tokio::test]
async fn what_was_not_recorded_is_refused_with_the_reason() {
    let server = Server::start();
    let (_, running) = server.post("/api/exec", json!({ "code": "for (;;);" })).await;
    let (status, refusal) = replay(&server, &running).await;
    assert_eq!((status, &refusal["type"]), (409, &json!("urn:heapstead:error:execution_running")), "{refusal}");
    let id = running["execution_id"].as_str().expect("an id");
    server.post(&format!("/api/executions/{id}/cancel"), json!({})).await;
    let sent = server.client.post(format!("{}/api/exec", server.url)).header("X-MCP-Name", "ann");
    let sent = sent.json(&json!({ "code": "mcp.headers['x-mcp-name'] ?? mcp.headers.name", "wait_secs": 30 })).send().await.expect("sent");
    let with_headers: Value = sent.json().await.expect("JSON");
    let weak = server.run("var weak = new WeakRef({}); typeof weak.deref()").await;
    let collected = server.run("1").await;
    let on_it = server.run_with(json!({ "code": "2", "heap": collected["heap"] })).await;
    let key = collected["heap"].as_str().expect("a heap");
    assert_eq!(server.delete(&format!("/api/heaps/{key}")).await.0, 200);
    // To callers without credentials a heap is gone when its file is, which is removed after the answer.
    while server.get(&format!("/api/heaps/{key}")).await.0 != 404 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    for (record, reason) in
        [(&running, "it was stopped before its inputs were complete"), (&with_headers, "`mcp.headers`"), (&weak, "WeakRef"), (&on_it, key)]
    {
        let (status, refusal) = replay(&server, record).await;
        assert_eq!((status, &refusal["type"]), (409, &json!("urn:heapstead:error:not_recorded")), "{record}: {refusal}");
        assert!(refusal["detail"].as_str().is_some_and(|detail| detail.contains(reason)), "`{reason}` is not in {refusal}");
    }
    let (status, refusal) = replay(&server, &json!({ "execution_id": "0".repeat(32) })).await;
    assert_eq!((status, &refusal["type"]), (404, &json!("urn:heapstead:error:execution_not_found")), "{refusal}");
}

/// Each replay has its source and its heap in memory while it waits for a slot.
#[tokio::test]
async fn replays_of_one_owner_wait_for_each_other() {
    const SOURCE_MB: usize = 8;
    let server = Server::start();
    let record = server.run(&format!("/*{}*/ 1", "x".repeat(SOURCE_MB << 20))).await;
    let before = server.peak_memory_mb();
    let replays = futures_util::future::join_all((0..60).map(|_| replay(&server, &record))).await;
    assert!(replays.iter().all(|(status, report)| *status == 200 && report["identical"] == true), "{replays:?}");
    let peak = server.peak_memory_mb();
    // All at once would take more than 60 sources. The C library keeps a freed one for each of the 16 threads that read the database.
    assert!(peak < before + 40 * SOURCE_MB as u64, "{before} MB, then {peak} MB");
}

/// A session whose turns depend on each other, on the clock and on randomness. Returns its id and the records of its turns.
async fn session_of(server: &Server, codes: &[&str]) -> (String, Vec<Value>) {
    let session = server.post("/api/sessions", json!({})).await.1["session_id"].as_str().expect("an id").to_owned();
    let mut records = Vec::new();
    for code in codes {
        let record = server.run_with(json!({ "code": code, "session": session })).await;
        records.push(record);
    }
    (session, records)
}

const TURNS: [&str; 6] = [
    "var seen = [Math.random()]; function* ids() { for (;;) yield crypto.randomUUID() } var next = ids(); seen.length",
    "seen.push(next.next().value, Date.now()); console.log(seen)",
    "enum Mark { A = 7 } class Typed { constructor(readonly mark: Mark) {} } seen.push(new Typed(Mark.A).mark, new Error('typed').stack)\n//# keepResult",
    "const x: number = seen.length + _; await new Promise(done => setTimeout(done, 20)); seen.push(performance.now()); x",
    "class Kept { #at = Date.now(); get at() { return this.#at } } var kept = new Kept(); kept.at",
    "[...seen, kept.at, next.next().value].join()",
];

#[tokio::test]
async fn the_turns_of_a_session_are_repeated_one_on_the_other() {
    let server = Server::start();
    let (session, records) = session_of(&server, &TURNS).await;
    assert_eq!(server.run_with(json!({ "code": "null.x", "session": session })).await["status"], "failed", "not a turn");
    let replay = async |body: Value| server.post(&format!("/api/sessions/{session}/replay"), body).await;
    let (status, report) = replay(json!({})).await;
    let turns: Vec<_> = records
        .iter()
        .enumerate()
        .map(|(turn, record)| json!({ "turn": turn, "execution_id": record["execution_id"], "outcome": "identical" }))
        .collect();
    assert_eq!((status, &report["identical"], &report["turns"]), (200, &json!(true), &json!(turns)), "{report}");
    let (_, report) = replay(json!({ "from": 1, "to": 2 })).await;
    assert_eq!((&report["turns"], &report["next_from"]), (&json!(turns[1..3]), &json!(3)), "{report}");
    for (body, expected, names) in [
        (json!({ "from": 6 }), 409, "`from` is 6, and the session has no such turn yet"),
        (json!({ "from": 3, "to": 2 }), 400, "`to` is 2: expected a turn from 3"),
        (json!({ "from": -1 }), 400, "`from` is -1"),
    ] {
        let (status, refusal) = replay(body.clone()).await;
        assert_eq!(status, expected, "{body}: {refusal}");
        assert!(refusal["detail"].as_str().is_some_and(|detail| detail.contains(names)), "{body}: {refusal}");
    }
    let (empty, _) = session_of(&server, &[]).await;
    let (status, refusal) = server.post(&format!("/api/sessions/{empty}/replay"), json!({})).await;
    assert_eq!(status, 404, "{refusal}");
}

#[tokio::test]
async fn turns_after_one_that_differs_or_is_not_recorded_are_judged_by_themselves() {
    let server = Server::start();
    let (session, records) = session_of(&server, &["var n = 1", "n += 1", "new WeakRef({}).deref(), n += 1", "n += 1"]).await;
    let database = rusqlite::Connection::open(server.folders().database().join("heapstead.db")).expect("the database");
    let id = records[1]["execution_id"].as_str().expect("an id");
    let changed = database.execute("UPDATE journal SET result_sha256 = zeroblob(32) WHERE execution_id = ?", [id]).expect("changed");
    assert_eq!(changed, 1);
    let (_, report) = server.post(&format!("/api/sessions/{session}/replay"), json!({})).await;
    let outcomes: Vec<_> = report["turns"].as_array().expect("turns").iter().map(|turn| turn["outcome"].clone()).collect();
    assert_eq!(json!(outcomes), json!(["identical", "differs", "not_repeated", "identical"]), "{report}");
    assert_eq!((&report["identical"], &report["turns"][1]["differs"]), (&json!(false), &json!(["result"])), "{report}");
    assert!(report["turns"][2]["reason"].as_str().is_some_and(|reason| reason.contains("WeakRef")), "{report}");
}

/// The heaps in between are gone: everything from the last one that is there is repeated.
#[tokio::test]
async fn a_turn_is_reached_from_an_earlier_heap() {
    let server = Server::start_with(&Folders::new(), SNAPSHOT);
    let (session, records) = session_of(&server, &TURNS).await;
    for record in &records[..3] {
        let key = record["heap"].as_str().expect("a heap");
        assert_eq!(server.delete(&format!("/api/heaps/{key}")).await.0, 200);
    }
    let (_, report) = server.post(&format!("/api/sessions/{session}/replay"), json!({ "from": 3, "to": 3 })).await;
    let expected = json!([{ "turn": 3, "execution_id": records[3]["execution_id"], "outcome": "identical" }]);
    assert_eq!((&report["turns"], &report["identical"]), (&expected, &json!(true)), "{report}");
}
