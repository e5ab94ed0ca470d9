//! `kill -9` at random moments: everything acknowledged is stored exactly once, and every recorded heap loads.
//!
//! Clients run chains in their own sessions and note what the server acknowledged. The server is killed at a random moment, or kills itself
//! at a named point. The next server on the same folders must know everything acknowledged. `SEED=… cargo test … crash` replays a failure.

use crate::fixture::{Folders, Random, Server};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

const CLIENTS: usize = 4;
/// Points at which the server kills itself: see `crash_point` in the service.
const POINTS: [&str; 4] = ["accepted", "heap-stored", "before-commit", "committed"];
/// Maximum duration of a round without a crash point.
const ROUND_MAX: Duration = Duration::from_millis(600);

/// What the server acknowledged to one client.
#[derive(Default)]
struct Acknowledged {
    /// Known ids with the last record seen of each.
    records: BTreeMap<String, Value>,
    /// Output read from the beginning.
    outputs: BTreeMap<String, String>,
    /// Acknowledged tags by heap.
    tags: BTreeMap<String, Value>,
    /// The last acknowledged heap of the chain, and the number of runs up to it.
    head: Option<(String, u64)>,
    /// Ids of records that changed since the last check.
    changed: Vec<String>,
}

/// What is compared: everything since the last crash, or everything.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Changed,
    Everything,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_duplicated() {
    let rounds = if crate::fixture::torture() { 500 } else { 40 };
    let random = Arc::new(Random::new());
    let seed = random.seed;
    let folders = Folders::new();
    let mut clients: Vec<Acknowledged> = (0..CLIENTS).map(|_| Acknowledged::default()).collect();
    for round in 0..rounds {
        let crash = match round % 2 {
            0 => Some(format!("{}:{}", POINTS[round / 2 % POINTS.len()], 1 + random.below(20))),
            _ => None,
        };
        let variables: Vec<_> = crash.iter().map(|crash| ("HEAPSTEAD_CRASH_AT", crash.as_str())).collect();
        let mut server = Server::start_in(&folders, &["--log", "error"], &variables);
        let scope = if round % 50 == 49 { Scope::Everything } else { Scope::Changed };
        for (number, known) in clients.iter_mut().enumerate() {
            verify(&server, number, known, scope)
                .await
                .unwrap_or_else(|what| panic!("round {round}, client {number}: {what}; SEED={seed}"));
        }
        // Only the server of the last round stays up for the final check.
        let (client, url) = (server.client.clone(), server.url.clone());
        let working = clients.into_iter().enumerate().map(|(number, known)| {
            let (client, url, random) = (client.clone(), url.clone(), random.clone());
            tokio::spawn(async move { work(&client, &url, number, known, &random).await })
        });
        let working: Vec<_> = working.collect();
        if crash.is_none() {
            tokio::time::sleep(Duration::from_millis(random.below(ROUND_MAX.as_millis() as u64))).await;
        } else {
            let _ = tokio::time::timeout(ROUND_MAX * 4, server.ended()).await;
        }
        server.kill();
        clients = Vec::new();
        for work in working {
            clients.push(work.await.expect("no panic"));
        }
    }
    let server = Server::start_with(&folders, &[]);
    for (number, known) in clients.iter_mut().enumerate() {
        verify(&server, number, known, Scope::Everything)
            .await
            .unwrap_or_else(|what| panic!("at the end, client {number}: {what}; SEED={seed}"));
        check_chain(&server, known).await;
    }
    let acknowledged: usize = clients.iter().map(|known| known.records.len()).sum();
    let ended = |status: &str| clients.iter().flat_map(|known| known.records.values()).filter(|record| record["status"] == status).count();
    let ends = ["completed", "failed", "cancelled", "timed_out"].map(|status| (status, ended(status)));
    println!("{acknowledged} executions acknowledged over {rounds} crashes: {ends:?}");
    assert!(ends[..3].iter().all(|(_, count)| *count > 0), "a status that never occurred: {ends:?}");
    assert!(acknowledged > rounds, "too few executions were acknowledged: {acknowledged}");
}

