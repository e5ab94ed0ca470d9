//! Two owners of the same heap: both have it, neither can detect the other, and neither can affect the other.

use crate::owners::{Owner, TestServers};
use serde_json::{Value, json};

/// Produces the same heap for every owner.
const CODE: &str = "let shared = 42";

pub async fn make(owner: &Owner) -> String {
    owner.run(json!({ "code": CODE })).await["heap"].as_str().expect("a heap").to_owned()
}

async fn tags(owner: &Owner, heap: &str) -> Value {
    owner.get(&format!("/api/heaps/{heap}/tags")).await["tags"].clone()
}

pub async fn tag(owner: &Owner, heap: &str, tags: Value) {
    let (status, answer) = owner.ask("PUT", &format!("/api/heaps/{heap}/tags"), Some(json!({ "tags": tags }))).await;
    assert_eq!(status, 200, "{answer}");
}

async fn can_continue_from(owner: &Owner, heap: &str) -> bool {
    let run = json!({ "code": "shared", "heap": heap, "on_missing_heap": "fail", "wait_secs": 60 });
    let (status, ran) = owner.ask("POST", "/api/exec", Some(run)).await;
    assert!([200, 404].contains(&status), "{ran}");
    ran["result"] == "42"
}

async fn heaps(owner: &Owner) -> Vec<Value> {
    owner.get("/api/heaps").await["heaps"].as_array().expect("heaps").iter().map(|heap| heap["heap"].clone()).collect()
}

#[tokio::test]
async fn each_owner_has_its_own_tags_on_a_shared_heap() {
    let servers = TestServers::start();
    let owners = [servers.owner("acme/ann"), servers.owner("acme/bob"), servers.anonymous()];
    let heap = make(&owners[0]).await;
    for owner in &owners[1..] {
        assert_eq!(make(owner).await, heap, "the same content has the same key");
    }
    for owner in &owners {
        tag(owner, &heap, json!({ "of": owner.name, "both": "x" })).await;
    }
    for owner in &owners {
        assert_eq!(tags(owner, &heap).await, json!({ "of": owner.name, "both": "x" }));
        let found = owner.post("/api/heaps/query", json!({ "tags": { "both": "x" } })).await;
        assert_eq!(found["results"], json!([{ "heap": heap, "tags": { "of": owner.name, "both": "x" } }]));
    }
    let (status, _) = owners[1].ask("DELETE", &format!("/api/heaps/{heap}/tags"), None).await;
    assert_eq!(status, 200);
    assert_eq!(tags(&owners[1], &heap).await, json!({}));
    assert_eq!(tags(&owners[0], &heap).await["of"], "acme/ann");
}

/// Moves the age of everything stored back by years.
pub fn age(servers: &TestServers) {
    let database = rusqlite::Connection::open(servers.folders.database().join("heapstead.db")).expect("the database");
    database.execute_batch("UPDATE heaps SET last_used_at = 0, stored_at = 0; UPDATE log SET timestamp = 0").expect("aged");
    for file in std::fs::read_dir(servers.folders.heaps()).expect("the heaps").flatten().filter(|file| file.path().is_file()) {
        let file = std::fs::File::options().append(true).open(file.path()).expect("a file");
        file.set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000)).expect("aged");
    }
}

/// Garbage collection does not reveal whether another owner has, uses or has tagged the same heap.
#[tokio::test]
async fn collecting_does_not_affect_or_reveal_other_owners() {
    let servers = TestServers::start_with(&["--retain-heaps", "1"]);
    let (ann, bob, carol) = (servers.owner("acme/ann"), servers.owner("acme/bob"), servers.owner("umbra/carol"));
    let collect = async |owner: &Owner| owner.post("/api/heaps/gc", json!({})).await;
    let heap = make(&ann).await;
    make(&bob).await;
    tag(&bob, &heap, json!({ "kept": "yes" })).await;
    // An owner that does not even have the heap.
    tag(&carol, &heap, json!({ "kept": "yes" })).await;
    age(&servers);
    // Another owner has just used it.
    assert!(can_continue_from(&bob, &heap).await);
    let dry = ann.post("/api/heaps/gc", json!({ "dry_run": true })).await;
    let collected = collect(&ann).await;
    assert_eq!(dry, collected);
    assert_eq!((&collected["removed"], &collected["kept"]), (&json!([heap]), &json!(0)), "{collected}");
    assert_eq!(heaps(&ann).await, [] as [Value; 0]);
    assert!(!can_continue_from(&ann, &heap).await);
    assert!(can_continue_from(&bob, &heap).await);
    assert!(!can_continue_from(&carol, &heap).await, "setting tags does not grant access");
    assert!(!can_continue_from(&servers.anonymous(), &heap).await);
    // The last owner's collection removes it, whatever tags a non-owner set.
    let (status, _) = bob.ask("DELETE", &format!("/api/heaps/{heap}/tags"), None).await;
    assert_eq!(status, 200);
    age(&servers);
    let collected = collect(&bob).await;
    assert!(collected["removed"].as_array().expect("heaps").contains(&json!(heap)), "{collected}");
    for owner in [&ann, &bob, &carol, &servers.anonymous()] {
        assert!(!can_continue_from(owner, &heap).await, "{}", owner.name);
    }
    wait_until_removed(&servers, &heap).await;
}

