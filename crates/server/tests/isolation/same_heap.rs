//! Two owners with the same heap. Whatever one of them does with it, before or after the other gets it, every later response to the other is byte
//! for byte the same as on a server where the first never had it.
//!
//! The later requests come from the table of rows, so a new operation on heaps or sessions is among them.

use crate::caller::Caller;
use crate::fixture::SNAPSHOT;
use crate::owned_objects::ObjectKind;
use crate::owners::{Owner, TestServers};
use crate::rows::{Ask, Control, rows};
use crate::sharing::{age, export, import, tag};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// What the other owner does with the heap.
const DEEDS: [&str; 9] = ["run", "import", "import for another engine", "continue", "tag", "head", "use", "collect", "nothing"];
/// How the owner gets the heap.
const WAYS: [&str; 4] = ["run", "import", "import without an engine", "import for another engine"];

/// A heap that nobody has yet, as a file.
struct File {
    code: String,
    key: String,
    engine: String,
    other_engine: String,
    bytes: Vec<u8>,
}

impl File {
    async fn made_by(owner: &Owner, number: u32) -> Self {
        let code = format!("let shared = 42, number = {number}");
        let key = make(owner, &code).await;
        let (_, engine, bytes) = export(owner, &key).await;
        Self { code, key, other_engine: engine.replacen("/natives-", "/natives-9", 1), engine, bytes }
    }

    async fn get(&self, owner: &Owner, way: &str) {
        let status = match way {
            "run" => {
                assert_eq!(make(owner, &self.code).await, self.key);
                200
            }
            "import" => import(owner, &self.engine, &self.bytes).await,
            "import for another engine" => import(owner, &self.other_engine, &self.bytes).await,
            _ => owner
                .request("POST", "/api/heaps")
                .header("content-type", "application/octet-stream")
                .body(self.bytes.clone())
                .send()
                .await
                .expect("an answer")
                .status()
                .as_u16(),
        };
        assert_eq!(status, 200, "{way}");
    }

    /// Returns an execution that runs until it is cancelled.
    async fn act(&self, servers: &TestServers, owner: &Owner, deed: &str) -> Option<String> {
        let continues = json!({ "code": "shared", "heap": self.key });
        match deed {
            "nothing" => return None,
            "run" | "import" | "import for another engine" => {
                self.get(owner, deed).await;
                return None;
            }
            _ => self.get(owner, "run").await,
        }
        match deed {
            "continue" => drop(owner.run(continues).await),
            "tag" => tag(owner, &self.key, json!({ "mine": "x" })).await,
            "head" => {
                let session = owner.post("/api/sessions", json!({})).await["session_id"].clone();
                owner.run(json!({ "code": "shared", "heap": self.key, "session": session })).await;
            }
            "use" => {
                let waits = "await new Promise(done => setTimeout(done, 250000))";
                let running = json!({ "code": waits, "heap": self.key, "execution_timeout_secs": 300 });
                let running = owner.post("/api/exec", running).await;
                return running["execution_id"].as_str().map(str::to_owned);
            }
            _ => {
                age(servers);
                owner.post("/api/heaps/gc", json!({})).await;
            }
        }
        None
    }
}

async fn make(owner: &Owner, code: &str) -> String {
    owner.run(json!({ "code": code })).await["heap"].as_str().expect("a heap").to_owned()
}

/// All that the owner of a heap can ask about it, with the responses.
async fn responses(servers: &TestServers, owner: &Owner, file: &File, way: &str) -> Vec<(String, String)> {
    let mut caller = Caller::rest(owner).await;
    let mut seen = Vec::new();
    let session = owner.post("/api/sessions", json!({})).await["session_id"].as_str().expect("an id").to_owned();
    let status = [
        Ask::Operation("show_heap", json!({ "heap": file.key })),
        Ask::Operation("list_heaps", json!({})),
        Ask::Operation("storage_usage", json!({})),
        Ask::Operation("collect_heaps", json!({ "dry_run": true })),
        Ask::Operation("get_heap_tags", json!({ "heap": file.key })),
    ];
    let enters = Ask::Operation("run_js", json!({ "code": "shared", "heap": file.key, "session": session, "wait_secs": 60 }));
    let fork = Ask::Operation("session_fork", json!({ "session": session, "heap": file.key }));
    let mut asks = [&status[..], &[enters, fork]].concat();
    for row in rows().iter().filter(|row| row.control != Control::Waits) {
        let ask = match row.kind {
            ObjectKind::Heap => (row.ask)(&file.key),
            ObjectKind::Session => (row.ask)(&session),
            _ => continue,
        };
        let is_connection = matches!(&ask, Ask::Route { path, .. } if path == "/mcp");
        if is_connection || matches!(ask, Ask::Method(..) | Ask::In(..)) {
            continue;
        }
        asks.push(ask);
        if row.control == Control::Changes && row.kind == ObjectKind::Heap {
            asks.extend(status.iter().cloned());
        }
    }
    for ask in &asks {
        let response = caller.ask(ask).await.expect("possible over REST");
        // The owner may have deleted it.
        if response.starts_with("404") {
            file.get(owner, way).await;
        }
        seen.push([format!("{ask:?}"), response].map(|text| normal(&text.replace(&session, "SESSION"))).into());
    }
    age(servers);
    for ask in [&status[..], &[Ask::Operation("collect_heaps", json!({}))], &status[..]].concat() {
        seen.push((format!("{ask:?}"), normal(&caller.ask(&ask).await.expect("possible over REST"))));
    }
    seen
}

