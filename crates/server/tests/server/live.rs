//! Live sessions: turns that are acknowledged when the journal has them, whose heaps are stored later. Nothing acknowledged is lost, whatever is
//! killed.

use crate::fixture::{Folders, Random, Server};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const JOURNAL: &[&str] = &["--session-durability", "journal"];

pub async fn open(server: &Server) -> String {
    server.post("/api/sessions", json!({})).await.1["session_id"].as_str().expect("an id").to_owned()
}

pub async fn turn(server: &Server, session: &str, code: &str) -> Value {
    server.run_with(json!({ "code": code, "session": session })).await
}

/// The result of a turn that completes.
pub async fn result(server: &Server, session: &str, code: &str) -> String {
    let record = turn(server, session, code).await;
    assert_eq!(record["status"], "completed", "{code}: {record}");
    record["result"].as_str().expect("a result").to_owned()
}

/// The record of an execution once its heap is no longer pending.
async fn settled(server: &Server, id: &Value) -> Value {
    let begun = Instant::now();
    loop {
        let (_, record) = server.get(&format!("/api/executions/{}", id.as_str().expect("an id"))).await;
        if record["heap_state"] != "pending" {
            return record;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint: {record}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_turn_is_acknowledged_before_its_heap_is_stored() {
    let server = Server::start_with(&Folders::new(), JOURNAL);
    let session = open(&server).await;
    let mut records = Vec::new();
    for n in 1..=10 {
        let record = turn(&server, &session, "globalThis.n = (globalThis.n ?? 0) + 1").await;
        assert_eq!((&record["result"], &record["heap"], &record["heap_state"]), (&json!(n.to_string()), &Value::Null, &json!("pending")));
        records.push(record);
    }
    let last = settled(&server, &records[9]["execution_id"]).await;
    assert_eq!(last["heap_state"], "stored", "the newest state gets a heap: {last}");
    let again = server.run_with(json!({ "code": "n", "heap": last["heap"] })).await;
    assert_eq!(again["result"], "10", "the heap is that of the turn");
    for (index, record) in records.iter().enumerate() {
        let (_, now) = server.get(&format!("/api/executions/{}", record["execution_id"].as_str().expect("an id"))).await;
        assert!(now["heap_state"] == "stored" || now["heap_state"] == "skipped", "turn {index}: {now}");
        assert_eq!(now["heap"].is_null(), now["heap_state"] == "skipped", "{now}");
        // On demand, every turn has one.
        let (_, now) = server.get(&format!("/api/executions/{}?materialize=true", record["execution_id"].as_str().expect("an id"))).await;
        assert_eq!(now["heap_state"], "stored", "{now}");
        let ran = server.run_with(json!({ "code": "n", "heap": now["heap"] })).await;
        assert_eq!(ran["result"], (index + 1).to_string());
    }
    let (_, log) = server.get(&format!("/api/session-snapshots?session={session}&fields=index,input_heap,output_heap")).await;
    let entries = log["entries"].as_array().or(log.as_array()).unwrap_or_else(|| panic!("{log}"));
    assert_eq!(entries.len(), 10, "{log}");
    for pair in entries.windows(2) {
        assert_eq!(pair[0]["output_heap"], pair[1]["input_heap"], "{log}");
    }
    let (_, replayed) = server.post(&format!("/api/sessions/{session}/replay"), json!({})).await;
    assert_eq!((&replayed["identical"], replayed["turns"].as_array().map(Vec::len)), (&json!(true), Some(10)), "{replayed}");
}

/// The log shows a heap for every turn on demand, also of undone turns, page by page.
#[tokio::test]
async fn the_log_of_a_session_has_every_heap_on_demand() {
    let server = Server::start_with(&Folders::new(), JOURNAL);
    let session = open(&server).await;
    for n in 1..=6 {
        assert_eq!(result(&server, &session, "globalThis.n = (globalThis.n ?? 0) + 1").await, n.to_string());
    }
    let log = |query: &'static str| {
        let path = format!("/api/session-snapshots?session={session}&{query}");
        let server = &server;
        async move { server.get(&path).await.1 }
    };
    let unstored = log("fields=output_heap").await;
    assert!(unstored["entries"].as_array().is_some_and(|entries| entries.iter().any(|entry| entry["output_heap"].is_null())), "{unstored}");
    let (status, undone) = server.post(&format!("/api/sessions/{session}/undo"), json!({ "turns": 2 })).await;
    assert_eq!(status, 200, "{undone}");
    let page = log("fields=output_heap&materialize=true&limit=2").await;
    assert_eq!((page["entries"].as_array().map(Vec::len), &page["next_cursor"]), (Some(2), &json!("2")), "{page}");
    let all = log("fields=index,output_heap&materialize=true").await;
    let entries = all["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 6, "{all}");
    for (index, entry) in entries.iter().enumerate() {
        let ran = server.run_with(json!({ "code": "n", "heap": entry["output_heap"], "on_missing_heap": "fail" })).await;
        assert_eq!(ran["result"], (index + 1).to_string(), "{entry}");
    }
    assert_eq!(result(&server, &session, "n").await, "4", "the session is where it was");
}

#[tokio::test]
async fn acknowledged_turns_survive_the_server() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, JOURNAL);
    let session = open(&server).await;
    result(
        &server,
        &session,
        "let n = 0; const seen = [Math.random()]; class Kept { #at = Date.now(); get at() { return this.#at } } const kept = new Kept(); 0",
    )
    .await;
    for n in 1..=20_u64 {
        assert_eq!(result(&server, &session, "seen.push(Math.random()); n += 1").await, n.to_string());
        if n % 4 == 0 {
            let state = result(&server, &session, "JSON.stringify([seen, kept.at])").await;
            server.kill();
            server = Server::start_with(&folders, JOURNAL);
            assert_eq!(result(&server, &session, "JSON.stringify([seen, kept.at])").await, state, "after {n} turns");
        }
    }
    let (_, replayed) = server.post(&format!("/api/sessions/{session}/replay"), json!({})).await;
    assert_eq!(replayed["identical"], true, "{replayed}");
}

#[tokio::test]
async fn a_turn_without_effect_leaves_no_trace() {
    let server = Server::start_with(&Folders::new(), JOURNAL);
    let session = open(&server).await;
    result(&server, &session, "let n = 1; let list = [1]").await;
    for (body, status) in [
        (json!({ "code": "n = 100; list.push(2); throw new Error('no')" }), "failed"),
        (json!({ "code": "n = 100; list.push(2); while (true);", "execution_timeout_secs": 1 }), "timed_out"),
        (json!({ "code": "n = 100; list.push(2); (" }), "failed"),
        (json!({ "code": "n = 100; const big = []; for (;;) big.push(new Array(1e4).fill(1.5))" }), "failed"),
    ] {
        let mut body = body;
        body["session"] = json!(session);
        let record = server.run_with(body.clone()).await;
        assert_eq!((&record["status"], &record["heap_state"]), (&json!(status), &Value::Null), "{body}: {record}");
        assert_eq!(result(&server, &session, "JSON.stringify([n, list, typeof big])").await, r#""[1,[1],\"undefined\"]""#, "{body}");
    }
}

#[tokio::test]
async fn what_can_not_be_repeated_is_stored_before_the_answer() {
    let server = Server::start_with(&Folders::new(), JOURNAL);
    let session = open(&server).await;
    result(&server, &session, "let n = 1; const weak = new WeakRef(globalThis); 1").await;
    let record = turn(&server, &session, "weak.deref() === globalThis ? n += 1 : 0").await;
    assert_eq!((&record["result"], record["heap"].is_string(), &record["heap_state"]), (&json!("2"), true, &Value::Null), "{record}");
    assert!(record["warnings"][0].as_str().is_some_and(|warning| warning.contains("WeakRef")), "{record}");
    let snapshot = server.run_with(json!({ "code": "n += 1", "session": session, "durability": "snapshot" })).await;
    assert!(snapshot["heap"].is_string(), "{snapshot}");
    let tagged = server.run_with(json!({ "code": "n += 1", "session": session, "tags": { "a": "b" } })).await;
    assert!(tagged["heap"].is_string(), "who tags a heap gets one: {tagged}");
    assert_eq!(result(&server, &session, "n += 1").await, "5");
    let again = server.run_with(json!({ "code": "n", "heap": tagged["heap"] })).await;
    assert_eq!(again["result"], "4");
}

#[tokio::test]
async fn the_head_may_move_elsewhere() {
    let server = Server::start_with(&Folders::new(), JOURNAL);
    let session = open(&server).await;
    let heap = server.run("var n = 100; n").await["heap"].clone();
    assert_eq!(result(&server, &session, "var n = 1; n").await, "1");
    let given = server.run_with(json!({ "code": "n += 1", "session": session, "heap": heap })).await;
    assert_eq!((&given["result"], given["heap"].is_string()), (&json!("101"), true), "{given}");
    assert_eq!(result(&server, &session, "n += 1").await, "102", "the session continues from there");
    let other_cap = server.run_with(json!({ "code": "n += 1", "session": session, "heap_memory_max_mb": 32 })).await;
    assert_eq!(other_cap["result"], "103", "{other_cap}");
    assert_eq!(result(&server, &session, "n += 1").await, "104");
    // A fork has a heap of its own, at once.
    let (status, fork) = server.post(&format!("/api/sessions/{session}/fork"), json!({})).await;
    assert_eq!(status, 200, "{fork}");
    let fork = fork["session_id"].as_str().expect("an id").to_owned();
    assert_eq!(result(&server, &fork, "n += 1000").await, "1104");
    assert_eq!(result(&server, &session, "n").await, "104");
}

#[tokio::test]
async fn without_live_sessions_everything_else_works() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, JOURNAL);
    let session = open(&server).await;
    for n in 1..=5 {
        assert_eq!(result(&server, &session, "globalThis.n = (globalThis.n ?? 0) + 1").await, n.to_string());
    }
    server.kill();
    let server = Server::start_with(&folders, &["--session-durability", "journal", "--live", "off"]);
    let record = turn(&server, &session, "n += 1").await;
    assert_eq!((&record["result"], record["heap"].is_string()), (&json!("6"), true), "{record}");
    assert_eq!(result(&server, &session, "n += 1").await, "7");
}

