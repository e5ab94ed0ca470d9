//! Health: one document based on probes, and the two endpoints for supervisors.

use crate::fixture::{Folders, Server};
use crate::health_when;
use crate::peer::Http;
use heapstead_engine::Artifacts;
use heapstead_testkit::Process;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

async fn status(server: &Server, path: &str) -> u16 {
    server.client.get(format!("{}{path}", server.url)).send().await.expect("an answer").status().as_u16()
}

#[tokio::test]
async fn the_health_document_has_the_specified_fields() {
    let server = Server::start();
    let (code, mut health) = server.get("/api/health").await;
    assert_eq!(code, 200);
    assert!(health["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{health}");
    assert!(health["engine"]["v8"].as_str().is_some_and(|version| version.contains('.')), "{health}");
    (health["timestamp"], health["engine"]["v8"]) = (json!(""), json!(""));
    let expected = json!({
        "status": "healthy",
        "context_store": { "backend": "sqlite", "session_count": 0, "max_sessions": null, "heap_used_mb": 0, "heap_pressure_pct": 0, "redis_ok": true },
        "heap_store": { "backend": "folder", "ok": true, "damaged": 0 },
        "engine": { "ok": true, "running": 0, "queued": 0, "v8": "", "stateful_jit": "on" },
        "live_sessions": { "state": "on", "sessions": 0, "memory_mb": 0, "checkpoints_failing": 0 },
        "timestamp": "",
    });
    assert_eq!(health, expected);
    assert_eq!((status(&server, "/healthz").await, status(&server, "/readyz").await), (200, 200));
}

#[tokio::test]
async fn health_is_degraded_at_the_session_limit_or_90_percent_memory() {
    let full = Server::start_with(&Folders::new(), &["--context-store", "memory", "--context-max", "2"]);
    for session in ["a", "b"] {
        assert_eq!(full.get("/api/health").await.1["status"], "healthy");
        assert_eq!(full.post("/api/context", json!({ "session": session, "custom": { "k": 1 } })).await.0, 200);
    }
    let client = Http::connect(&full, "2025-11-25", &[]).await;
    let answer = client.call("health_check", json!({})).await;
    assert_eq!((&answer["isError"], &answer["structuredContent"]["status"]), (&json!(true), &json!("degraded")), "{answer}");
    let store = &answer["structuredContent"]["context_store"];
    assert_eq!((&store["session_count"], &store["max_sessions"]), (&json!(2), &json!(2)));
    // The oldest context is evicted when another is added, with that reason.
    assert_eq!(full.post("/api/context", json!({ "session": "c", "custom": { "k": 1 } })).await.0, 200);
    assert_eq!(crate::metric(&full, "context_store_evictions_total{reason=\"lru\"}").await, Some(1.0));
    assert_eq!(full.get("/api/context?session=a").await.1["custom"], json!({}));

    let heavy = Server::start_with(&Folders::new(), &["--context-store", "memory", "--context-memory-mb", "1"]);
    let values: Value = (0..3).map(|key| (format!("k{key}"), json!("x".repeat(16_000)))).collect::<serde_json::Map<_, _>>().into();
    let mut degraded = false;
    for session in 0..40 {
        assert_eq!(heavy.post("/api/context", json!({ "session": format!("heavy-{session}"), "custom": values })).await.0, 200);
        let (_, health) = heavy.get("/api/health").await;
        let over = health["context_store"]["heap_pressure_pct"].as_u64() > Some(90);
        assert_eq!(health["status"] == "degraded", over, "{health}");
        degraded |= over;
    }
    assert!(degraded, "health was degraded near the memory limit");
    assert!(crate::metric(&heavy, "context_store_evictions_total{reason=\"memory_pressure\"}").await > Some(0.0));
}

#[tokio::test]
async fn an_unavailable_store_is_reported_and_the_server_is_not_ready() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let holder = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("opened");
    holder.execute_batch("BEGIN IMMEDIATE").expect("held");
    let (health, ready) = tokio::join!(server.get("/api/health"), status(&server, "/readyz"));
    assert_eq!((&health.1["status"], ready), (&json!("degraded"), 503), "{}", health.1);
    assert_eq!(status(&server, "/healthz").await, 200, "it is alive");
}

