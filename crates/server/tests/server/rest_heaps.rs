//! Heaps, tags and session logs over REST.

use crate::fixture::{Folders, Server};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ENGINE: &str = "x-heapstead-engine";

async fn export(server: &Server, key: &str) -> (HeaderMap, Vec<u8>) {
    let response = server.client.get(format!("{}/api/heaps/{key}/file", server.url)).send().await.expect("an answer");
    assert_eq!(response.status(), 200);
    (response.headers().clone(), response.bytes().await.expect("a body").to_vec())
}

async fn import(server: &Server, file: Vec<u8>, engine: Option<&str>) -> (u16, Value) {
    let mut request = server.client.post(format!("{}/api/heaps", server.url)).header("content-type", "application/octet-stream");
    if let Some(engine) = engine {
        request = request.header(ENGINE, engine);
    }
    let response = request.body(file).send().await.expect("an answer");
    (response.status().as_u16(), response.json().await.expect("JSON"))
}

fn key_of(record: &Value) -> String {
    record["heap"].as_str().unwrap_or_else(|| panic!("no heap in {record}")).to_owned()
}

#[tokio::test]
async fn a_heap_is_stored_under_the_checksum_of_its_payload() {
    let server = Server::start();
    let key = key_of(&server.run("let kept = 'here'").await);
    let (headers, file) = export(&server, &key).await;
    assert_eq!(&file[..10], b"MCPV8SNAP\0");
    assert_eq!(hex(&file[10..42]), key);
    assert_eq!(hex(&Sha256::digest(&file[42..])), key);
    assert!(file.len() >= 42 + (100 << 10));
    assert_eq!(file, std::fs::read(server.folders().heaps().join(&key)).expect("the file in the store"));
    assert_eq!(headers["content-type"], "application/octet-stream");
    let (_, shown) = server.get(&format!("/api/heaps/{key}")).await;
    assert_eq!((&shown["heap"], &shown["bytes"]), (&json!(key), &json!(file.len() - 42)));
    assert_eq!(headers[ENGINE].to_str().ok(), shown["engine"].as_str());
    assert_eq!(server.get(&format!("/api/heaps/{}/file", "0".repeat(64))).await.0, 404);
    for bad in ["x", &key.to_uppercase(), "..%2f..%2fetc%2fpasswd"] {
        assert_eq!(server.get(&format!("/api/heaps/{bad}/file")).await.0, 400, "{bad}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An export once held the whole file in memory until its client had read it, and an import until its last byte had arrived.
#[tokio::test]
async fn transfers_of_heap_files_take_no_memory_for_the_file() {
    let server = Server::start();
    let key = key_of(&server.run("globalThis.kept = new Uint8Array(48 << 20).fill(7); 1").await);
    let (headers, file) = export(&server, &key).await;
    assert_eq!(headers["content-length"].to_str().ok(), Some(file.len().to_string().as_str()));
    assert_eq!(import(&server, file.clone(), None).await, (200, json!({ "heap": key })));
    let peak_mb = server.peak_memory_mb();
    assert!(peak_mb < 80, "{peak_mb} MB");
    let before_mb = server.memory_mb();
    let address = server.url.strip_prefix("http://").expect("a URL");
    let mut readers = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let request = format!("GET /api/heaps/{key}/file HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        // The server has begun to send.
        stream.read_exact(&mut vec![0; 1000]).await.expect("the beginning");
        readers.push(stream);
    }
    let more_mb = server.memory_mb().saturating_sub(before_mb);
    assert!(more_mb < 24, "{more_mb} MB for two readers of a file of {} MB", file.len() >> 20);
}

#[tokio::test]
async fn a_heap_moves_from_one_server_to_another() {
    let (from, to) = (Server::start(), Server::start());
    let key = key_of(&from.run("let n = 41").await);
    let (headers, file) = export(&from, &key).await;
    let engine = headers[ENGINE].to_str().expect("an id");
    assert_eq!(import(&to, file.clone(), Some(engine)).await, (200, json!({ "heap": key })));
    assert_eq!(to.run_with(json!({ "code": "n + 1", "heap": key })).await["result"], "42");

    let mut turned = file.clone();
    turned[5000] ^= 1;
    for (file, engine, expected) in [
        (turned, Some(engine), "`file` is not a heap"),
        (file[..file.len() - 1].to_vec(), Some(engine), "`file` is not a heap"),
        (file[..100].to_vec(), Some(engine), "`file` is not a heap"),
        (Vec::new(), Some(engine), "`file` is not a heap"),
        (b"hello".to_vec(), Some(engine), "mark of a heap file"),
        (file.clone(), Some("v8-1.0/x86_64/flags-00000000/natives-1-00000000"), "the heap itself says that it was written by engine v8-1"),
        (file.clone(), Some("v9"), "`v9` is not an engine id"),
    ] {
        let (status, problem) = import(&to, file, engine).await;
        assert_eq!(status, 400, "{problem}");
        assert!(problem["detail"].as_str().expect("a detail").contains(expected), "{problem}");
    }
    let text = to.client.post(format!("{}/api/heaps", to.url)).header(ENGINE, engine).body("x").send().await.expect("an answer");
    assert_eq!(text.status(), 415);
    let (_, list) = to.get("/api/heaps").await;
    assert_eq!(list["heaps"].as_array().map(Vec::len), Some(2), "one was imported, one produced by the run: {list}");
}

/// The same heap with another V8 version in it, and its key.
fn with_version(mut file: Vec<u8>, version: &[u8]) -> (String, Vec<u8>) {
    let field = &mut file[42 + 16..42 + 80];
    field.fill(0);
    field[..version.len()].copy_from_slice(version);
    let digest = Sha256::digest(&file[42..]);
    file[10..42].copy_from_slice(&digest);
    (hex(&digest), file)
}

/// Regression: a heap without a sidecar could be exported but not imported.
#[tokio::test]
async fn a_heap_of_unknown_engine_can_be_moved_and_is_checked_by_its_v8_version() {
    let (made, from, to) = (Server::start(), Server::start(), Server::start());
    let key = key_of(&made.run("let n = 41").await);
    // In the store of a server that did not write it.
    std::fs::copy(made.folders().heaps().join(&key), from.folders().heaps().join(&key)).expect("copied");
    let (headers, file) = export(&from, &key).await;
    assert_eq!(headers.get(ENGINE), None);
    assert_eq!(import(&to, file.clone(), None).await, (200, json!({ "heap": key })));
    assert_eq!(to.get(&format!("/api/heaps/{key}")).await.1["engine"], Value::Null);
    assert_eq!(to.run_with(json!({ "code": "n + 1", "heap": key })).await["result"], "42");
    let (older, file) = with_version(file, b"13.0");
    assert_eq!(import(&to, file, None).await.0, 200);
    let record = to.run_with(json!({ "code": "n + 1", "heap": older })).await;
    assert!(record["error"].as_str().is_some_and(|error| error.contains("heap was written by engine v8-13.0, this is")), "{record}");
}

/// Regression: importing a heap again with a wrong engine id made it unusable for its owners.
#[tokio::test]
async fn an_existing_heap_keeps_its_engine() {
    let server = Server::start();
    let key = key_of(&server.run("let n = 41").await);
    let (headers, file) = export(&server, &key).await;
    let engine = headers[ENGINE].to_str().expect("an id");
    let (build, _) = engine.split_once("/flags-").expect("an id");
    assert_eq!(import(&server, file.clone(), Some(&format!("{build}/flags-00000000/natives-1-00000000"))).await.0, 200);
    assert_eq!(import(&server, file, None).await.0, 200);
    assert_eq!(server.get(&format!("/api/heaps/{key}")).await.1["engine"], engine);
    assert_eq!(server.run_with(json!({ "code": "n + 1", "heap": key })).await["result"], "42");
}

#[tokio::test]
async fn a_heap_of_another_engine_is_refused_before_v8_reads_it() {
    let server = Server::start();
    let key = key_of(&server.run("1").await);
    let (_, file) = export(&server, &key).await;
    let to = Server::start();
    let (key, file) = with_version(file, b"1.2.3");
    assert_eq!(import(&to, file, Some("v8-1.2.3/x86_64/flags-00000000/natives-1-00000000")).await, (200, json!({ "heap": key })));
    let record = to.run_with(json!({ "code": "1", "heap": key })).await;
    let error = record["error"].as_str().expect("an error");
    assert!(error.contains("heap was written by engine v8-1.2.3/") && error.contains("this is v8-"), "{error}");
}

#[tokio::test]
async fn a_damaged_heap_fails_the_run_and_stays_for_inspection() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let key = key_of(&server.run("let n = 1").await);
    drop(server);
    let path = folders.heaps().join(&key);
    let mut file = std::fs::read(&path).expect("the file");
    file[60_000] ^= 0x10;
    std::fs::write(&path, &file).expect("damage");
    let server = Server::start_with(&folders, &[]);
    let record = server.run_with(json!({ "code": "1", "heap": key })).await;
    assert_eq!(record["status"], "failed", "never silently fresh: {record}");
    assert!(record["error"].as_str().expect("an error").contains(&key), "{record}");
    assert_eq!(std::fs::read(&path).expect("the file"), file);
    let (status, problem) = server.get(&format!("/api/heaps/{key}/file")).await;
    assert_eq!(status, 409, "{problem}");
}

#[tokio::test]
async fn heaps_are_listed_in_the_order_of_their_keys() {
    let server = Server::start();
    let mut keys = Vec::new();
    for n in 0..5 {
        keys.push(key_of(&server.run(&format!("let n = {n}")).await));
    }
    keys.sort();
    let (_, all) = server.get("/api/heaps").await;
    let listed = |list: &Value| list["heaps"].as_array().expect("a list").iter().map(key_of).collect::<Vec<_>>();
    assert_eq!(listed(&all), keys);
    assert_eq!(all.get("next_cursor"), None);
    let (_, page) = server.get("/api/heaps?limit=3").await;
    assert_eq!(listed(&page), keys[..3]);
    let (_, rest) = server.get(&format!("/api/heaps?limit=3&cursor={}", page["next_cursor"].as_str().expect("more"))).await;
    assert_eq!((listed(&rest), rest.get("next_cursor")), (keys[3..].to_vec(), None));
    let (status, collected) = server.post("/api/heaps/gc", json!({ "dry_run": true })).await;
    assert_eq!((status, collected), (200, json!({ "removed": [], "removed_bytes": 0, "kept": 5 })), "all are young");
    assert_eq!(server.post("/api/heaps/gc", Value::Null).await.0, 400, "null is not an object");
}

#[tokio::test]
async fn tags_are_set_replaced_deleted_and_found() {
    let server = Server::start();
    let heaps = ["a", "b", "c"].map(|digit| digit.repeat(64));
    let put = async |heap: &str, tags: Value| {
        let request = server.client.put(format!("{}/api/heaps/{heap}/tags", server.url)).json(&json!({ "tags": tags }));
        let response = request.send().await.expect("an answer");
        (response.status().as_u16(), response.json::<Value>().await.expect("JSON"))
    };
    let delete = async |path: String| {
        let response = server.client.delete(format!("{}{path}", server.url)).send().await.expect("an answer");
        (response.status().as_u16(), response.json::<Value>().await.expect("JSON"))
    };
    let get = async |heap: &str| server.get(&format!("/api/heaps/{heap}/tags")).await.1["tags"].clone();
    let done = (200, json!({ "ok": true }));
    assert_eq!(get(&heaps[0]).await, json!({}), "tags need no heap to exist");
    assert_eq!(put(&heaps[0], json!({ "project": "x", "step": "1" })).await, done);
    assert_eq!(put(&heaps[1], json!({ "project": "x", "step": "2", "ünï": "日本" })).await, done);
    assert_eq!(put(&heaps[0], json!({ "project": "x", "step": "3" })).await, done);
    assert_eq!(get(&heaps[0]).await, json!({ "project": "x", "step": "3" }), "all are replaced");

    let query = async |tags: Value| {
        let (status, found) = server.post("/api/heaps/query", json!({ "tags": tags })).await;
        assert_eq!(status, 200, "{found}");
        found["results"]
            .as_array()
            .expect("results")
            .iter()
            .map(|found| found["heap"].as_str().expect("a key").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(query(json!({ "project": "x" })).await, heaps[..2]);
    assert_eq!(query(json!({ "project": "x", "step": "2" })).await, heaps[1..2]);
    assert_eq!(query(json!({ "project": "x", "step": "1" })).await, [""; 0]);
    assert_eq!(query(json!({})).await, heaps[..2], "untagged heaps are not found");
    let (_, page) = server.post("/api/heaps/query", json!({ "tags": {}, "limit": 1 })).await;
    assert_eq!(page["next_cursor"], json!(heaps[0]));
    let (_, page) = server.post("/api/heaps/query", json!({ "tags": {}, "limit": 1, "cursor": page["next_cursor"] })).await;
    assert_eq!((&page["results"][0]["heap"], page.get("next_cursor")), (&json!(heaps[1]), None));

    assert_eq!(delete(format!("/api/heaps/{}/tags?keys=step,%20%C3%BCn%C3%AF,nothing", heaps[1])).await, done);
    assert_eq!(get(&heaps[1]).await, json!({ "project": "x" }));
    assert_eq!(delete(format!("/api/heaps/{}/tags", heaps[1])).await, done);
    assert_eq!(get(&heaps[1]).await, json!({}));
    assert_eq!(put(&heaps[0], json!({})).await, done);
    assert_eq!(query(json!({})).await, [""; 0], "an empty map clears");

    let many: serde_json::Map<_, _> = (0..65).map(|n| (n.to_string(), json!("x"))).collect();
    for tags in [
        json!({ "": "x" }),
        json!({ "a,b": "x" }),
        json!({ " a": "x" }),
        json!({ "a\u{3000}": "x" }),
        json!({ "a": "x".repeat(1025) }),
        json!({ "x".repeat(129): "x" }),
        Value::Object(many),
        json!({ "a": 1 }),
        json!("x"),
    ] {
        let (status, problem) = put(&heaps[2], tags).await;
        assert_eq!((status, &problem["ok"], &problem["error"]), (400, &json!(false), &problem["detail"]), "{problem}");
    }
    assert_eq!(server.get("/api/heaps/xyz/tags").await.0, 400);
}

#[tokio::test]
async fn a_run_tags_the_heap_it_produces() {
    let server = Server::start();
    let key = key_of(&server.run_with(json!({ "code": "let t = 1", "tags": { "old": "1" } })).await);
    assert_eq!(server.get(&format!("/api/heaps/{key}/tags")).await.1, json!({ "tags": { "old": "1" } }));
    server.run_with(json!({ "code": "throw 1", "tags": { "failed": "1" } })).await;
    let (_, found) = server.post("/api/heaps/query", json!({ "tags": {} })).await;
    assert_eq!(found["results"], json!([{ "heap": key, "tags": { "old": "1" } }]), "a failed run sets no tags");
}

#[tokio::test]
async fn completed_runs_of_a_session_are_in_its_log() {
    let server = Server::start();
    let (_, none) = server.get("/api/session-snapshots").await;
    assert_eq!(none, json!({ "entries": [{ "error": "no session ID available (send X-MCP-Session-Id header)" }] }));
    assert_eq!(server.get("/api/session-snapshots?session=work").await.1, json!({ "entries": [] }));
    assert_eq!(server.get("/api/sessions").await.1, json!({ "sessions": [] }), "a read creates none");

    let run = async |body: Value| {
        let request = server.client.post(format!("{}/api/exec", server.url)).header("X-MCP-Session-Id", "work").json(&body);
        request.send().await.expect("an answer").json::<Value>().await.expect("JSON")
    };
    let first = run(json!({ "code": "let n: number = 1", "wait_secs": 60 })).await;
    run(json!({ "code": "throw 1", "wait_secs": 60 })).await;
    let second = run(json!({ "code": "n + 1", "heap": first["heap"], "wait_secs": 60 })).await;
    server.run_with(json!({ "code": "'elsewhere'", "session": "other" })).await;
    server.run("'nowhere'").await;
    assert_eq!(server.get("/api/sessions").await.1, json!({ "sessions": ["other", "work"] }));

    let (_, log) = server.get("/api/session-snapshots?session=work").await;
    let entries = log["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 2, "only completed runs: {log}");
    for (index, (entry, record)) in entries.iter().zip([&first, &second]).enumerate() {
        assert_eq!(entry["index"], index);
        assert_eq!(entry["output_heap"], record["heap"]);
        assert!(entry["timestamp"].as_str().expect("a time").ends_with('Z'));
        assert_eq!(entry.as_object().map(|entry| entry.len()), Some(5), "{entry}");
    }
    assert_eq!((&entries[0]["input_heap"], &entries[1]["input_heap"]), (&Value::Null, &first["heap"]));
    assert_eq!(entries[0]["code"].as_str().expect("code").replace(' ', ""), "letn=1", "types are stripped");

    let (_, some) = server.get("/api/session-snapshots?session=work&fields=index,execution_id").await;
    assert_eq!(some["entries"][1], json!({ "index": 1, "execution_id": second["execution_id"] }));
    let (_, page) = server.get("/api/session-snapshots?session=work&fields=index&limit=1").await;
    assert_eq!(page["entries"], json!([{ "index": 0 }]));
    let (_, rest) = server
        .get(&format!("/api/session-snapshots?session=work&fields=index&cursor={}", page["next_cursor"].as_str().expect("more")))
        .await;
    assert_eq!(rest, json!({ "entries": [{ "index": 1 }] }));
    let (status, problem) = server.get("/api/session-snapshots?session=work&fields=index,size").await;
    assert_eq!(status, 400);
    let detail = problem["detail"].as_str().expect("a detail");
    for name in ["index", "input_heap", "output_heap", "code", "timestamp", "execution_id"] {
        assert!(detail.contains(&format!("`{name}`")), "{detail}");
    }
}

#[tokio::test]
async fn runs_that_end_concurrently_get_distinct_indexes() {
    let server = Server::start_with(&Folders::new(), &["--session-id", "default"]);
    let runs = (0..12).map(|n| server.run_with(json!({ "code": format!("let n = {n}") })));
    futures_util::future::join_all(runs).await;
    let (_, log) = server.get("/api/session-snapshots?fields=index").await;
    let expected: Vec<_> = (0..12).map(|index| json!({ "index": index })).collect();
    assert_eq!(log["entries"], json!(expected), "no gaps, in the session of connections that name none");
}

/// The same code on the same heap produces the same heap, so a second run may find tags on it.
#[tokio::test]
async fn the_tags_of_a_run_replace_existing_tags_of_its_heap() {
    let server = Server::start();
    let run = async |tags: Value| {
        server.run_with(json!({ "code": "var same = 1", "tags": tags })).await["heap"].as_str().expect("a heap").to_owned()
    };
    let first = run(json!({ "a": "1", "b": "2" })).await;
    assert_eq!(run(json!({ "c": "3" })).await, first, "the same heap");
    assert_eq!(server.get(&format!("/api/heaps/{first}/tags")).await.1, json!({ "tags": { "c": "3" } }));
    let plain = server.run("var same = 1").await;
    assert_eq!(plain["heap"], *first);
    assert_eq!(
        server.get(&format!("/api/heaps/{first}/tags")).await.1,
        json!({ "tags": { "c": "3" } }),
        "a run without tags does not change them"
    );
}
