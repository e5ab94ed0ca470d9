//! Opened sessions: each run continues from the heap of the previous run, in order, until the session ends.

use crate::fixture::{Folders, SNAPSHOT, Server};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

async fn open(server: &Server) -> String {
    let (status, session) = server.post("/api/sessions", json!({})).await;
    assert_eq!(status, 200, "{session}");
    session["session_id"].as_str().expect("an id").to_owned()
}

async fn run_in(server: &Server, session: &str, code: &str) -> Value {
    server.post("/api/exec", json!({ "code": code, "session": session, "wait_secs": 60 })).await.1
}

async fn log(server: &Server, session: &str) -> Vec<Value> {
    let fields = "index,input_heap,output_heap,code,execution_id";
    let (status, log) = server.get(&format!("/api/session-snapshots?session={session}&fields={fields}")).await;
    assert_eq!(status, 200, "{log}");
    log["entries"].as_array().expect("entries").clone()
}

#[tokio::test]
async fn each_run_continues_from_the_heap_of_the_previous_run() {
    let server = Server::start_with(&Folders::new(), SNAPSHOT);
    let session = open(&server).await;
    assert_eq!(session.len(), 64);
    run_in(&server, &session, "let count = 1").await;
    let second = run_in(&server, &session, "++count").await;
    assert_eq!(second["result"], "2", "{second}");

    // A run that does not complete does not move the head.
    assert_eq!(run_in(&server, &session, "count = 100; throw new Error('no')").await["status"], "failed");
    assert_eq!(run_in(&server, &session, "count").await["result"], "2");

    let (_, shown) = server.get(&format!("/api/sessions/{session}")).await;
    assert_eq!((&shown["session_id"], &shown["runs"]), (&json!(session), &json!(3)), "{shown}");
    let entries = log(&server, &session).await;
    assert_eq!(shown["head"], entries[2]["output_heap"]);
    assert_eq!(entries[0]["input_heap"], Value::Null);
    for pair in entries.windows(2) {
        assert_eq!(pair[0]["output_heap"], pair[1]["input_heap"], "each run starts from the heap of the previous one");
    }

    // A name denotes a log, which has no head to continue from.
    run_in(&server, "notes", "let noted = 1").await;
    assert_eq!(run_in(&server, "notes", "typeof noted").await["result"], "\"undefined\"");
    assert_eq!(
        server.get("/api/sessions").await.1,
        json!({ "sessions": ["notes"] }),
        "without a connection or credentials, only logs are listed"
    );
}

/// Regression: a connection that named its session like an opened one added entries to its log without moving its head.
#[tokio::test]
async fn a_connection_that_names_an_opened_session_joins_it_and_other_names_are_logs() {
    let server = Server::start();
    let session = open(&server).await;
    run_in(&server, &session, "let x = 1").await;
    let on_connection = server.client.post(format!("{}/api/exec", server.url)).header("x-mcp-session-id", &session);
    let answer = on_connection.json(&json!({ "code": "++x", "wait_secs": 60 })).send().await.expect("an answer");
    assert_eq!(answer.json::<Value>().await.expect("a record")["result"], "2");
    assert_eq!(run_in(&server, &session, "x").await["result"], "2");
    for pair in log(&server, &session).await.windows(2) {
        assert_eq!(pair[0]["output_heap"], pair[1]["input_heap"]);
    }
    // A text that only resembles an id, or a UUID in another notation, names a log.
    for name in ["0123456789abcdef0123456789abcdef", "urn:uuid:8254ca42-805e-4025-a653-aaaf1d715d06", "s", "s0x"] {
        assert_eq!(run_in(&server, name, "1").await["status"], "completed", "{name}");
        assert_eq!(log(&server, name).await.len(), 1, "{name}");
    }
}

/// An HTTP call on a connection that names its session like this.
async fn run_on(server: &Server, connection: &str, body: Value) -> (u16, Value) {
    let post = server.client.post(format!("{}/api/exec", server.url)).header("x-mcp-session-id", connection);
    let answer = post.json(&body).send().await.expect("an answer");
    (answer.status().as_u16(), answer.json().await.expect("JSON"))
}

#[tokio::test]
async fn a_connection_that_names_an_ended_session_does_not_reopen_it() {
    let server = Server::start();
    let session = open(&server).await;
    run_in(&server, &session, "let x = 1").await;
    assert_eq!(server.delete(&format!("/api/sessions/{session}")).await.0, 200);
    let (status, refused) = run_on(&server, &session, json!({ "code": "1", "wait_secs": 60 })).await;
    assert_eq!(status, 410, "{refused}");
    let asked = server.client.get(format!("{}/api/session-snapshots", server.url)).header("x-mcp-session-id", &session);
    assert_eq!(asked.send().await.expect("an answer").status(), 410);
}