/// If a load balancer took a busy server for a broken one, it would overload the remaining servers one by one.
#[tokio::test]
async fn a_busy_server_is_healthy() {
    let server = Server::start_with(&Folders::new(), &["--max-concurrent-executions", "1"]);
    for _ in 0..3 {
        assert_eq!(server.post("/api/exec", json!({ "code": "for (;;);", "execution_timeout_secs": 60 })).await.0, 202);
    }
    let (_, health) = server.get("/api/health").await;
    assert_eq!((&health["status"], &health["engine"]["ok"]), (&json!("healthy"), &json!(true)), "{health}");
    assert_eq!((&health["engine"]["running"], &health["engine"]["queued"]), (&json!(1), &json!(2)), "{health}");
    assert_eq!(status(&server, "/readyz").await, 200);
}

/// An engine whose files can be removed.
fn own_engine(folders: &Folders) -> Artifacts {
    let (parts, folder) = (Artifacts::find().expect("an engine"), folders.path().join("engine"));
    std::fs::create_dir(&folder).expect("a folder");
    let own = Artifacts::in_folder(&folder);
    for (theirs, ours) in [(&parts.host, &own.host), (&parts.worker, &own.worker), (&parts.base_heap, &own.base_heap)] {
        symlink(theirs, ours).expect("a link");
    }
    own
}

fn kill_zygote(server: &Server) {
    let children = Process::of(server.pid()).expect("the server").children();
    let zygote = children.into_iter().find(|child| child.command_line().iter().any(|word| word == "zygote")).expect("a zygote");
    let pid = rustix::process::Pid::from_raw(zygote.pid as i32).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
}

/// Regression: runs waited forever for a worker, because waiting runs were not notified that no zygote could be started.
#[tokio::test]
async fn if_no_worker_can_start_health_reports_why_until_it_is_fixed() {
    for (mode, run) in [("--stateless=false", json!({ "code": "1", "wait_secs": 30 })), ("--stateless=true", json!({ "code": "1" }))] {
        let folders = Folders::new();
        let parts = own_engine(&folders);
        let engine_folder = parts.host.parent().and_then(|folder| folder.to_str()).expect("UTF-8");
        let server = Server::start_in(&folders, &[mode, "--log", "off"], &[("HEAPSTEAD_ENGINE_DIR", engine_folder)]);
        let away = parts.host.with_extension("away");
        std::fs::rename(&parts.host, &away).expect("taken away");
        kill_zygote(&server);

        // A run that got one of the pre-forked workers first reports that it died.
        let host = parts.host.to_str().expect("UTF-8");
        let names_host = |problem: &Value| problem.as_str().is_some_and(|text| text.starts_with("engine: ") && text.contains(host));
        let health = health_when(&server, |health| names_host(&health["problems"][0])).await;
        assert_eq!((&health["status"], &health["engine"]["ok"]), (&json!("degraded"), &json!(false)), "{health}");
        assert_eq!(health["problems"].as_array().map(Vec::len), Some(1), "no other problem is reported: {health}");
        assert_eq!((status(&server, "/healthz").await, status(&server, "/readyz").await), (200, 503), "{mode}");
        let client = Http::connect(&server, "2025-11-25", &[]).await;
        let answer = client.call("health_check", json!({})).await;
        assert_eq!((&answer["isError"], &answer["structuredContent"]["status"]), (&json!(true), &json!("degraded")), "{answer}");
        let ran = client.call("run_js", run).await;
        assert!(ran.to_string().contains("can't be started"), "{ran}");

        std::fs::rename(&away, &parts.host).expect("put back");
        health_when(&server, |health| health["status"] == "healthy").await;
        let begun = Instant::now();
        while status(&server, "/readyz").await != 200 {
            assert!(begun.elapsed() < Duration::from_secs(30), "{mode}: it does not recover");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test]
async fn a_stateless_server_reports_health() {
    let server = Server::start_with(&Folders::new(), &["--stateless"]);
    let (_, health) = server.get("/api/health").await;
    assert_eq!(
        (&health["status"], &health["context_store"]["backend"], &health["heap_store"]["backend"]),
        (&json!("healthy"), &json!("none"), &json!("none"))
    );
    assert_eq!((status(&server, "/healthz").await, status(&server, "/readyz").await, status(&server, "/metrics").await), (200, 200, 200));
}
