//! Tries to make the server use more memory than `heapstead doctor --limits` says that it can, with everything that the table of it names at
//! once and from several owners. The limits are small, so that the bound is some hundred megabytes and within reach.
//!
//! Found by an audit: 6 `initialize` requests of 40 MB stayed in memory, 12 queued runs of 16 MiB took 400 MB, one page of a log 620 MB.

use crate::abuse::{ABUSES, Ongoing};
use crate::fixture::torture;
use crate::place::{Place, Tenant};
use bytes::Bytes;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

const SMALL: &[&str] = &[
    "--max-concurrent-executions",
    "8",
    "--max-queued",
    "40",
    "--max-source-mb",
    "64",
    "--max-answer-mb",
    "128",
    "--max-connections",
    "200",
    "--max-body-mb",
    "200",
    "--max-response-mb",
    "32",
    "--context-store",
    "none",
    "--output-max-mb",
    "16",
];
/// A long result, a source of megabytes, and TypeScript, whose JavaScript the worker sends too.
const RESULT_BYTES: usize = 15 << 20;
const SOURCE_BYTES: usize = 2 << 20;
/// A body is in memory as bytes and as JSON before its session is refused.
const BODY_BYTES: usize = 60 << 20;
/// The load is heavy if the peak is so much above the memory of an idle server: less than the attacks send, more than one of them alone takes.
const HEAVY_MB: u64 = 150;

/// How long everything goes on at once.
fn duration() -> Duration {
    Duration::from_secs(if torture() { 120 } else { 6 })
}

/// The number that the operator is told for a server with these flags.
fn bound_mb() -> u64 {
    let flags = ["doctor", "--limits", "--json", "--http-port", "0"];
    let ran = Command::new(env!("CARGO_BIN_EXE_heapstead")).args(flags).args(SMALL).output().expect("the command runs");
    let bound: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&ran.stderr)));
    bound["server_mb"].as_u64().expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_load_takes_more_memory_than_doctor_computes_from_the_flags() {
    let (place, tenants) = Place::start(["one/user", "two/user", "three/user"], SMALL);
    let (bound_mb, idle_mb) = (bound_mb(), place.server.memory_mb());
    // First what needs free slots: results that wait to be stored and to be read.
    let answered = join_all(tenants.iter().map(answers)).await;
    let peak_of_answers_mb = place.server.peak_memory_mb();
    let held: Vec<_> = join_all(tenants.iter().zip(&answered).map(|(tenant, ids)| unread(tenant, ids))).await;
    // Then everything else, until time is up.
    let mut ongoing: Vec<Ongoing> = Vec::new();
    for tenant in tenants.iter().take(if torture() { tenants.len() } else { 1 }) {
        ongoing.extend(ABUSES.iter().map(|abuse| abuse.begin(tenant)));
    }
    let more = timeout(duration(), join_all(tenants.iter().map(go_on))).await;
    assert!(more.is_err(), "it goes on for ever");
    let peak_mb = place.server.peak_memory_mb();
    drop((held, ongoing));
    eprintln!("{idle_mb} MB idle, {peak_of_answers_mb} MB with answers, {peak_mb} MB at most, bound {bound_mb} MB");
    assert!(peak_mb <= bound_mb, "{peak_mb} MB were used, and `doctor --limits` says at most {bound_mb} MB");
    assert!(peak_mb >= idle_mb + HEAVY_MB, "{peak_mb} MB is not a heavy load: this test would find nothing");
    // Connections of the attacks may take all places of the address until they are closed.
    let serves = async { while tenants[0].ask("GET", "/readyz", None).await.0 != 200 {} };
    timeout(Duration::from_secs(60), serves).await.expect("it still serves");
}