/// Live sessions are evicted when they are not used, and nobody notices.
#[tokio::test]
async fn an_evicted_session_is_resumed() {
    let server = Server::start_with(&Folders::new(), &["--session-durability", "journal", "--live-idle-secs", "1"]);
    let session = open(&server).await;
    for n in 1..=3 {
        let record = turn(&server, &session, "globalThis.n = (globalThis.n ?? 0) + 1").await;
        assert_eq!(record["result"], n.to_string(), "{record}");
        let is_resumed = record["continuity"]["resumed_from_snapshot"] == true;
        assert_eq!(is_resumed, n > 1, "{record}");
        let live = turn(&server, &session, "n").await;
        assert!(live["continuity"].is_null(), "nothing happened: {live}");
        tokio::time::sleep(Duration::from_millis(2500)).await;
    }
    let (_, replayed) = server.post(&format!("/api/sessions/{session}/replay"), json!({})).await;
    assert_eq!(replayed["identical"], true, "{replayed}");
}

/// A run with another cap runs on another worker. The bound on turns without a heap could be evaded so.
#[tokio::test]
async fn a_turn_with_another_cap_starts_from_a_stored_heap() {
    let server = Server::start_with(&Folders::new(), JOURNAL);
    let session = open(&server).await;
    let first = turn(&server, &session, "var n = 1").await;
    let second = server.run_with(json!({ "code": "n += 1", "session": session, "heap_memory_max_mb": 100 })).await;
    assert_eq!((&second["result"], &second["heap_state"]), (&json!("2"), &json!("pending")), "{second}");
    let (_, first) = server.get(&format!("/api/executions/{}", first["execution_id"].as_str().expect("an id"))).await;
    assert_eq!(first["heap_state"], "stored", "{first}");
}

