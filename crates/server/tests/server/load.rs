//! Many clients, some of them hostile: no client gets an error caused by another, none starves, and memory stays bounded.

use crate::fixture::{Folders, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const CLIENTS: usize = 200;
/// Four times the memory the server needed so far. A leak of output would exceed it within seconds.
const MEMORY_MB_MAX: u64 = 300;

/// What a client does repeatedly, and how each of its runs must end.
struct Behaviour {
    name: &'static str,
    code: &'static str,
    ends: &'static str,
    /// Number of such clients out of twenty.
    share: usize,
}

const BEHAVIOURS: &[Behaviour] = &[
    Behaviour { name: "chain", code: "globalThis.n = (globalThis.n ?? 0) + 1", ends: "completed", share: 8 },
    Behaviour { name: "timer", code: "await new Promise((done) => setTimeout(done, 20)); 'waited'", ends: "completed", share: 4 },
    Behaviour { name: "writer", code: "for (let i = 0; i < 200; i++) console.log('line', i, { i })", ends: "completed", share: 3 },
    Behaviour { name: "thrower", code: "throw new Error('mine')", ends: "failed", share: 1 },
    Behaviour { name: "looper", code: "for (;;) {}", ends: "timed_out", share: 1 },
    Behaviour { name: "hoarder", code: "const all = []; for (;;) all.push(new Array(1e5).fill(all))", ends: "failed", share: 1 },
    Behaviour {
        name: "flooder",
        code: "for (let i = 0; i < 50; i++) console.log('x'.repeat(1 << 17)); 'flooded'",
        ends: "completed",
        share: 1,
    },
    Behaviour { name: "never", code: "await new Promise(() => {})", ends: "failed", share: 1 },
];

fn behaviour(client: usize) -> &'static Behaviour {
    let mut place = client % 20;
    for behaviour in BEHAVIOURS {
        match place.checked_sub(behaviour.share) {
            None => return behaviour,
            Some(rest) => place = rest,
        }
    }
    unreachable!("the shares add up to twenty")
}

/// Runs code repeatedly until the time is up. Returns the number of ended runs.
async fn client(http: reqwest::Client, url: String, number: usize, until: Instant) -> usize {
    let (behaviour, mut heap, mut runs) = (behaviour(number), Value::Null, 0);
    while Instant::now() < until {
        let body = json!({ "code": behaviour.code, "heap": heap, "wait_secs": 120, "execution_timeout_secs": 1, "heap_memory_max_mb": 16 });
        let request = http.post(format!("{url}/api/exec")).header("X-MCP-Session-Id", format!("client-{number}")).json(&body);
        let response = request.send().await.unwrap_or_else(|error| panic!("{} {number}: {error:?}", behaviour.name));
        let status = response.status().as_u16();
        if status == 429 {
            let secs = response.headers()["retry-after"].to_str().expect("text").parse().expect("seconds");
            tokio::time::sleep(Duration::from_secs(secs)).await;
            continue;
        }
        let record: Value = response.json().await.expect("JSON");
        assert_eq!(status, 200, "{} {number}: {record}", behaviour.name);
        // A run may also time out: a second on a shared core may not be enough.
        let expected = record["status"] == behaviour.ends || record["status"] == "timed_out";
        assert!(expected, "{} {number}: {record}", behaviour.name);
        if behaviour.name == "chain" && record["status"] == "completed" {
            heap = record["heap"].clone();
        }
        runs += 1;
    }
    runs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_are_served_fairly() {
    let server = Server::start_with(&Folders::new(), &["--max-queued", "150"]);
    let secs = if std::env::var_os("HEAPSTEAD_TORTURE").is_some() { 60 } else { 10 };
    let began = Instant::now();
    let until = began + Duration::from_secs(secs);
    let clients: Vec<_> =
        (0..CLIENTS).map(|number| tokio::spawn(client(server.client.clone(), server.url.clone(), number, until))).collect();
    let mut memory_mb = 0;
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(250)).await;
        memory_mb = memory_mb.max(server.memory_mb());
    }
    let mut runs: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, client) in clients.into_iter().enumerate() {
        let ended = client.await.expect("a client without an error");
        runs.entry(behaviour(number).name).or_default().push(ended);
    }
    eprintln!("{:?}, {memory_mb} MB, runs per client: {runs:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(secs + 60), "nothing hangs: {:?}", began.elapsed());
    assert!(memory_mb < MEMORY_MB_MAX, "the server held {memory_mb} MB");
    for (name, mut counts) in runs {
        counts.sort();
        let (least, median) = (counts[0], counts[counts.len() / 2]);
        assert!(least >= 1 && least * 4 >= median, "{name}: one client was served {least} times, the median is {median}");
    }
    let (_, health) = server.get("/api/health").await;
    assert_eq!((&health["status"], &health["engine"]["running"], &health["engine"]["queued"]), (&json!("healthy"), &json!(0), &json!(0)));
    assert_eq!(server.terminate(), Some(0));
}

/// Anonymous callers are told apart by address. A session name once made a separate lane, so one client could take any number of turns by
/// sending a new name with every request.
#[tokio::test]
async fn a_client_with_many_runs_does_not_delay_another_whatever_headers_it_sends() {
    let server = Server::start_with(&Folders::new(), &["--max-concurrent-executions", "1"]);
    let run = async |http: &reqwest::Client, session: &str, wait_secs: Option<u32>| {
        let body = json!({ "code": "const end = Date.now() + 20; while (Date.now() < end);", "wait_secs": wait_secs });
        let request = http.post(format!("{}/api/exec", server.url)).header("X-MCP-Session-Id", session).json(&body);
        request.send().await.expect("an answer").json::<Value>().await.expect("JSON")
    };
    for number in 0..250 {
        run(&server.client, &format!("name {number}"), None).await;
    }
    let queued = async || server.get("/api/health").await.1["engine"]["queued"].as_u64().expect("a count");
    let before = queued().await;
    assert!(before > 50, "the queue of the first client is long: {before}");
    let elsewhere = reqwest::Client::builder().local_address("127.0.0.2".parse::<std::net::IpAddr>().ok()).build().expect("a client");
    assert_eq!(run(&elsewhere, "modest", Some(60)).await["status"], "completed");
    let after = queued().await;
    assert!(before - after <= 20, "lanes take turns, so only a few went first: {before} waited before, {after} after");
}
