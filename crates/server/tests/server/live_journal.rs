//! What the journal of a live session has to hold, and what happens to turns that can't be repeated from it.

use crate::fixture::{Folders, Server};
use crate::live::{open, result, turn, workers_of};
use crate::live_monitoring::metric;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn id(record: &Value) -> &str {
    record["execution_id"].as_str().expect("an id")
}

fn database(folders: &Folders) -> rusqlite::Connection {
    rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("the database")
}

/// Story: a heap could be deleted as soon as a turn without a heap had followed it. The journal repeats such turns from that heap, so they were
/// lost with the memory of the server.
#[tokio::test]
async fn the_heap_that_the_journal_starts_from_can_not_be_deleted() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, &[]);
    let session = open(&server).await;
    result(&server, &session, "globalThis.n = 1").await;
    let stored = turn(&server, &session, "new WeakRef({}).deref(); n += 1").await;
    let heap = stored["heap"].as_str().expect("a heap, because the turn can't be repeated").to_owned();
    // This value can't be saved, so there is no later checkpoint.
    assert_eq!(result(&server, &session, "globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); n += 1").await, "3");
    let (status, refusal) = server.delete(&format!("/api/heaps/{heap}")).await;
    assert_eq!((status, &refusal["type"]), (409, &json!("urn:heapstead:error:heap_in_use")), "{refusal}");
    server.kill();
    let server = Server::start_with(&folders, &[]);
    assert_eq!(result(&server, &session, "n").await, "3");
}

/// Story: a replay had the limit of its run, so a session could not be resumed on a slower engine or a busy machine.
#[tokio::test]
async fn a_replay_may_take_longer_than_its_run() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, &[]);
    let session = open(&server).await;
    result(&server, &session, "var n = 0; for (let i = 0; i < 2e9; i++) n = (n + i) | 0; 1").await;
    let expected = result(&server, &session, "globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); n").await;
    server.kill();
    assert_eq!(database(&folders).execute("UPDATE journal SET timeout_secs = 1", []), Ok(2));
    let server = Server::start_with(&folders, &[]);
    let resumed = turn(&server, &session, "n").await;
    assert_eq!((&resumed["result"], &resumed["continuity"]["resumed_from_snapshot"]), (&json!(expected), &json!(true)), "{resumed}");
}

/// Story: the turns that a replay could not verify stayed in the log like others, so that later undos counted them.
#[tokio::test]
async fn turns_that_are_lost_count_as_undone() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, &[]);
    let session = open(&server).await;
    result(&server, &session, "let n = 0; n").await;
    for n in 1..=4 {
        assert_eq!(result(&server, &session, "n += 1").await, n.to_string());
    }
    server.kill();
    let tampered = "UPDATE journal SET result_sha256 = zeroblob(32) WHERE execution_id = (SELECT execution_id FROM log WHERE idx = 3)";
    assert_eq!(database(&folders).execute(tampered, []), Ok(1));
    let server = Server::start_with(&folders, &[]);
    // Story: the refusal had the code of a failure of the server, and was counted as another divergence.
    for _ in 0..2 {
        let refused = server.run_with(json!({ "code": "n", "session": session, "on_stale": "fail" })).await;
        assert_eq!((&refused["status"], &refused["error_code"]), (&json!("failed"), &json!("session_stale")), "{refused}");
    }
    assert_eq!(metric(&server, "heapstead_replay_divergences_total").await, 0.0);
    let recovered = turn(&server, &session, "n += 10").await;
    assert_eq!(metric(&server, "heapstead_replay_divergences_total").await, 1.0);
    let continuity = &recovered["continuity"];
    assert_eq!(
        (&recovered["result"], &continuity["reason"], &continuity["turn"]),
        (&json!("12"), &json!("replay_diverged"), &json!(3)),
        "{recovered}"
    );
    let (_, log) = server.get(&format!("/api/session-snapshots?session={session}&fields=index,undone")).await;
    let undone: Vec<_> = log["entries"].as_array().expect("entries").iter().map(|entry| entry["undone"] == true).collect();
    assert_eq!(undone, [false, false, false, true, true, false], "{log}");
    assert_eq!(server.post(&format!("/api/sessions/{session}/undo"), json!({})).await.0, 200);
    assert_eq!(result(&server, &session, "n").await, "2");
}