/// Turns without a heap are bounded: the next one waits for a checkpoint, or is refused if none can be written.
#[tokio::test]
async fn turns_without_a_heap_are_bounded() {
    let folders = Folders::new();
    let arguments = ["--session-durability", "journal", "--journal-tail-turns", "3"];
    let mut server = Server::start_with(&folders, &arguments);
    let session = open(&server).await;
    let mut records = Vec::new();
    for _ in 0..4 {
        records.push(turn(&server, &session, "globalThis.n = (globalThis.n ?? 0) + 1").await);
    }
    let (_, third) = server.get(&format!("/api/executions/{}", records[2]["execution_id"].as_str().expect("an id"))).await;
    assert_eq!(third["heap_state"], "stored", "the fourth turn has waited for it: {third}");
    let heap = third["heap"].clone();

    let record = turn(&server, &session, "globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); n").await;
    assert_eq!(record["status"], "completed", "the journal holds it: {record}");
    let mut refused = Value::Null;
    for _ in 0..4 {
        refused = turn(&server, &session, "n += 1").await;
        if refused["status"] == "failed" {
            break;
        }
    }
    assert!(refused["error"].as_str().is_some_and(|error| error.contains("maxByteLength") && error.contains("`heap`")), "{refused}");
    // The bound holds for a session that is resumed, too.
    server.kill();
    let server = Server::start_with(&folders, &arguments);
    for _ in 0..2 {
        let refused = turn(&server, &session, "n").await;
        assert!(refused["error"].as_str().is_some_and(|error| error.contains("maxByteLength") && error.contains("`heap`")), "{refused}");
    }
    let earlier = server.run_with(json!({ "code": "n", "session": session, "heap": heap })).await;
    assert_eq!(earlier["result"], "3", "what the error says works: {earlier}");
    assert_eq!(result(&server, &session, "n += 1").await, "4");
}