/// Runs a chain until the server is gone, and notes its responses.
async fn work(client: &reqwest::Client, url: &str, number: usize, mut known: Acknowledged, random: &Random) -> Acknowledged {
    // Every failure here is caused by the kill.
    while step(client, url, number, &mut known, random).await.is_some() {}
    known
}

async fn step(client: &reqwest::Client, url: &str, number: usize, known: &mut Acknowledged, random: &Random) -> Option<()> {
    match random.below(40) {
        0 => run_outside_chain(client, url, known, "for (;;);", false).await,
        1..=4 => run_outside_chain(client, url, known, THROWS, false).await,
        5..=8 => run_outside_chain(client, url, known, "console.log('é loops'); for (;;);", true).await,
        _ => run_next_in_chain(client, url, number, known, random).await,
    }
}

/// Code that throws.
const THROWS: &str = "console.log('é throws'); throw new Error('mine')";

/// An extra run outside the chain that does not complete.
async fn run_outside_chain(client: &reqwest::Client, url: &str, known: &mut Acknowledged, code: &str, cancels: bool) -> Option<()> {
    let body = json!({ "code": code, "execution_timeout_secs": 1 });
    let answer = send(client.post(format!("{url}/api/exec")).json(&body)).await?;
    let id = answer["execution_id"].as_str()?.to_owned();
    known.note(&id, answer);
    if cancels {
        send(client.get(format!("{url}/api/executions/{id}/output?wait_secs=20"))).await?;
        send(client.post(format!("{url}/api/executions/{id}/cancel")).json(&json!({}))).await?;
    }
    let record = send(client.get(format!("{url}/api/executions/{id}?wait_secs=20"))).await?;
    let expected = if cancels {
        "cancelled"
    } else if code == THROWS {
        "failed"
    } else {
        "timed_out"
    };
    assert_eq!(record["status"], expected, "{record}");
    known.note(&id, record);
    let page = send(client.get(format!("{url}/api/executions/{id}/output"))).await?;
    known.outputs.insert(id, page["data"].as_str()?.to_owned());
    Some(())
}

impl Acknowledged {
    fn note(&mut self, id: &str, record: Value) {
        self.records.insert(id.to_owned(), record);
        self.changed.push(id.to_owned());
    }
}

/// The next run of the client's chain.
async fn run_next_in_chain(client: &reqwest::Client, url: &str, number: usize, known: &mut Acknowledged, random: &Random) -> Option<()> {
    let (heap, length) = known.head.clone().unwrap_or_default();
    let code = if length == 0 {
        // The client's number is on the heap, because the same work of two clients would produce the same heap.
        format!("var client = {number}, kept = [0]; console.log('é run', kept.length)")
    } else {
        format!("kept.push({length}); console.log('é run', kept.length); kept.length")
    };
    let tags = json!({ "client": number.to_string(), "length": (length + 1).to_string() });
    let mut body = json!({ "code": code, "heap": heap, "session": format!("client-{number}"), "tags": tags, "on_missing_heap": "fail" });
    let waits = random.below(2) == 0;
    if waits {
        body["wait_secs"] = 20.into();
    }
    let answer: Value = send(client.post(format!("{url}/api/exec")).json(&body)).await?;
    let id = answer["execution_id"].as_str()?.to_owned();
    known.note(&id, answer.clone());
    let record = if waits { answer } else { send(client.get(format!("{url}/api/executions/{id}?wait_secs=20"))).await? };
    known.note(&id, record.clone());
    assert_eq!(record["status"], "completed", "{record}");
    let heap = record["heap"].as_str()?.to_owned();
    known.head = Some((heap.clone(), length + 1));
    known.tags.insert(heap, tags);
    let page = send(client.get(format!("{url}/api/executions/{id}/output"))).await?;
    known.outputs.insert(id, page["data"].as_str()?.to_owned());
    Some(())
}

async fn send(request: reqwest::RequestBuilder) -> Option<Value> {
    let response = request.send().await.ok()?;
    assert!(response.status().is_success(), "{:?}", response.text().await);
    serde_json::from_str(&response.text().await.ok()?).ok()
}