/// Story: a turn could be repeated only if the heap of the turn before it was stored.
#[tokio::test]
async fn every_turn_can_be_repeated_by_its_execution() {
    let server = Server::start();
    let session = open(&server).await;
    let mut records = Vec::new();
    for _ in 0..4 {
        records.push(turn(&server, &session, "globalThis.n = (globalThis.n ?? 0) + Math.random()").await);
    }
    for record in &records {
        let (status, report) = server.post(&format!("/api/executions/{}/replay", id(record)), json!({})).await;
        assert_eq!((status, &report["identical"]), (200, &json!(true)), "{report}");
    }
}

/// Story: one turn without a heap failed the whole request.
#[tokio::test]
async fn the_log_has_the_heaps_that_can_be_made() {
    let server = Server::start();
    let session = open(&server).await;
    let mut records = Vec::new();
    for code in ["var n = 1", "n += 1", "n += 1", "globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); 1", "kept = 0; n += 1"]
    {
        records.push(turn(&server, &session, code).await);
    }
    assert_eq!(server.delete(&format!("/api/executions/{}", id(&records[1]))).await.0, 200);
    let (status, log) = server.get(&format!("/api/session-snapshots?session={session}&fields=index,output_heap&materialize=true")).await;
    assert_eq!(status, 200, "{log}");
    let has_heap: Vec<_> = log["entries"].as_array().expect("entries").iter().map(|entry| entry["output_heap"].is_string()).collect();
    assert_eq!(has_heap, [true, true, true, false, true], "{log}");
}