/// Story: the bound was checked before a session was resumed, when nothing of it was in memory. So each resume added a turn to what the next one
/// had to repeat.
#[tokio::test]
async fn a_session_that_is_resumed_before_every_turn_has_no_longer_tail() {
    let server = Server::start_with(&Folders::new(), &["--journal-tail-turns", "3"]);
    let session = open(&server).await;
    for n in 1..=10 {
        assert_eq!(result(&server, &session, "globalThis.n = (globalThis.n ?? 0) + 1").await, n.to_string());
        children_of(server.pid() as i32).into_iter().flat_map(children_of).for_each(kill);
        let (_, view) = server.get(&format!("/api/sessions/{session}")).await;
        assert!(view["tail_turns"].as_u64().is_some_and(|turns| turns <= 3), "{view}");
    }
}

/// Story: which functions are optimised decides how deep code can recurse, and which of them are depends on what ran in the process before. A
/// turn that was near the limit failed when it was repeated on a restored heap, so it and all later ones were lost.
#[tokio::test]
async fn turns_that_recurse_deeply_survive_a_crash() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, JOURNAL);
    let session = open(&server).await;
    let hot = "function depth(list) { return list ? 1 + depth(list.next) : 0 } \
        function make(n) { let list = null; for (let i = 0; i < n; i++) list = { next: list }; return list } \
        for (let i = 0; i < 300; i++) depth(make(2000)); 1";
    let stored = turn(&server, &session, hot).await;
    settled(&server, &stored["execution_id"]).await;
    let deep = turn(&server, &session, "const deep = depth(make(10_500)); deep").await;
    assert_eq!(deep["result"], "10500", "optimised frames are small: {deep}");
    assert!(deep["warnings"][0].as_str().is_some_and(|text| text.contains("more than half of the stack")), "{deep}");
    assert_eq!(result(&server, &session, "const shallow = depth(make(5_000)); shallow").await, "5000");
    server.kill();
    let server = Server::start_with(&folders, JOURNAL);
    assert_eq!(result(&server, &session, "[deep, shallow]").await, "[10500,5000]");
}