/// Compares the acknowledged state with the server's. The server's answer about runs whose end was not yet acknowledged counts as
/// acknowledged from now on.
async fn verify(server: &Server, number: usize, known: &mut Acknowledged, scope: Scope) -> Result<(), String> {
    let changed = std::mem::take(&mut known.changed);
    let ids: BTreeSet<String> =
        if scope == Scope::Everything { known.records.keys().cloned().collect() } else { changed.into_iter().collect() };
    for id in &ids {
        let (status, record) = server.get(&format!("/api/executions/{id}")).await;
        if status != 200 {
            return Err(format!("{id} was acknowledged and is not found: {record}"));
        }
        let seen = known.records.get(id).unwrap_or(&Value::Null);
        let had_ended = seen["status"].as_str().is_some_and(|status| status != "running");
        let error = record["error"].as_str().unwrap_or_default();
        match record["status"].as_str() {
            _ if had_ended && record != *seen => return Err(format!("{id} was {seen} and is {record}")),
            Some("running") => return Err(format!("{id} is still running, but its server is dead")),
            Some("failed") if error != "server restarted" && !error.contains("mine") => {
                return Err(format!("{id} failed for another reason than the restart: {record}"));
            }
            _ => drop(known.records.insert(id.clone(), record)),
        }
        let Some(seen) = known.outputs.get(id) else { continue };
        let (_, page) = server.get(&format!("/api/executions/{id}/output")).await;
        if page["data"] != **seen {
            return Err(format!("{id} had written {seen:?}, now {page}"));
        }
    }
    let tags_looked_at = if scope == Scope::Everything { usize::MAX } else { 20 };
    for (heap, tags) in known.tags.iter().rev().take(tags_looked_at) {
        let (_, now) = server.get(&format!("/api/heaps/{heap}/tags")).await;
        if now["tags"] != *tags {
            return Err(format!("{heap} had the tags {tags}, now {now}"));
        }
    }
    verify_log(server, number, known).await
}

async fn verify_log(server: &Server, number: usize, known: &Acknowledged) -> Result<(), String> {
    let fields = "index,output_heap,execution_id";
    let (_, log) = server.get(&format!("/api/session-snapshots?session=client-{number}&fields={fields}")).await;
    let entries = log["entries"].as_array().ok_or_else(|| format!("no log: {log}"))?;
    let mut logged = HashSet::new();
    for (index, entry) in entries.iter().enumerate() {
        if entry["index"] != index as u64 {
            return Err(format!("entry {index} has a wrong index: {entry}"));
        }
        if !logged.insert(entry["execution_id"].as_str().unwrap_or_default().to_owned()) {
            return Err(format!("an execution is in the log twice: {entry}"));
        }
    }
    for entry in entries.iter().rev().take(10) {
        // Reads the whole heap, as a run would, with all checks.
        let key = entry["output_heap"].as_str().unwrap_or_default();
        let file = server.client.get(format!("{}/api/heaps/{key}/file", server.url)).send().await.map_err(|error| error.to_string())?;
        let status = file.status();
        // To its end: an export that is not read keeps its place.
        let bytes = file.bytes().await.map_err(|error| format!("the log names a heap that can't be read: {entry}: {error}"))?;
        if status != 200 {
            return Err(format!("the log names a heap that can't be read: {entry}: {status} {}", String::from_utf8_lossy(&bytes)));
        }
    }
    let completed = known.records.iter().filter(|(_, record)| record["status"] == "completed");
    match completed.into_iter().find(|(id, _)| !logged.contains(*id)) {
        Some((id, record)) => Err(format!("{id} completed and is not in the log: {record}")),
        None => Ok(()),
    }
}

/// The last heap of a chain contains the work of every run before it.
async fn check_chain(server: &Server, known: &Acknowledged) {
    let Some((heap, length)) = &known.head else { return };
    let record = server.run_with(json!({ "code": "kept.length", "heap": heap, "on_missing_heap": "fail" })).await;
    assert_eq!(record["result"], length.to_string(), "{record}");
}
