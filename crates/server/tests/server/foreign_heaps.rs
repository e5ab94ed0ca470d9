//! Heaps that this server did not write and its operator signed: without a sidecar, of another V8, of earlier builds, damaged.

use crate::fixture::{Folders, Server};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Magic and checksum before the payload.
const HEADER_BYTES: usize = 42;
/// Position of V8's version in a snapshot.
const VERSION_AT: usize = HEADER_BYTES + 16;

/// A heap with the variable `kept`, of a server that has stopped.
async fn heap(folders: &Folders) -> (PathBuf, PathBuf) {
    let server = Server::start_with(folders, &[]);
    let record = server.run("var kept = 7").await;
    let key = record["heap"].as_str().expect("a heap");
    (folders.heaps().join(key), folders.heaps().join(".meta").join(format!("{key}.json")))
}

fn key_of(path: &Path) -> String {
    path.file_name().and_then(|name| name.to_str()).expect("a key").to_owned()
}

/// Stores the file with a changed payload under its correct key, signed by the operator.
fn put_changed(folders: &Folders, mut file: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> String {
    change(&mut file);
    let digest = Sha256::digest(&file[HEADER_BYTES..]);
    file[10..HEADER_BYTES].copy_from_slice(&digest);
    let key: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::write(folders.heaps().join(&key), file).expect("written");
    folders.heaps_command(&["sign", &key]);
    key
}

/// Checks that a run on this heap failed before any of its code ran.
async fn fails_before_running(server: &Server, key: &str) -> String {
    let record = server.run_with(json!({ "code": "console.log('it ran'); 1", "heap": key })).await;
    assert_eq!((&record["status"], &record["heap"], &record["result"]), (&json!("failed"), &Value::Null, &Value::Null), "{record}");
    let id = record["execution_id"].as_str().expect("an id");
    let (_, page) = server.get(&format!("/api/executions/{id}/output")).await;
    assert_eq!((&page["data"], &page["total_bytes"]), (&json!(""), &json!(0)), "{page}");
    record["error"].as_str().expect("an error").to_owned()
}

#[tokio::test]
async fn a_heap_without_its_sidecar_is_checked_by_its_v8_version() {
    let folders = Folders::new();
    let (path, sidecar) = heap(&folders).await;
    std::fs::remove_file(&sidecar).expect("removed");
    folders.heaps_command(&["sign", &key_of(&path)]);
    let file = std::fs::read(&path).expect("the file");
    let server = Server::start_with(&folders, &[]);
    let record = server.run_with(json!({ "code": "kept", "heap": key_of(&path) })).await;
    assert_eq!((&record["status"], &record["result"]), (&json!("completed"), &json!("7")), "the same engine loads it: {record}");

    let (_, health) = server.get("/api/health").await;
    let older = put_changed(&folders, file.clone(), |file| file[VERSION_AT..VERSION_AT + 2].copy_from_slice(b"13"));
    let error = fails_before_running(&server, &older).await;
    assert!(error.contains(&older) && error.contains("heap was written by engine v8-13.") && error.contains(", this is v8-1"), "{error}");
    let nameless = put_changed(&folders, file, |file| file[VERSION_AT..VERSION_AT + 64].fill(0xff));
    let error = fails_before_running(&server, &nameless).await;
    assert!(error.contains("heap was written by engine of no known V8 version"), "{error}");
    // V8 would have aborted the worker on either.
    assert_eq!(server.get("/api/health").await.1["status"], health["status"]);
}

#[tokio::test]
async fn a_damaged_heap_runs_no_code() {
    let folders = Folders::new();
    let (path, _) = heap(&folders).await;
    let whole = std::fs::read(&path).expect("the file");
    let server = Server::start_with(&folders, &[]);
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for (damaged, says) in [(&flipped[..], "checksum"), (&whole[..whole.len() - 1], "checksum"), (&whole[..1000], "bytes"), (b"", "mark")] {
        std::fs::write(&path, damaged).expect("damaged");
        let error = fails_before_running(&server, &key_of(&path)).await;
        assert!(error.contains("is damaged") && error.contains(says), "{error}");
    }
    std::fs::write(&path, &whole).expect("put back");
    assert_eq!(server.run_with(json!({ "code": "kept", "heap": key_of(&path) })).await["result"], "7");
}

/// `tests/kept` holds heaps of earlier builds: placed as files in the store, and imported through the API.
#[tokio::test]
async fn heaps_of_earlier_builds_can_be_continued() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let check = std::fs::read_to_string(repository.join("crates/engine/tests/behaviour/values/check.js")).expect("a program");
    let (folders, elsewhere) = (Folders::new(), Server::start());
    std::fs::create_dir_all(folders.heaps().join(".meta")).expect("a folder");
    let server = Server::start_with(&folders, &[]);
    let kept: Vec<PathBuf> = std::fs::read_dir(repository.join("tests/kept"))
        .expect("tests/kept")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_none())
        .collect();
    assert!(!kept.is_empty(), "there is at least one kept heap");
    for path in kept {
        let key = key_of(&path);
        let sidecar = std::fs::read_to_string(path.with_extension("json")).expect("a sidecar");
        std::fs::copy(&path, folders.heaps().join(&key)).expect("copied");
        std::fs::write(folders.heaps().join(".meta").join(format!("{key}.json")), &sidecar).expect("written");
        folders.heaps_command(&["sign", &key]);
        let engine: Value = serde_json::from_str(&sidecar).expect("JSON");
        let import = elsewhere.client.post(format!("{}/api/heaps", elsewhere.url)).header("content-type", "application/octet-stream");
        let import = import.header("x-heapstead-engine", engine["engine"].as_str().expect("an engine"));
        let import = import.body(std::fs::read(&path).expect("the file"));
        let imported = import.send().await.expect("an answer");
        assert_eq!(imported.status(), 200, "{:?}", imported.text().await);
        for server in [&server, &elsewhere] {
            let record = server.run_with(json!({ "code": check, "heap": key, "on_missing_heap": "fail" })).await;
            match record["error"].as_str() {
                None => assert_eq!(record["result"], "[]", "{record}"),
                // Written on another architecture or V8: refused by its engine id before V8 reads it.
                Some(error) => assert!(error.contains("heap was written by engine"), "{record}"),
            }
        }
    }
}