/// Story: the refusal advised an undo that was refused too, unless it went back to a stored heap by chance.
#[tokio::test]
async fn the_steps_that_the_refusal_of_a_full_tail_names_work() {
    let server = Server::start_with(&Folders::new(), &["--journal-tail-turns", "3"]);
    for (is_stored, by_undo) in [(true, true), (true, false), (false, true), (false, false)] {
        let session = open(&server).await;
        let turns = ["globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); globalThis.n = 2", "n += 1", "n += 1"];
        if is_stored {
            let stored = turn(&server, &session, "globalThis.n = 1").await;
            settled(&server, &stored["execution_id"]).await;
        }
        for code in turns {
            result(&server, &session, code).await;
        }
        let refused = turn(&server, &session, "n").await;
        let error = refused["error"].as_str().unwrap_or_else(|| panic!("{refused}"));
        assert!(error.starts_with("the last 3 turns of the session") && error.contains("maxByteLength"), "{error}");
        let after = |name: &str| error.split_once(name).unwrap_or_else(|| panic!("no {name} in {error}")).1;
        let expected = if is_stored { "\"number\"" } else { "\"undefined\"" };
        if by_undo {
            let turns: u64 = after("`turns`: ").split(')').next().and_then(|turns| turns.parse().ok()).expect("a number");
            let (status, undone) = server.post(&format!("/api/sessions/{session}/undo"), json!({ "turns": turns })).await;
            assert_eq!(status, 200, "{undone}");
            assert_eq!(result(&server, &session, "typeof n").await, expected, "{error}");
        } else {
            let heap = if is_stored { after("`heap`: `").split('`').next().expect("a key") } else { "" };
            let record = server.run_with(json!({ "code": "typeof n", "session": session, "heap": heap })).await;
            assert_eq!(record["result"], expected, "{error}: {record}");
        }
        assert_eq!(result(&server, &session, "1").await, "1", "it goes on");
    }
}

/// Story: the tail counted turns before a heap that was stored on demand, so that turns were refused too early.
#[tokio::test]
async fn a_heap_that_was_stored_on_demand_shortens_the_tail() {
    let server = Server::start_with(&Folders::new(), &["--journal-tail-turns", "3"]);
    let session = open(&server).await;
    result(&server, &session, "globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); globalThis.n = 1").await;
    let free = turn(&server, &session, "kept = null; n += 1").await;
    result(&server, &session, "kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); n += 1").await;
    let (_, stored) = server.get(&format!("/api/executions/{}?materialize=true", free["execution_id"].as_str().expect("an id"))).await;
    assert_eq!(stored["heap_state"], "stored", "{stored}");
    for n in 4..=5 {
        assert_eq!(result(&server, &session, "n += 1").await, n.to_string());
    }
    let refused = turn(&server, &session, "n").await;
    assert!(refused["error"].as_str().is_some_and(|error| error.starts_with("the last 3 turns")), "{refused}");
}

/// Story: a session whose processes had all been killed could not write a checkpoint, so once its tail was full, all turns were refused.
#[tokio::test]
async fn a_session_with_a_full_tail_whose_processes_are_killed_is_resumed() {
    let server = Server::start_with(&Folders::new(), &["--journal-tail-turns", "2"]);
    let session = open(&server).await;
    for n in 1..=2 {
        assert_eq!(result(&server, &session, "globalThis.n = (globalThis.n ?? 0) + 1").await, n.to_string());
    }
    children_of(server.pid() as i32).into_iter().flat_map(children_of).for_each(kill);
    for n in 3..=6 {
        assert_eq!(result(&server, &session, "n += 1").await, n.to_string());
    }
}

/// Story: a turn that asked for its heap ran elsewhere if the head was stored, and the live worker was dropped.
#[tokio::test]
async fn a_session_stays_live_when_a_turn_stores_its_heap() {
    let server = Server::start_with(&Folders::new(), JOURNAL);
    let session = open(&server).await;
    let first = turn(&server, &session, "let n = 1; n").await;
    settled(&server, &first["execution_id"]).await;
    for n in 2..=4 {
        let stored = server.run_with(json!({ "code": "n += 1", "session": session, "durability": "snapshot" })).await;
        assert_eq!((&stored["result"], stored["heap"].is_string()), (&json!(n.to_string()), true), "{stored}");
        assert_eq!(stored["continuity"], Value::Null, "nothing was resumed: {stored}");
        let from_heap = server.run_with(json!({ "code": "n", "heap": stored["heap"] })).await;
        assert_eq!(from_heap["result"], n.to_string(), "the heap is that of the turn");
    }
    let next = turn(&server, &session, "n += 1").await;
    assert_eq!((&next["result"], &next["continuity"]), (&json!("5"), &Value::Null), "{next}");
    assert_eq!(crate::live_monitoring::metric(&server, "heapstead_live_resumes_total").await, 0.0);
}