/// Found by an audit: pages that nobody reads were held by the connection, and no longer counted: 60 of them took 1.5 GB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_nobody_reads_stay_within_the_memory_for_responses() {
    let (place, [tenant, other]) = Place::start(["one/user", "two/user"], &["--max-response-mb", "32"]);
    let code = "for (let i = 0; i < 5; i++) console.log('x'.repeat(1 << 20))";
    let (_, record) = tenant.ask("POST", "/api/exec", Some(json!({ "code": code, "wait_secs": 30 }))).await;
    let path = format!("/api/executions/{}/output?byte_offset=0&byte_limit=4194304", record["execution_id"].as_str().expect("an id"));
    assert_eq!(tenant.ask("GET", &path, None).await.0, 200);
    let idle_mb = place.server.memory_mb();
    let (mut held, mut statuses) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        let mut stream = tenant.begin("GET", &path, "application/json", 0).await.expect("a connection");
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.expect("a status line");
        statuses.push(String::from_utf8_lossy(&status).into_owned());
        held.push(stream);
    }
    let accepted = statuses.iter().filter(|status| status.ends_with("200")).count();
    assert!(
        (1..=8).contains(&accepted) && statuses.iter().all(|status| status.ends_with("200") || status.ends_with("429")),
        "{statuses:?}"
    );
    let mb = place.server.memory_mb();
    // 60 pages of 4 MB would take 240 MB. Freed buffers that the C library keeps count too: about 100 MB on a busy machine.
    assert!(mb < idle_mb + 180, "{idle_mb} MB, then {mb} MB");
    assert_eq!(other.ask("POST", "/api/exec", Some(json!({ "code": "1", "wait_secs": 30 }))).await.0, 200);
}

/// Runs with the longest answers, more at a time than there is room for. All of them complete: a worker waits for room. Returns some ids.
async fn answers(tenant: &Tenant) -> Vec<String> {
    let runs = (0..if torture() { 6 } else { 3 }).map(|number| async move {
        // Types make the JavaScript differ from the source, so it is sent with the result.
        let code = format!("/*{}*/ let n{number}: number = 1; 'x'.repeat({RESULT_BYTES})", "y".repeat(SOURCE_BYTES));
        let body = json!({ "code": code, "session": format!("s{number}"), "wait_secs": 300, "heap_memory_max_mb": 64 });
        let (status, record) = tenant.ask("POST", "/api/exec", Some(body)).await;
        let outcome = (status, record["status"].as_str(), record["result"].as_str().map(str::len));
        // A refusal is right where no source fits any more. A run that was accepted completes. Its result is a text in quotes.
        assert!(status == 429 || outcome == (200, Some("completed"), Some(RESULT_BYTES + 2)), "{outcome:?}: {:.300}", record.to_string());
        record["execution_id"].as_str().map(str::to_owned)
    });
    let ids: Vec<_> = join_all(runs).await.into_iter().flatten().collect();
    assert!(!ids.is_empty(), "an owner always gets something");
    ids
}

/// Readers of long results that read nothing.
async fn unread(tenant: &Tenant, ids: &[String]) -> Vec<Option<TcpStream>> {
    let path = |number: usize| format!("/api/executions/{}", ids[number % ids.len()]);
    join_all((0..30).map(|number| {
        let path = path(number);
        async move { tenant.begin("GET", &path, "application/json", 0).await }
    }))
    .await
}

/// Further requests for long results, over REST and over MCP, that are read slowly, and bodies of the greatest length.
async fn go_on(tenant: &Tenant) {
    let body = Bytes::from(format!("{{\"code\":\"1\",\"session\":\"{}\"}}", "x".repeat(BODY_BYTES)));
    let bodies = async {
        loop {
            let request = tenant.request("POST", "/api/exec").header("content-type", "application/json");
            let _ = request.body(body.clone()).send().await;
        }
    };
    let readers = join_all((0..8).map(|_| async move {
        loop {
            let Some(mut stream) = tenant.begin("GET", "/api/executions?limit=10000", "application/json", 0).await else { continue };
            let mut part = vec![0; 1 << 10];
            let _ = timeout(Duration::from_secs(1), stream.read_exact(&mut part)).await;
        }
    }));
    let results = async {
        loop {
            let (_, list) = tenant.ask("GET", "/api/executions?status=completed&limit=20", None).await;
            let ids: Vec<_> =
                list["executions"].as_array().into_iter().flatten().filter_map(|item| item["execution_id"].as_str()).collect();
            join_all(ids.iter().map(|id| get_over_mcp(tenant, id))).await;
        }
    };
    tokio::join!(bodies, readers, results);
}

/// The result of an execution as a tool call of a version without connections.
async fn get_over_mcp(tenant: &Tenant, id: &str) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "get_execution", "arguments": { "execution_id": id }, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = tenant.request("POST", "/mcp").header("accept", "application/json, text/event-stream");
    let request =
        request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/call").header("mcp-name", "get_execution");
    if let Ok(response) = request.json(&body).send().await {
        let _ = response.bytes().await;
    }
}