#[tokio::test]
async fn a_call_that_names_two_sessions_is_refused() {
    let server = Server::start();
    let (one, two) = (open(&server).await, open(&server).await);
    let (status, refused) = run_on(&server, &one, json!({ "code": "1", "session": two, "wait_secs": 60 })).await;
    assert_eq!(status, 400, "{refused}");
    assert_eq!(run_on(&server, &one, json!({ "code": "1", "session": one, "wait_secs": 60 })).await.1["status"], "completed");
    assert_eq!(run_on(&server, "a log", json!({ "code": "1", "session": two, "wait_secs": 60 })).await.1["status"], "completed");
    assert_eq!((log(&server, &one).await.len(), log(&server, &two).await.len()), (1, 1));
}

/// Hosts often name their sessions by UUIDs. Regression: a name that looked like a handle was refused over REST unless a connection had
/// used it before.
#[tokio::test]
async fn any_text_can_name_a_log() {
    let server = Server::start();
    for name in ["123e4567-e89b-42d3-a456-426614174000", "s1", "s99999999999999999999", &"a".repeat(64)] {
        assert_eq!(log(&server, name).await.len(), 0, "{name}: a read creates none");
        assert_eq!(server.get(&format!("/api/executions?session={name}")).await.1, json!({ "executions": [] }), "{name}");
        assert_eq!(server.get(&format!("/api/context?session={name}")).await.1["custom"], json!({}), "{name}");
        assert_eq!(run_in(&server, name, "1").await["status"], "completed", "{name}");
        assert_eq!(run_on(&server, name, json!({ "code": "1", "wait_secs": 60 })).await.1["status"], "completed", "{name}");
        assert_eq!(log(&server, name).await.len(), 2, "{name}: header and parameter name the same log");
        assert_eq!(server.post("/api/context", json!({ "session": name, "custom": { "k": 1 } })).await.0, 200, "{name}");
        assert_eq!(server.get(&format!("/api/context?session={name}")).await.1["custom"], json!({ "k": 1 }), "{name}");
    }
}

/// The id of an ended session must not silently become the name of a log: a client that continues would find its state missing.
#[tokio::test]
async fn the_id_of_an_ended_session_is_refused_also_after_a_restart() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &["--session-ttl", "1s"]);
    let (deleted, expired) = (open(&server).await, open(&server).await);
    run_in(&server, &deleted, "let x = 1").await;
    assert_eq!(server.delete(&format!("/api/sessions/{deleted}")).await.0, 200);
    let begun = Instant::now();
    while server.get(&format!("/api/sessions/{expired}")).await.0 == 200 {
        assert!(begun.elapsed() < Duration::from_secs(30), "it expires");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(server);
    let server = Server::start_with(&folders, &[]);
    for id in [&deleted, &expired] {
        for (path, body) in [
            ("/api/exec".to_owned(), Some(json!({ "code": "1", "session": id }))),
            ("/api/context".to_owned(), Some(json!({ "session": id, "custom": { "k": 1 } }))),
            (format!("/api/context?session={id}"), None),
            (format!("/api/session-snapshots?session={id}"), None),
            (format!("/api/executions?session={id}"), None),
        ] {
            let (status, refused) = match body {
                Some(body) => server.post(&path, body).await,
                None => server.get(&path).await,
            };
            assert_eq!(status, 410, "{path}: {refused}");
            assert!(refused["detail"].as_str().is_some_and(|text| text.contains("has ended")), "{path}: {refused}");
        }
    }
    // It is remembered as long as its executions are.
    let database = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("the database");
    database.execute_batch("UPDATE sessions SET ended_at = 0 WHERE ended_at IS NOT NULL").expect("aged");
    drop(server);
    let server = Server::start_with(&folders, &[]);
    let begun = Instant::now();
    while server.get(&format!("/api/session-snapshots?session={deleted}")).await.0 == 410 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the sweep at the start forgets it");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(run_in(&server, &deleted, "typeof x").await["result"], "\"undefined\"");
}

#[tokio::test]
async fn a_heap_given_to_a_run_becomes_the_head() {
    let server = Server::start_with(&Folders::new(), SNAPSHOT);
    let session = open(&server).await;
    let first = run_in(&server, &session, "let x = 1").await;
    run_in(&server, &session, "x = 2").await;
    let back = json!({ "code": "x", "session": session, "heap": first["heap"], "wait_secs": 60 });
    assert_eq!(server.post("/api/exec", back).await.1["result"], "1");
    assert_eq!(run_in(&server, &session, "x").await["result"], "1", "the next run continues from the given heap");
    let fresh = json!({ "code": "typeof x", "session": session, "heap": "", "wait_secs": 60 });
    assert_eq!(server.post("/api/exec", fresh).await.1["result"], "\"undefined\"");
    let entries = log(&server, &session).await;
    assert_eq!((&entries[2]["input_heap"], &entries[4]["input_heap"]), (&first["heap"], &Value::Null), "jumps are in the log");
}