/// Story: sessions that were in a turn at the same time all stayed live, whatever the limit.
#[tokio::test]
async fn the_limit_per_owner_holds_after_concurrent_turns() {
    let server = Server::start_with(&Folders::new(), &["--live-max-per-owner", "1"]);
    let sessions = [open(&server).await, open(&server).await, open(&server).await];
    let waits = "await new Promise(done => setTimeout(done, 500)); 1";
    futures_util::future::join_all(sessions.iter().map(|session| result(&server, session, waits))).await;
    let begun = Instant::now();
    while server.get("/api/health").await.1["live_sessions"]["sessions"] != 1 {
        assert!(begun.elapsed() < Duration::from_secs(30), "more than one stays live");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Two servers on one database: the one that a session was continued without gives up its memory.
#[tokio::test]
async fn a_session_that_moves_to_another_server_leaves_the_first() {
    let folders = Folders::new();
    let (one, other) = (Server::start_with(&folders, &[]), Server::start_with(&folders, &[]));
    let session = open(&one).await;
    assert_eq!(result(&one, &session, "globalThis.n = 1").await, "1");
    assert_eq!(result(&other, &session, "n += 1").await, "2");
    let begun = Instant::now();
    while one.get(&format!("/api/sessions/{session}")).await.1["live"] == true {
        assert!(begun.elapsed() < Duration::from_secs(30), "it is live on two servers");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(other.get(&format!("/api/sessions/{session}")).await.1["live"], true);
    assert_eq!(result(&one, &session, "n += 1").await, "3");
}

/// A turn of a live session runs before it is accepted. If another server has moved the head meanwhile, what it did is discarded, its output too.
#[tokio::test]
async fn a_turn_that_ran_on_an_old_state_is_discarded_and_begins_again() {
    let folders = Folders::new();
    let (one, other) = (Server::start_with(&folders, &[]), Server::start_with(&folders, &[]));
    let session = open(&one).await;
    assert_eq!(result(&one, &session, "globalThis.n = 1").await, "1");
    let mut expected = 1;
    for _ in 0..10 {
        for server in [&other, &one] {
            expected += 1;
            let ran = turn(server, &session, "console.log(`n is ${n += 1}`); n").await;
            assert_eq!((&ran["status"], &ran["result"]), (&json!("completed"), &json!(expected.to_string())), "{ran}");
            let id = ran["execution_id"].as_str().expect("an id");
            let page = server.get(&format!("/api/executions/{id}/output")).await.1;
            assert_eq!(page["data"], format!("n is {expected}\n"), "{page}");
        }
    }
}

/// Regression: a run took the idle worker of its session although another run was queued ahead of it, which then opened a second worker. If
/// that one failed, the first was accepted, and the second worker was taken for the one with its state.
#[tokio::test]
async fn concurrent_turns_that_fail_or_take_long_lose_nothing() {
    let server = Server::start();
    let session = open(&server).await;
    result(&server, &session, "globalThis.list = []; 0").await;
    let after = async |millis: u64, code: &str| {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        turn(&server, &session, code).await["status"] == "completed"
    };
    let (late, mut expected) = ("await new Promise((done) => setTimeout(done, 12)); list.push(1)", 0);
    for round in 0..60 {
        let (one, two, three, four, five) = tokio::join!(
            after(0, "await new Promise((done) => setTimeout(done, 20)); list.push(0)"),
            after(8, "list.push('none'); throw new Error('no')"),
            after(18 + round % 20, late),
            after(18 + round * 7 % 20, late),
            after(18 + round * 3 % 30, "throw 1"),
        );
        assert_eq!([one, two, three, four, five], [true, false, true, true, false]);
        expected += 3;
        assert_eq!(result(&server, &session, "list.length").await, expected.to_string(), "round {round}");
    }
}

/// Story: a session that held a value that can't be saved could not be recovered once a turn had diverged, because the state to return to had
/// to be stored; nor could it be resumed by another engine.
#[tokio::test]
async fn a_session_that_can_not_be_stored_returns_to_its_last_verified_state() {
    const CODES: [&str; 4] =
        ["let n = 1; n", "globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); n += 1", "n += 10", "n += 100"];
    for (arguments, tampered) in [(&[][..], true), (&["--jitless"][..], true), (&["--jitless"][..], false)] {
        let folders = Folders::new();
        let mut server = Server::start_with(&folders, &[]);
        let session = open(&server).await;
        for code in CODES {
            result(&server, &session, code).await;
        }
        server.kill();
        if tampered {
            let last = "UPDATE journal SET result_sha256 = zeroblob(32) WHERE execution_id = (SELECT execution_id FROM log WHERE idx = 3)";
            assert_eq!(database(&folders).execute(last, []), Ok(1));
        }
        let mut server = Server::start_with(&folders, arguments);
        let recovered = turn(&server, &session, "[n += 1, kept.maxByteLength]").await;
        let continuity = &recovered["continuity"];
        let (expected, reason, lost) =
            if tampered { ("[13,4294967296]", json!("replay_diverged"), json!(3)) } else { ("[113,4294967296]", Value::Null, Value::Null) };
        assert_eq!((&recovered["result"], &continuity["reason"], &continuity["turn"]), (&json!(expected), &reason, &lost), "{recovered}");
        assert_eq!(recovered["heap_state"], "pending", "{recovered}");
        let next = turn(&server, &session, "n").await;
        assert_eq!(next["continuity"], Value::Null, "it is reported once: {next}");
        // Whatever happens, the journal leads there again.
        server.kill();
        let server = Server::start_with(&folders, arguments);
        let resumed = turn(&server, &session, "n").await;
        assert_eq!((&resumed["result"], &resumed["continuity"]["resumed_from_snapshot"]), (&next["result"], &json!(true)), "{resumed}");
        // Once the value is gone, there is a heap again.
        let repaired = turn(&server, &session, "kept = null; n").await;
        let (_, stored) = server.get(&format!("/api/executions/{}?materialize=true", id(&repaired))).await;
        assert_eq!(stored["heap_state"], "stored", "{stored}");
    }
}

/// Story: without live sessions a replay stored a heap after every turn, so a value that can't be saved counted as a difference, and acknowledged
/// turns were lost, even if a later turn had removed the value.
#[tokio::test]
async fn a_state_in_between_need_not_be_storable() {
    const CODES: [&str; 3] = ["let n = 1; n", "globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); n += 1", "n += 10"];
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, &[]);
    let session = open(&server).await;
    for code in CODES {
        result(&server, &session, code).await;
    }
    server.kill();
    let mut server = Server::start_with(&folders, &["--live", "off"]);
    let refused = turn(&server, &session, "n").await;
    assert_eq!((&refused["status"], &refused["error_code"]), (&json!("failed"), &json!("session_unprepared")), "{refused}");
    server.kill();
    let mut server = Server::start_with(&folders, &[]);
    assert_eq!(result(&server, &session, "kept = null; n += 100").await, "112", "nothing is lost by the refusal");
    server.kill();
    // As if no heap had been stored since the first turn.
    let forgotten = "UPDATE turn_states SET heap = NULL WHERE seq > (SELECT min(seq) FROM turn_states)";
    assert!(database(&folders).execute(forgotten, []).is_ok());
    let server = Server::start_with(&folders, &["--live", "off"]);
    let resumed = turn(&server, &session, "n").await;
    assert_eq!((&resumed["result"], &resumed["continuity"]["reason"]), (&json!("112"), &Value::Null), "{resumed}");
}

/// Story: of a run that was stopped or whose worker died, the journal had nothing.
#[tokio::test]
async fn every_run_that_started_is_in_the_journal() {
    let server = Server::start();
    let session = open(&server).await;
    let printed = turn(&server, &session, "console.log('begun')").await;
    let endless = "console.log('begun'); for (;;);";
    let (_, outside) = server.post("/api/exec", json!({ "code": endless, "execution_timeout_secs": 1, "wait_secs": 30 })).await;
    let in_session = server.run_with(json!({ "code": endless, "session": session, "execution_timeout_secs": 1 })).await;
    let mut runs = vec![(outside, "timed_out", "it was stopped"), (in_session, "timed_out", "it was stopped")];
    for (is_cancelled, status, reason) in [(true, "cancelled", "it was stopped"), (false, "failed", "failure of its worker")] {
        let (_, begun) = server.post("/api/exec", json!({ "code": endless, "session": session })).await;
        while server.get(&format!("/api/executions/{}/output", id(&begun))).await.1["data"].as_str().is_none_or(str::is_empty) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        if is_cancelled {
            assert_eq!(server.post(&format!("/api/executions/{}/cancel", id(&begun)), json!({})).await.0, 200);
        } else {
            workers_of(server.pid()).into_iter().for_each(crate::live::kill);
        }
        let (_, ended) = server.get(&format!("/api/executions/{}?wait_secs=30", id(&begun))).await;
        runs.push((ended, status, reason));
    }
    let database = database(server.folders());
    let entry = |record: &Value| {
        let columns = "SELECT code, hex(output_sha256), hex(seed), input_heap, timeout_secs, engine FROM journal WHERE execution_id = ?";
        database.query_row(columns, [id(record)], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?, row.get::<_, Option<String>>(3)?))
        })
    };
    let (_, output, ..) = entry(&printed).expect("an entry");
    for (record, status, reason) in runs {
        assert_eq!(record["status"], status, "{record}");
        let (code, output_so_far, seed, _) = entry(&record).unwrap_or_else(|error| panic!("{error}: {record}"));
        assert_eq!((code.as_str(), &output_so_far, seed.len()), (endless, &output, 64), "{record}");
        let (status, refusal) = server.post(&format!("/api/executions/{}/replay", id(&record)), json!({})).await;
        assert_eq!((status, &refusal["type"]), (409, &json!("urn:heapstead:error:not_recorded")), "{record}: {refusal}");
        assert!(refusal["detail"].as_str().is_some_and(|detail| detail.contains(reason)), "`{reason}` is not in {refusal}");
    }
    assert_eq!(result(&server, &session, "1 + 1").await, "2");
}