/// Random ids and times of now are replaced. The times of what was stored before are of 1970.
fn normal(text: &str) -> String {
    let is_word = |char: char| char.is_ascii_alphanumeric() || "-:.".contains(char);
    let is_id = |word: &str| [32, 36].contains(&word.len()) && word.chars().all(|char| char.is_ascii_hexdigit() || char == '-');
    let mut normal = String::new();
    for part in text.split_inclusive(|char| !is_word(char)) {
        let word = part.trim_end_matches(|char| !is_word(char));
        match word {
            _ if word.starts_with("20") && word.ends_with('Z') => normal += "NOW",
            // In the summary of a call, and in an error about the head of another session.
            _ if is_id(word) || normal.ends_with("session_id: ") || normal.ends_with("head of session `") => normal += "ID",
            _ => normal += word,
        }
        normal += &part[word.len()..];
    }
    normal
}

async fn compare(deeds: &[&str], ways: &[&str]) {
    let elsewhere = TestServers::start();
    let maker = elsewhere.anonymous();
    // A checkpoint that is written some time after the answer would be another difference.
    let start = || TestServers::start_with(&[&["--retain-heaps", "1"], SNAPSHOT].concat());
    let (shared, alone) = (start(), start());
    let ann = shared.owner("acme/ann");
    let (mut number, mut by_way, mut differences) = (0, BTreeMap::new(), Vec::new());
    for (deed, way) in deeds.iter().flat_map(|deed| ways.iter().map(move |way| (*deed, *way))) {
        for is_first in [true, false] {
            number += 1;
            let file = File::made_by(&maker, number).await;
            let (mut seen, mut running) = (Vec::new(), None);
            for servers in [&shared, &alone] {
                let bob = servers.owner(Box::leak(format!("umbra/bob{number}").into_boxed_str()));
                let is_shared = std::ptr::eq(servers, &shared);
                if is_shared && is_first {
                    running = file.act(servers, &ann, deed).await;
                }
                // What the owner stored has the time of today, and what was stored before has not.
                age(servers);
                file.get(&bob, way).await;
                if !is_first {
                    age(servers);
                }
                if is_shared && !is_first {
                    running = file.act(servers, &ann, deed).await;
                }
                seen.push(responses(servers, &bob, &file, way).await);
            }
            let (alone, shared) = (seen.pop().expect("responses"), seen.pop().expect("responses"));
            for (shared, alone) in shared.iter().zip(&alone).filter(|(shared, alone)| shared != alone) {
                let when = if is_first { "before" } else { "after" };
                let (ask, shared, alone) = (&shared.0, &shared.1, &alone.1);
                differences.push(format!("{way}, and another owner {deed} {when}: {ask}\nshared: {shared}\nalone: {alone}"));
            }
            if let Some(id) = running {
                ann.ask("POST", &format!("/api/executions/{id}/cancel"), None).await;
            }
            by_way.insert(way, alone);
        }
    }
    assert!(differences.is_empty(), "{} responses reveal another owner:\n{}", differences.len(), differences.join("\n\n"));
    // The comparison notices what the owner itself did.
    let different: BTreeSet<_> = by_way.values().collect();
    assert_eq!(different.len(), ways.len());
}

#[tokio::test]
async fn responses_about_a_heap_do_not_depend_on_another_owner_of_it() {
    let deeds = if crate::fixture::torture() { &DEEDS[..] } else { &["run", "import for another engine", "collect"] };
    compare(deeds, &WAYS).await;
}
