//! Concurrency: waiting runs do not delay others, and cancel works at any stage of an execution.

use crate::fixture::{Folders, Server};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

async fn accept(server: &Server, body: Value) -> String {
    let (status, accepted) = server.post("/api/exec", body).await;
    assert_eq!(status, 202, "{accepted}");
    accepted["execution_id"].as_str().expect("an id").to_owned()
}

async fn cancel(server: &Server, id: &str) {
    let (status, answer) = server.post(&format!("/api/executions/{id}/cancel"), json!({})).await;
    assert_eq!((status, &answer), (200, &json!({ "ok": true })));
    let (_, record) = server.get(&format!("/api/executions/{id}")).await;
    assert_eq!((&record["status"], &record["heap"]), (&json!("cancelled"), &Value::Null), "{record}");
    let (status, again) = server.post(&format!("/api/executions/{id}/cancel"), json!({})).await;
    assert_eq!((status, &again["ok"]), (409, &json!(false)), "{again}");
    assert!(again["error"].as_str().is_some_and(|error| error.contains("it is cancelled")), "{again}");
}

/// The median duration of a few empty runs.
async fn median(server: &Server) -> Duration {
    let mut times = Vec::new();
    for _ in 0..9 {
        let began = Instant::now();
        assert_eq!(server.run("1").await["status"], "completed");
        times.push(began.elapsed());
    }
    times.sort_unstable();
    times[4]
}

#[tokio::test]
async fn fifty_runs_that_wait_delay_another_by_at_most_100_ms() {
    let server = Server::start();
    let alone = median(&server).await;
    let mut waiting = Vec::new();
    for _ in 0..50 {
        waiting.push(accept(&server, json!({ "code": "console.log('waits'); await new Promise(done => setTimeout(done, 60000))", "execution_timeout_secs": 100 })).await);
    }
    for id in &waiting {
        let (_, page) = server.get(&format!("/api/executions/{id}/output?wait_secs=60")).await;
        assert_eq!(page["data"], "waits\n", "{page}");
    }
    let among = median(&server).await;
    assert!(among < alone + Duration::from_millis(100), "{among:?} instead of {alone:?}");
}

#[tokio::test]
async fn an_execution_can_be_cancelled_in_any_phase() {
    let server = Server::start_with(&Folders::new(), &["--max-concurrent-executions", "1"]);
    let computing = accept(&server, json!({ "code": "console.log('computes'); for (;;);" })).await;
    let queued = accept(&server, json!({ "code": "1" })).await;
    server.get(&format!("/api/executions/{computing}/output?wait_secs=30")).await;
    cancel(&server, &queued).await;
    cancel(&server, &computing).await;
    let (_, page) = server.get(&format!("/api/executions/{computing}/output")).await;
    assert_eq!(page["data"], "computes\n", "output written before is kept");
    let awaiting = accept(&server, json!({ "code": "console.log('awaits'); await new Promise(done => setTimeout(done, 60000))" })).await;
    server.get(&format!("/api/executions/{awaiting}/output?wait_secs=30")).await;
    cancel(&server, &awaiting).await;
    // Most of its time is spent on the snapshot of a million objects.
    let code = "var many = Array.from({ length: 1_000_000 }, (_, i) => ({ i, text: 'x' + i })); console.log('saves')";
    let saving = accept(&server, json!({ "code": code, "heap_memory_max_mb": 512 })).await;
    server.get(&format!("/api/executions/{saving}/output?wait_secs=30")).await;
    cancel(&server, &saving).await;
    assert_eq!(server.run("2 + 2").await["result"], "4", "the slot is free again");
}

#[tokio::test]
async fn cancelling_an_unknown_execution_is_an_error() {
    let server = Server::start();
    for id in ["0".repeat(32), "nothing".to_owned()] {
        let (status, answer) = server.post(&format!("/api/executions/{id}/cancel"), json!({})).await;
        assert_eq!((status, &answer["ok"]), (404, &json!(false)), "{answer}");
        assert!(answer["error"].as_str().is_some_and(|error| error.contains("is not known")), "{answer}");
    }
}

/// The median duration of code that only computes.
async fn computes(server: &Server) -> Duration {
    let mut times = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        let code = "let sum = 0; for (let i = 0; i < 1e8; i++) sum = (sum + i) | 0; sum";
        assert_eq!(server.run_with(json!({ "code": code, "execution_timeout_secs": 60 })).await["status"], "completed");
        times.push(began.elapsed());
    }
    times.sort_unstable();
    times[2]
}

#[tokio::test]
async fn a_client_that_loops_shares_the_cores_fairly() {
    let server = Server::start();
    let alone = computes(&server).await;
    let cores = std::thread::available_parallelism().expect("cores").get() as u32;
    let mut looping = Vec::new();
    for number in 0..cores + 1 {
        let body = json!({ "code": "console.log('loops'); for (;;);", "execution_timeout_secs": 120 });
        let post =
            server.client.post(format!("{}/api/exec", server.url)).header("X-MCP-Session-Id", format!("looper-{number}")).json(&body);
        let accepted: Value = post.send().await.expect("an answer").json().await.expect("JSON");
        looping.push(accepted["execution_id"].as_str().expect("an id").to_owned());
    }
    for id in &looping {
        server.get(&format!("/api/executions/{id}/output?wait_secs=60")).await;
    }
    let beside = computes(&server).await;
    for id in &looping {
        assert_eq!(server.get(&format!("/api/executions/{id}")).await.1["status"], "running", "the loops still run");
    }
    // Each client's fair share on two cores is a little over half its speed alone. Twice that time allows for noise.
    let fair = alone * (cores + 2) / cores;
    assert!(beside < fair * 2 + Duration::from_millis(200), "{alone:?} alone, {beside:?} beside {} that loop", looping.len());
}

#[tokio::test]
async fn the_total_memory_limit_bounds_concurrent_runs() {
    // A worker with a cap of 64 MB may use 352 MB, one with 8 MB 184 MB.
    let server = Server::start_with(&Folders::new(), &["--max-memory-mb", "600"]);
    let waits = "console.log('on'); await new Promise(done => setTimeout(done, 60000))";
    let first = accept(&server, json!({ "code": waits, "heap_memory_max_mb": 64 })).await;
    server.get(&format!("/api/executions/{first}/output?wait_secs=30")).await;
    let second = accept(&server, json!({ "code": "'had its turn'", "heap_memory_max_mb": 64 })).await;
    // Another client's run that fits is not blocked by one that does not.
    let fits = json!({ "code": "'fits'", "heap_memory_max_mb": 8, "wait_secs": 60 });
    let elsewhere = reqwest::Client::builder().local_address("127.0.0.2".parse::<std::net::IpAddr>().ok()).build().expect("a client");
    let post = elsewhere.post(format!("{}/api/exec", server.url)).json(&fits);
    let record: Value = post.send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(record["result"], "\"fits\"", "{record}");
    let (_, health) = server.get("/api/health").await;
    assert_eq!(
        (&health["engine"]["running"], &health["engine"]["queued"]),
        (&json!(1), &json!(1)),
        "two of 352 MB are more than 600 MB: {health}"
    );
    let (status, problem) = server.post("/api/exec", json!({ "code": "1", "heap_memory_max_mb": 147 })).await;
    assert_eq!(status, 400);
    assert!(problem["detail"].as_str().is_some_and(|text| text.contains("expected an integer from 8 to 146")), "{problem}");
    cancel(&server, &first).await;
    let (_, record) = server.get(&format!("/api/executions/{second}?wait_secs=30")).await;
    assert_eq!(record["result"], "\"had its turn\"", "{record}");
}