/// A run that reads the clock more often than can be recorded is stored before it is acknowledged.
#[tokio::test]
async fn a_turn_with_more_than_a_mebibyte_of_inputs_is_stored_before_the_answer() {
    let server = Server::start_with(&Folders::new(), &["--timer-resolution-us", "1"]);
    let session = open(&server).await;
    assert_eq!(turn(&server, &session, "var n = 0; n").await["heap_state"], "pending");
    let reads = "for (let last = 0; n < 6e5;) { const now = performance.now(); if (now !== last) { last = now; n += 1 } } n";
    let record = turn(&server, &session, reads).await;
    assert_eq!((&record["result"], record["heap"].is_string(), &record["heap_state"]), (&json!("600000"), true, &Value::Null), "{record}");
    assert!(record["warnings"][0].as_str().is_some_and(|warning| warning.contains("1 MiB")), "{record}");
    let (status, refusal) = server.post(&format!("/api/executions/{}/replay", id(&record)), json!({})).await;
    assert_eq!((status, &refusal["type"]), (409, &json!("urn:heapstead:error:not_recorded")), "{refusal}");
    assert_eq!(result(&server, &session, "n += 1").await, "600001");
}

/// Story: a replay stored a heap after every turn, so that turns in a state that can't be saved were called different, and those after them lost.
#[tokio::test]
async fn turns_in_a_state_that_can_not_be_stored_are_repeated() {
    let server = Server::start();
    let session = open(&server).await;
    let mut records = Vec::new();
    for (code, more) in [
        ("let n = 1; n", json!({})),
        ("globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); n += Math.random()", json!({})),
        ("n += Date.now()", json!({})),
        // On a worker with another cap, whose state is repeated from the journal.
        ("n += 1", json!({ "heap_memory_max_mb": 100 })),
        ("n += kept.maxByteLength", json!({ "heap_memory_max_mb": 100 })),
        ("kept = null; n", json!({ "heap_memory_max_mb": 100 })),
    ] {
        let mut body = json!({ "code": code, "session": session });
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let record = server.run_with(body).await;
        assert_eq!(record["status"], "completed", "{code}: {record}");
        records.push(record);
    }
    for from in [0, 2, 4] {
        let (_, report) = server.post(&format!("/api/sessions/{session}/replay"), json!({ "from": from })).await;
        let turns = report["turns"].as_array().map(Vec::len);
        assert_eq!((&report["identical"], turns), (&json!(true), Some(6 - from)), "from {from}: {report}");
    }
    for (index, record) in records.iter().enumerate() {
        let (status, report) = server.post(&format!("/api/executions/{}/replay", id(record)), json!({})).await;
        assert_eq!((status, &report["identical"]), (200, &json!(true)), "{report}");
        assert_eq!(report["heap"].is_string(), [0, 5].contains(&index), "turn {index}: {report}");
    }
    // A run that had to store such a state has failed, and fails again.
    result(&server, &session, "globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); 1").await;
    let failed = server.run_with(json!({ "code": "n", "session": session, "durability": "snapshot" })).await;
    assert_eq!((&failed["status"], &failed["error_code"]), (&json!("failed"), &json!("heap_unsaveable")), "{failed}");
    let (_, report) = server.post(&format!("/api/executions/{}/replay", id(&failed)), json!({})).await;
    assert_eq!((&report["identical"], &report["status"]), (&json!(true), &json!("failed")), "{report}");
}

/// Story: the warning said that the heap was stored, although the run failed because it could not be.
#[tokio::test]
async fn a_heap_that_could_not_be_stored_is_not_said_to_be() {
    let server = Server::start();
    let session = open(&server).await;
    let unsaveable = "globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); typeof new WeakRef({}).deref()";
    let failed = turn(&server, &session, unsaveable).await;
    assert_eq!((&failed["status"], &failed["error_code"]), (&json!("failed"), &json!("heap_unsaveable")), "{failed}");
    assert!(failed["warnings"].as_array().is_none_or(Vec::is_empty), "{failed}");
}