/// The file of a collected heap is removed after the response.
async fn wait_until_removed(servers: &TestServers, heap: &str) {
    let is_removed = async {
        while servers.folders.heaps().join(heap).exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), is_removed).await.expect("the heap is removed");
}

/// A heap that is not in this database belongs to no authenticated owner, so they cannot collect it.
#[tokio::test]
async fn unknown_heaps_are_not_collected_by_authenticated_owners() {
    let (servers, elsewhere) = (TestServers::start_with(&["--retain-heaps", "1"]), TestServers::start());
    let heap = make(&elsewhere.anonymous()).await;
    let stray = servers.folders.heaps().join(&heap);
    std::fs::copy(elsewhere.folders.heaps().join(&heap), &stray).expect("copied");
    age(&servers);
    let unknown = json!({ "unknown": true });
    let nothing = json!({ "removed": [], "removed_bytes": 0, "kept": 0 });
    assert_eq!(servers.owner("acme/ann").post("/api/heaps/gc", unknown.clone()).await, nothing);
    assert!(stray.exists());
    assert_eq!(servers.anonymous().post("/api/heaps/gc", unknown).await["removed"], json!([heap]));
    assert!(!stray.exists());
}

pub async fn export(owner: &Owner, heap: &str) -> (u16, String, Vec<u8>) {
    let response = owner.request("GET", &format!("/api/heaps/{heap}/file")).send().await.expect("an answer");
    let engine = response.headers().get("x-heapstead-engine").map(|value| value.to_str().expect("text").to_owned()).unwrap_or_default();
    (response.status().as_u16(), engine, response.bytes().await.expect("a body").to_vec())
}

pub async fn import(owner: &Owner, engine: &str, file: &[u8]) -> u16 {
    let sent = owner.request("POST", "/api/heaps").header("content-type", "application/octet-stream").header("x-heapstead-engine", engine);
    sent.body(file.to_vec()).send().await.expect("an answer").status().as_u16()
}

#[tokio::test]
async fn an_imported_heap_belongs_to_both_owners() {
    let servers = TestServers::start();
    let (ann, bob) = (servers.owner("acme/ann"), servers.owner("acme/bob"));
    let heap = make(&ann).await;
    assert_eq!(export(&bob, &heap).await.0, 404);
    let (_, engine, file) = export(&ann, &heap).await;
    assert_eq!(import(&bob, &engine, &file).await, 200);
    assert!(can_continue_from(&bob, &heap).await && can_continue_from(&ann, &heap).await);
    assert!(heaps(&bob).await.contains(&json!(heap)));

    // An owner cannot break a heap, for others or itself, by claiming that another engine wrote it.
    let carol = servers.owner("umbra/carol");
    let (other_v8, other_natives) = (engine.replacen("v8-14", "v8-99", 1), engine.replacen("/natives-", "/natives-9", 1));
    assert!(other_v8 != engine && other_natives != engine);
    for owner in [&carol, &ann] {
        assert_eq!(import(owner, &other_v8, &file).await, 400, "{}: the heap itself says what wrote it", owner.name);
        assert_eq!(import(owner, &other_natives, &file).await, 200, "{}", owner.name);
        assert!(can_continue_from(&ann, &heap).await && can_continue_from(&bob, &heap).await);
        assert_eq!(export(&ann, &heap).await.1, engine);
    }
}