#[tokio::test]
async fn a_hundred_concurrent_runs_execute_in_the_order_of_acceptance() {
    let server = Server::start();
    let session = open(&server).await;
    let mut accepted = Vec::new();
    for number in 0..100 {
        let code = format!("globalThis.seen = [...(globalThis.seen ?? []), {number}]; seen.length");
        let (status, answer) = server.post("/api/exec", json!({ "code": code, "session": session })).await;
        assert_eq!(status, 202, "{answer}");
        accepted.push(answer["execution_id"].clone());
    }
    let last = accepted.last().and_then(Value::as_str).expect("an id");
    let (_, record) = server.get(&format!("/api/executions/{last}?wait_secs=120")).await;
    assert_eq!(record["result"], "100", "{record}");
    let entries = log(&server, &session).await;
    let ran: Vec<_> = entries.iter().map(|entry| entry["execution_id"].clone()).collect();
    assert_eq!(ran, accepted);
    for pair in entries.windows(2) {
        assert_eq!(pair[0]["output_heap"], pair[1]["input_heap"]);
    }
    let in_order = run_in(&server, &session, "seen.every((number, index) => number === index)").await;
    assert_eq!(in_order["result"], "true");
}

#[tokio::test]
async fn concurrent_runs_are_all_applied() {
    let server = Server::start();
    let session = open(&server).await;
    let runs = (0..100).map(|_| run_in(&server, &session, "globalThis.n = (globalThis.n ?? 0) + 1"));
    let mut results: Vec<u32> = futures_util::future::join_all(runs)
        .await
        .iter()
        .map(|record| record["result"].as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{record}")))
        .collect();
    results.sort_unstable();
    assert_eq!(results, (1..=100).collect::<Vec<_>>());
}

#[tokio::test]
async fn two_servers_on_one_database_take_turns_in_one_session() {
    let folders = Folders::new();
    let (one, two) = (Server::start_with(&folders, &[]), Server::start_with(&folders, &[]));
    let session = open(&one).await;
    let runs = (0..40).map(|number| run_in(if number % 2 == 0 { &one } else { &two }, &session, "globalThis.n = (globalThis.n ?? 0) + 1"));
    let mut results: Vec<u32> = futures_util::future::join_all(runs)
        .await
        .iter()
        .map(|record| record["result"].as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{record}")))
        .collect();
    results.sort_unstable();
    assert_eq!(results, (1..=40).collect::<Vec<_>>());
    let entries = log(&two, &session).await;
    for pair in entries.windows(2) {
        assert_eq!(pair[0]["output_heap"], pair[1]["input_heap"]);
    }
}

#[tokio::test]
async fn a_queued_run_can_be_cancelled_and_the_next_one_keeps_waiting() {
    let server = Server::start();
    let session = open(&server).await;
    let long = json!({ "code": "let x = 1; await new Promise((done) => setTimeout(done, 1500)); x", "session": session });
    server.post("/api/exec", long).await;
    let (_, waiting) = server.post("/api/exec", json!({ "code": "x = 7", "session": session })).await;
    let last = run_in(&server, &session, "x");
    let id = waiting["execution_id"].as_str().expect("an id");
    let cancel = async {
        let (status, done) = server.post(&format!("/api/executions/{id}/cancel"), json!({})).await;
        assert_eq!((status, &done["ok"]), (200, &json!(true)), "{done}");
    };
    let (last, ()) = tokio::join!(last, cancel);
    assert_eq!(last["result"], "1", "{last}");
}

#[tokio::test]
async fn a_fork_continues_from_any_heap_of_the_session() {
    let server = Server::start_with(&Folders::new(), SNAPSHOT);
    let session = open(&server).await;
    let first = run_in(&server, &session, "let x = 1").await;
    run_in(&server, &session, "x = 2").await;
    let fork = async |body: Value| {
        let (status, fork) = server.post(&format!("/api/sessions/{session}/fork"), body).await;
        assert_eq!(status, 200, "{fork}");
        fork["session_id"].as_str().expect("an id").to_owned()
    };
    let (now, then) = (fork(json!({})).await, fork(json!({ "heap": first["heap"] })).await);
    assert_eq!(run_in(&server, &now, "++x").await["result"], "3");
    assert_eq!(run_in(&server, &then, "++x").await["result"], "2");
    assert_eq!(run_in(&server, &session, "x").await["result"], "2", "the forked session is unchanged");

    let elsewhere = server.run("let y = 1").await;
    let (status, refused) = server.post(&format!("/api/sessions/{session}/fork"), json!({ "heap": elsewhere["heap"] })).await;
    assert_eq!(status, 404, "{refused}");
}

#[tokio::test]
async fn ending_a_session_cancels_its_runs_and_refuses_new_ones() {
    let server = Server::start();
    let session = open(&server).await;
    let (_, running) = server.post("/api/exec", json!({ "code": "for (;;) {}", "session": session, "execution_timeout_secs": 300 })).await;
    let (_, queued) = server.post("/api/exec", json!({ "code": "1", "session": session })).await;
    let (status, done) = server.delete(&format!("/api/sessions/{session}")).await;
    assert_eq!((status, &done["ok"]), (200, &json!(true)), "{done}");
    for run in [running, queued] {
        let (_, record) = server.get(&format!("/api/executions/{}", run["execution_id"].as_str().expect("an id"))).await;
        assert_eq!(record["status"], "cancelled", "{record}");
    }
    let unknown = "0".repeat(64);
    for (method, path) in [("GET", ""), ("DELETE", ""), ("POST", "/fork")] {
        let mut answers = Vec::new();
        for id in [&session, &unknown] {
            let path = format!("/api/sessions/{id}{path}");
            let (status, body) = match method {
                "GET" => server.get(&path).await,
                "DELETE" => server.delete(&path).await,
                _ => server.post(&path, json!({})).await,
            };
            answers.push((status, body.to_string().replace(id, "ID")));
        }
        assert_eq!(answers[0], answers[1], "an ended session and an unknown one get the same response");
        assert_eq!(answers[0].0, 404);
    }
    let (status, refused) = server.post("/api/exec", json!({ "code": "1", "session": session })).await;
    assert_eq!(status, 410, "{refused}");
}

#[tokio::test]
async fn an_unused_session_expires_and_use_refreshes_its_ttl() {
    let server = Server::start_with(&Folders::new(), &["--session-ttl", "2s"]);
    let (idle, used) = (open(&server).await, open(&server).await);
    let (_, hangs) = server
        .post(
            "/api/exec",
            json!({ "code": "await new Promise((done) => setTimeout(done, 60_000))", "session": idle, "execution_timeout_secs": 120 }),
        )
        .await;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(5) {
        assert_eq!(run_in(&server, &used, "1").await["status"], "completed");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert_eq!(server.get(&format!("/api/sessions/{idle}")).await.0, 404);
    assert_eq!(server.get(&format!("/api/sessions/{used}")).await.0, 200);
    let (_, record) = server.get(&format!("/api/executions/{}?wait_secs=5", hangs["execution_id"].as_str().expect("an id"))).await;
    assert_eq!(record["status"], "cancelled", "{record}");
}

#[tokio::test]
async fn acknowledged_runs_of_a_session_survive_kill_9() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, &[]);
    let session = open(&server).await;
    let mut seen = 0;
    for round in 0..5 {
        let runs: Vec<_> = (0..20)
            .map(|_| {
                let (client, url, session) = (server.client.clone(), server.url.clone(), session.clone());
                tokio::spawn(async move {
                    let body = json!({ "code": "globalThis.n = (globalThis.n ?? 0) + 1", "session": session, "wait_secs": 60 });
                    let answer = client.post(format!("{url}/api/exec")).json(&body).send().await.ok()?;
                    let record: Value = answer.json().await.ok()?;
                    record["result"].as_str()?.parse::<u64>().ok()
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(40 + 60 * round)).await;
        server.kill();
        let mut acknowledged = seen;
        for run in runs {
            acknowledged = acknowledged.max(run.await.expect("a task").unwrap_or(0));
        }
        server = Server::start_with(&folders, &[]);
        let entries = log(&server, &session).await;
        for (index, pair) in entries.windows(2).enumerate() {
            assert_eq!(pair[0]["output_heap"], pair[1]["input_heap"], "entry {index}: a prefix, without gaps");
        }
        assert!(entries.len() as u64 >= acknowledged, "{} entries, {acknowledged} acknowledged", entries.len());
        seen = entries.len() as u64;
        let next = run_in(&server, &session, "globalThis.n = (globalThis.n ?? 0) + 1").await;
        seen += 1;
        assert_eq!(next["result"], json!(seen.to_string()), "{next}");
    }
    assert!(seen > 5, "too few runs completed");
}
