//! Live sessions as operators and clients see them: metrics, health, the lists of sessions, and what becomes of a checkpoint that fails.

use crate::faults::Disk;
use crate::fixture::{Folders, Server};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const JOURNAL: &[&str] = &["--session-durability", "journal"];
/// Keeps a value that V8 can't write into a snapshot.
const UNSAVEABLE: &str = "globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); 1";

async fn open(server: &Server) -> String {
    server.post("/api/sessions", json!({})).await.1["session_id"].as_str().expect("an id").to_owned()
}

/// The record of a turn that completes.
async fn turn(server: &Server, session: &str, code: &str) -> Value {
    let record = server.run_with(json!({ "code": code, "session": session })).await;
    assert_eq!(record["status"], "completed", "{code}: {record}");
    record
}

pub async fn metric(server: &Server, name: &str) -> f64 {
    let page = server.client.get(format!("{}/metrics", server.url)).send().await.expect("an answer").text().await.expect("a page");
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("no {name}: {page}"))
}

async fn metric_when(server: &Server, name: &str, is_reached: impl Fn(f64) -> bool) -> f64 {
    let begun = Instant::now();
    loop {
        let value = metric(server, name).await;
        if is_reached(value) {
            return value;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{name} stays {value}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// No heap can be stored until the file `ballast` is removed.
fn full_disk(folders: &Folders) -> Disk {
    let disk = Disk::mount(&folders.heaps(), "size=16m");
    std::fs::write(folders.heaps().join("ballast"), vec![7; 17 << 20]).expect_err("the disk is full");
    disk
}

#[tokio::test]
async fn metrics_count_live_sessions_their_memory_and_their_checkpoints() {
    let server = Server::start_with(&Folders::new(), JOURNAL);
    for name in [
        "heapstead_live_sessions",
        "heapstead_live_memory_bytes",
        "heapstead_live_unstored_turns",
        "heapstead_live_checkpoint_lag_seconds",
        "heapstead_live_checkpoints_failing",
        "heapstead_live_evictions_total{reason=\"idle\"}",
        "heapstead_live_evictions_total{reason=\"memory\"}",
        "heapstead_live_evictions_total{reason=\"owner_limit\"}",
        "heapstead_live_evictions_total{reason=\"pressure\"}",
        "heapstead_live_evictions_total{reason=\"ended\"}",
        "heapstead_live_checkpoints_total{result=\"written\"}",
        "heapstead_live_checkpoints_total{result=\"failed\"}",
        "heapstead_live_resumes_total",
        "heapstead_replayed_turns_total",
        "heapstead_replay_divergences_total",
    ] {
        assert_eq!(metric(&server, name).await, 0.0, "{name} before the first session");
    }
    assert!(metric(&server, "heapstead_live_memory_bytes_max").await > 0.0);
    let session = open(&server).await;
    turn(&server, &session, "globalThis.kept = new Array(1e6).fill(1.5); 1").await;
    assert_eq!(metric(&server, "heapstead_live_sessions").await, 1.0);
    metric_when(&server, "heapstead_live_checkpoints_total{result=\"written\"}", |written| written == 1.0).await;
    metric_when(&server, "heapstead_live_unstored_turns", |turns| turns == 0.0).await;
    assert_eq!(metric(&server, "heapstead_live_checkpoint_lag_seconds").await, 0.0);
    // The array alone takes 8 MB.
    metric_when(&server, "heapstead_live_memory_bytes", |bytes| bytes > 8e6).await;

    turn(&server, &session, UNSAVEABLE).await;
    metric_when(&server, "heapstead_live_checkpoints_failing", |failing| failing == 1.0).await;
    assert_eq!(metric(&server, "heapstead_live_unstored_turns").await, 1.0);
    assert!(metric(&server, "heapstead_live_checkpoints_total{result=\"failed\"}").await >= 1.0);
    metric_when(&server, "heapstead_live_checkpoint_lag_seconds", |seconds| seconds >= 2.0).await;

    assert_eq!(server.delete(&format!("/api/sessions/{session}")).await.0, 200);
    assert_eq!(metric(&server, "heapstead_live_sessions").await, 0.0);
    assert_eq!(metric(&server, "heapstead_live_evictions_total{reason=\"ended\"}").await, 1.0);
}

#[tokio::test]
async fn metrics_count_what_was_repeated_and_what_was_evicted() {
    let folders = Folders::new();
    let _disk = full_disk(&folders);
    let mut server = Server::start_with(&folders, JOURNAL);
    let session = open(&server).await;
    for code in ["globalThis.n = 1", "n += 1"] {
        turn(&server, &session, code).await;
    }
    server.kill();
    let mut server = Server::start_with(&folders, &["--session-durability", "journal", "--live-max-per-owner", "1"]);
    assert_eq!(turn(&server, &session, "n").await["result"], "2");
    assert_eq!(metric(&server, "heapstead_live_resumes_total").await, 1.0);
    assert_eq!(metric(&server, "heapstead_replayed_turns_total").await, 2.0);
    assert_eq!(metric(&server, "heapstead_replay_divergences_total").await, 0.0);
    let other = open(&server).await;
    turn(&server, &other, "1").await;
    metric_when(&server, "heapstead_live_evictions_total{reason=\"owner_limit\"}", |evicted| evicted == 1.0).await;
    assert_eq!(metric(&server, "heapstead_live_sessions").await, 1.0);
    server.kill();

    let database = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("the database");
    database.execute("UPDATE journal SET output_sha256 = zeroblob(32)", []).expect("changed");
    let server = Server::start_with(&folders, JOURNAL);
    let diverged = turn(&server, &session, "typeof n").await;
    assert_eq!(diverged["continuity"]["reason"], "replay_diverged", "{diverged}");
    assert_eq!(metric(&server, "heapstead_replay_divergences_total").await, 1.0);
}

/// The record of an execution once it has what is waited for.
async fn record_when(server: &Server, record: &Value, is_reached: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let (_, now) = server.get(&format!("/api/executions/{}", record["execution_id"].as_str().expect("an id"))).await;
        if is_reached(&now) {
            return now;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it stays {now}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn warnings(record: &Value) -> Vec<&str> {
    record["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[tokio::test]
async fn a_checkpoint_that_fails_is_reported_in_the_record_in_the_next_response_and_in_health() {
    let server = Server::start_with(&Folders::new(), JOURNAL);
    let (_, before) = server.get("/api/health").await;
    let healthy = json!({ "state": "on", "sessions": 0, "memory_mb": 0, "checkpoints_failing": 0 });
    assert_eq!(before["live_sessions"], healthy, "{before}");
    let session = open(&server).await;
    let unsaveable = turn(&server, &session, UNSAVEABLE).await;
    assert_eq!((warnings(&unsaveable), &unsaveable["heap_error"]), (vec![], &Value::Null), "{unsaveable}");
    let failed = record_when(&server, &unsaveable, |record| record["heap_error"].is_string()).await;
    assert_eq!((&failed["status"], &failed["heap_state"]), (&json!("completed"), &json!("pending")), "{failed}");
    assert!(failed["heap_error"].as_str().is_some_and(|why| why.contains("maxByteLength")), "{failed}");

    let (_, health) = server.get("/api/health").await;
    let live = &health["live_sessions"];
    assert_eq!((&live["sessions"], &live["checkpoints_failing"]), (&json!(1), &json!(1)), "{health}");
    assert!(live["checkpoint_failure"].as_str().is_some_and(|why| why.contains("maxByteLength")), "{health}");
    assert_eq!(health["status"], "healthy", "code can't degrade the server: {health}");

    let next = turn(&server, &session, "1").await;
    let [warning] = warnings(&next)[..] else { panic!("no warning: {next}") };
    assert!(warning.starts_with("the heap of the session could not be stored: ") && warning.contains("maxByteLength"), "{next}");
    assert!(warning.ends_with("; the journal holds its turns"), "{next}");
    let after = turn(&server, &session, "2").await;
    assert_eq!(warnings(&after), Vec::<&str>::new(), "once: {after}");

    let repaired = turn(&server, &session, "kept = null").await;
    record_when(&server, &repaired, |record| record["heap_state"] == "stored").await;
    let skipped = record_when(&server, &unsaveable, |record| record["heap_state"] == "skipped").await;
    assert_eq!(skipped["heap_error"], Value::Null, "{skipped}");
    let (_, health) = server.get("/api/health").await;
    assert_eq!(health["live_sessions"]["checkpoints_failing"], 0, "{health}");
}

/// Story: only the server on which the session was live knew the reason, so it was gone after a restart.
#[tokio::test]
async fn the_reason_of_a_failed_checkpoint_outlives_the_server() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, JOURNAL);
    let session = open(&server).await;
    let (unsaveable, after) = (turn(&server, &session, UNSAVEABLE).await, turn(&server, &session, "1").await);
    let failed = record_when(&server, &after, |record| record["heap_error"].is_string()).await;
    server.kill();
    let server = Server::start_with(&folders, &["--live", "off"]);
    for record in [&unsaveable, &after] {
        let (_, now) = server.get(&format!("/api/executions/{}", record["execution_id"].as_str().expect("an id"))).await;
        assert_eq!((&now["heap_state"], &now["heap_error"]), (&json!("pending"), &failed["heap_error"]), "{now}");
    }
}

#[tokio::test]
async fn a_full_disk_degrades_health_until_the_checkpoint_is_written() {
    let folders = Folders::new();
    let _disk = full_disk(&folders);
    let server = Server::start_with(&folders, JOURNAL);
    let session = open(&server).await;
    let record = turn(&server, &session, "globalThis.n = 1").await;
    let failed = record_when(&server, &record, |record| record["heap_error"].is_string()).await;
    assert!(failed["heap_error"].as_str().is_some_and(|why| why.contains("No space left")), "{failed}");
    let (_, health) = server.get("/api/health").await;
    let is_named = |problem: &Value| problem.as_str().is_some_and(|problem| problem.starts_with("live sessions: "));
    assert!(health["problems"].as_array().is_some_and(|problems| problems.iter().any(is_named)), "{health}");
    assert_eq!(health["status"], "degraded", "{health}");
    std::fs::remove_file(folders.heaps().join("ballast")).expect("removed");
    // Without another turn.
    record_when(&server, &record, |record| record["heap_state"] == "stored").await;
    let (_, health) = server.get("/api/health").await;
    assert_eq!((&health["status"], &health["live_sessions"]["checkpoints_failing"]), (&json!("healthy"), &json!(0)), "{health}");
}

#[tokio::test]
async fn health_says_whether_sessions_can_be_live() {
    let server = Server::start_with(&Folders::new(), &["--live", "off"]);
    let (_, health) = server.get("/api/health").await;
    assert_eq!((&health["live_sessions"]["state"], &health["status"]), (&json!("off"), &json!("healthy")), "{health}");
}

async fn shown(server: &Server, session: &str) -> Value {
    let (status, view) = server.get(&format!("/api/sessions/{session}")).await;
    assert_eq!(status, 200, "{view}");
    view
}

/// What a session has, without what differs from run to run.
fn state(view: &Value) -> [&Value; 4] {
    ["live", "turns", "tail_turns", "checkpoint"].map(|name| &view[name])
}

#[tokio::test]
async fn a_session_shows_whether_it_is_live_its_last_checkpoint_and_its_tail() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, JOURNAL);
    let session = open(&server).await;
    let fresh = shown(&server, &session).await;
    assert_eq!(state(&fresh), [&json!(false), &json!(0), &json!(0), &Value::Null], "{fresh}");
    let first = turn(&server, &session, "globalThis.n = 1").await;
    let heap = record_when(&server, &first, |record| record["heap_state"] == "stored").await["heap"].clone();
    let stored = shown(&server, &session).await;
    assert_eq!(state(&stored), [&json!(true), &json!(1), &json!(0), &heap], "{stored}");
    assert_eq!(stored["head"], heap, "{stored}");

    for code in [UNSAVEABLE, "n = 2"] {
        turn(&server, &session, code).await;
    }
    let ahead = shown(&server, &session).await;
    assert_eq!(state(&ahead), [&json!(true), &json!(3), &json!(2), &heap], "{ahead}");
    assert_eq!(ahead["head"], Value::Null, "it has no key yet: {ahead}");
    metric_when(&server, "heapstead_live_memory_bytes", |bytes| bytes > 0.0).await;
    assert!(shown(&server, &session).await["memory_bytes"].as_u64() > Some(1 << 20));
    server.kill();

    let server = Server::start_with(&folders, &["--live", "off"]);
    let resting = shown(&server, &session).await;
    assert_eq!(state(&resting), [&json!(false), &json!(3), &json!(2), &heap], "the journal holds the turns: {resting}");
    assert_eq!(resting["memory_bytes"], Value::Null, "{resting}");
}

#[tokio::test]
async fn turns_without_a_heap_are_bounded_by_their_run_time_too() {
    let server = Server::start_with(&Folders::new(), &["--session-durability", "journal", "--journal-tail-secs", "1"]);
    let session = open(&server).await;
    let slow = "const begun = Date.now(); while (Date.now() - begun < 600); globalThis.n = 1";
    let first = turn(&server, &session, &format!("{{ {slow} }}")).await;
    turn(&server, &session, "2").await;
    record_when(&server, &first, |record| record["heap_state"] != "pending").await;

    turn(&server, &session, UNSAVEABLE).await;
    for _ in 0..2 {
        turn(&server, &session, &format!("{{ {slow} }}")).await;
    }
    let refused = server.run_with(json!({ "code": "n", "session": session })).await;
    assert_eq!(refused["status"], "failed", "{refused}");
    assert!(refused["error"].as_str().is_some_and(|error| error.contains("`--journal-tail-secs`")), "{refused}");
}

#[tokio::test]
async fn an_idle_session_is_evicted_after_its_checkpoint() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &["--session-durability", "journal", "--live-idle-secs", "1"]);
    let (session, failing) = (open(&server).await, open(&server).await);
    let record = turn(&server, &session, "globalThis.n = 1").await;
    turn(&server, &failing, UNSAVEABLE).await;
    metric_when(&server, "heapstead_live_evictions_total{reason=\"idle\"}", |evicted| evicted == 2.0).await;
    assert_eq!(metric(&server, "heapstead_live_sessions").await, 0.0, "one whose checkpoint fails is evicted, too");
    let (_, record) = server.get(&format!("/api/executions/{}", record["execution_id"].as_str().expect("an id"))).await;
    assert_eq!(record["heap_state"], "stored", "{record}");
    assert_eq!(turn(&server, &session, "n").await["result"], "1");
    assert_eq!(metric(&server, "heapstead_replayed_turns_total").await, 0.0, "nothing has to be repeated");
}

#[tokio::test]
async fn sessions_over_the_memory_limit_are_evicted_the_least_recently_used_one_first() {
    let server = Server::start_with(&Folders::new(), &["--session-durability", "journal", "--live-max-mb", "60"]);
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let session = open(&server).await;
        turn(&server, &session, "globalThis.kept = new Array(4e6).fill(1.5); 1").await;
        sessions.push(session);
    }
    metric_when(&server, "heapstead_live_evictions_total{reason=\"memory\"}", |evicted| evicted >= 1.0).await;
    assert_eq!(shown(&server, &sessions[0]).await["live"], false);
    for session in &sessions {
        assert_eq!(turn(&server, session, "kept.length").await["result"], "4000000");
    }
}

#[tokio::test]
async fn a_session_that_expires_or_is_ended_elsewhere_has_no_worker() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &["--session-durability", "journal", "--session-ttl", "2s"]);
    let session = open(&server).await;
    turn(&server, &session, "1").await;
    assert_eq!(metric(&server, "heapstead_live_sessions").await, 1.0);
    metric_when(&server, "heapstead_live_sessions", |sessions| sessions == 0.0).await;
    assert_eq!(metric(&server, "heapstead_live_evictions_total{reason=\"ended\"}").await, 1.0);
    drop(server);

    let server = Server::start_with(&folders, JOURNAL);
    let other = Server::start_with(&folders, JOURNAL);
    let session = open(&server).await;
    turn(&server, &session, "1").await;
    assert_eq!(other.delete(&format!("/api/sessions/{session}")).await.0, 200);
    metric_when(&server, "heapstead_live_sessions", |sessions| sessions == 0.0).await;
}