/// Story: whoever guessed the content of another owner's heap, such as a PIN in a variable, made that heap offline and imported it without naming an
/// engine. If `engine` was then set, another owner had the same heap.
#[tokio::test]
async fn an_import_does_not_reveal_that_another_owner_has_the_heap() {
    let servers = TestServers::start();
    let (ann, bob) = (servers.owner("acme/ann"), servers.owner("acme/bob"));
    let held = make(&ann).await;
    let not_held = bob.run(json!({ "code": "let pin = 1234" })).await["heap"].as_str().expect("a heap").to_owned();
    let carol = servers.owner("umbra/carol");
    let mut seen = Vec::new();
    // Carol imports one heap that Ann has, and one that nobody has any more.
    for (owner, heap) in [(&ann, &held), (&bob, &not_held)] {
        let (_, _, file) = export(owner, heap).await;
        if owner.name == bob.name {
            age(&servers);
            let collected = bob.post("/api/heaps/gc", json!({})).await;
            assert!(collected["removed"].as_array().expect("heaps").contains(&json!(not_held)), "{collected}");
        }
        let sent = carol.request("POST", "/api/heaps").header("content-type", "application/octet-stream").body(file);
        let imported = sent.send().await.expect("an answer");
        let imported = (imported.status().as_u16(), imported.text().await.expect("a body"));
        let shown = carol.get(&format!("/api/heaps/{heap}")).await;
        let listed = carol.get("/api/heaps").await["heaps"].as_array().expect("heaps").iter().find(|one| one["heap"] == **heap).cloned();
        assert_eq!(listed.as_ref(), Some(&shown));
        assert!(shown["stored_at"].as_str() > Some("2020"), "{shown}");
        let exported = export(&carol, heap).await;
        seen.push((imported.0, imported.1.replace(heap, "KEY"), shown["engine"].clone(), shown["bytes"].is_u64(), exported.1));
    }
    assert_eq!(seen[0].2, Value::Null);
    assert_eq!(seen[0], seen[1]);
}

/// Regression: a run with a missing heap records its key in the log. That was enough to fork a session from that heap, and so to read
/// another owner's data.
#[tokio::test]
async fn naming_a_heap_in_a_run_does_not_grant_access() {
    let servers = TestServers::start();
    let (ann, bob) = (servers.owner("acme/ann"), servers.owner("acme/bob"));
    let heap = ann.run(json!({ "code": "let secret = 'mene-tekel'" })).await["heap"].as_str().expect("a heap").to_owned();
    let missing = crate::owned_objects::other(&heap);
    for other in [&bob, &servers.anonymous()] {
        let session = other.post("/api/sessions", json!({})).await["session_id"].as_str().expect("an id").to_owned();
        let mut answers = Vec::new();
        for key in [&heap, &missing] {
            other.run(json!({ "code": "1", "session": session, "heap": key })).await;
            let log = other.get(&format!("/api/session-snapshots?session={session}&fields=input_heap")).await;
            assert!(log.to_string().contains(key.as_str()), "{log}");
            let (status, forked) = other.ask("POST", &format!("/api/sessions/{session}/fork"), Some(json!({ "heap": key }))).await;
            answers.push((status, forked.to_string().replace(key, "KEY")));
        }
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0].0, 404, "{answers:?}");
    }
}

/// Regression: a connection may name its log like the id of another owner's session. The session then waited for that log's runs.
#[tokio::test]
async fn a_log_named_like_anothers_session_does_not_block_it() {
    let servers = TestServers::start();
    let (ann, bob) = (servers.owner("acme/ann"), servers.owner("acme/bob"));
    let session = ann.post("/api/sessions", json!({})).await["session_id"].as_str().expect("an id").to_owned();
    let waits = json!({ "code": "await new Promise(done => setTimeout(done, 250000))", "execution_timeout_secs": 300 });
    let begun = bob.request("POST", "/api/exec").header("x-mcp-session-id", &session).json(&waits).send().await.expect("an answer");
    let begun: Value = begun.json().await.expect("JSON");
    let path = format!("/api/executions/{}", begun["execution_id"].as_str().expect("an id"));
    assert_eq!(
        ann.run(json!({ "code": "1 + 1", "session": session })).await["result"],
        "2",
        "the session does not wait for runs of the log"
    );
    assert_eq!(ann.ask("DELETE", &format!("/api/sessions/{session}"), None).await.0, 200);
    assert_eq!(bob.get(&path).await["status"], "running", "ending the session does not cancel runs of the log");
}