fn children_of(pid: i32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Processes of the server that run code, and its zygotes, whose children they are.
pub fn workers_of(server: u32) -> Vec<i32> {
    children_of(server as i32).into_iter().flat_map(|zygote| children_of(zygote).into_iter().chain([zygote])).collect()
}

pub fn kill(pid: i32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// Clients take turns in their sessions while the server, its zygote, or any of its workers is killed. Every acknowledged turn is there, none
/// twice, and the state is exact. `SEED=…` replays a failure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_whatever_is_killed() {
    const POINTS: [&str; 7] =
        ["accepted", "heap-stored", "before-commit", "committed", "turn-committed", "checkpoint-stored", "checkpoint-recorded"];
    let rounds = if crate::fixture::torture() { 1000 } else { 60 };
    let random = Random::new();
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, JOURNAL);
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let session = open(&server).await;
        result(&server, &session, "let n = 0; const list = []; 0").await;
        sessions.push((session, 0_u64));
    }
    for round in 0..rounds {
        let seed = random.seed;
        let victim = random.below(3);
        if victim == 0 {
            server.kill();
            let crash = format!("{}:{}", POINTS[random.below(POINTS.len() as u64) as usize], 1 + random.below(12));
            let variables = if random.below(2) == 0 { vec![("HEAPSTEAD_CRASH_AT", crash.as_str())] } else { Vec::new() };
            server = Server::start_in(&folders, &[JOURNAL, &["--log", "error"]].concat(), &variables);
        }
        for (session, known) in &mut sessions {
            // What was acknowledged is there. A turn that was not may be there, or not.
            let (mut shown, mut last) = (None, Value::Null);
            for _ in 0..100 {
                let (status, record) = attempt(&server, session, "JSON.stringify([n, list])").await;
                last = record.clone();
                if status == 200 && record["status"] == "completed" {
                    shown = record["result"].as_str().map(str::to_owned);
                    break;
                }
                if status == 0 {
                    server.kill();
                    server = Server::start_in(&folders, &[JOURNAL, &["--log", "error"]].concat(), &[]);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let shown = shown.unwrap_or_else(|| panic!("round {round}: the session can't be used: {last}; SEED={seed}"));
            let state: (u64, Vec<u64>) = serde_json::from_str(&serde_json::from_str::<String>(&shown).expect("a text")).expect("the state");
            assert_eq!(state.1, (1..=state.0).collect::<Vec<_>>(), "round {round}: each turn once; SEED={seed}");
            assert!(state.0 >= *known, "round {round}: {} turns, {known} were acknowledged; SEED={seed}", state.0);
            *known = state.0;
            for _ in 0..random.below(4) {
                if victim > 0 && random.below(3) == 0 {
                    let workers = workers_of(server.pid());
                    if !workers.is_empty() {
                        kill(workers[random.below(workers.len() as u64) as usize]);
                    }
                }
                let next = *known + 1;
                let (status, record) =
                    attempt(&server, session, &format!("n += 1; list.push(n); if (n !== {next}) throw new Error(`${{n}}`); n")).await;
                match (status, record["status"].as_str()) {
                    (200, Some("completed")) => *known += 1,
                    // Unknown: it is looked at in the next round.
                    _ => break,
                }
            }
        }
    }
}

/// Runs code, and returns the status 0 if the server does not answer.
async fn attempt(server: &Server, session: &str, code: &str) -> (u16, Value) {
    let body = json!({ "code": code, "session": session, "wait_secs": 30 });
    let sent = crate::fixture::client().post(format!("{}/api/exec", server.url)).json(&body).send().await;
    match sent {
        Ok(response) => {
            let status = response.status().as_u16();
            (status, response.json().await.unwrap_or_default())
        }
        Err(_) => (0, Value::Null),
    }
}
