//! Only heaps that a server with the same keys wrote, or that its operator accepted, are restored.
//!
//! Story: the key and the checksum of a heap are hashes of its bytes, so whoever makes up the bytes makes up both. Three changed words (the
//! lengths of typed arrays) in a heap that was uploaded, or put into the folder, gave its code reads and writes outside its arrays.

use crate::fixture::{Folders, SNAPSHOT, Server};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::process::Command;

/// Magic and checksum before the payload.
const HEADER_BYTES: usize = 42;
/// In the payload, far behind V8's header: some word of the program's own data.
const PATCHED_FROM_END: usize = 64;

fn key_in(record: &Value) -> String {
    assert_eq!(record["status"], "completed", "{record}");
    record["heap"].as_str().expect("a heap").to_owned()
}

fn sidecar(folders: &Folders, key: &str) -> PathBuf {
    folders.heaps().join(".meta").join(format!("{key}.json"))
}

/// The file of a heap with a changed word and the checksum of that, and its key.
fn patched(folders: &Folders, key: &str) -> (String, Vec<u8>) {
    let mut file = std::fs::read(folders.heaps().join(key)).expect("the file");
    let at = file.len() - PATCHED_FROM_END;
    file[at] ^= 0x40;
    let digest = Sha256::digest(&file[HEADER_BYTES..]);
    file[10..HEADER_BYTES].copy_from_slice(&digest);
    (digest.iter().map(|byte| format!("{byte:02x}")).collect(), file)
}

/// Removes the signature of a heap, as if an earlier version had stored it.
fn strip(folders: &Folders, key: &str) {
    let path = sidecar(folders, key);
    let mut label: Value = serde_json::from_slice(&std::fs::read(&path).expect("a sidecar")).expect("JSON");
    assert!(label.as_object_mut().expect("an object").remove("mac").is_some(), "{label}");
    std::fs::write(path, label.to_string()).expect("written");
}

/// Checks that a run on this heap fails before its code runs.
async fn check_refused(server: &Server, arguments: Value, says: &str) {
    let mut body = arguments;
    body["code"] = "console.log('it ran'); 1".into();
    let record = server.run_with(body).await;
    assert_eq!((&record["status"], &record["error_code"]), (&json!("failed"), &json!("heap_unsigned")), "{record}");
    let error = record["error"].as_str().expect("an error");
    assert!(error.contains(says) && error.contains("`heapstead heaps sign "), "{error}");
    let (_, page) = server.get(&format!("/api/executions/{}/output", record["execution_id"].as_str().expect("an id"))).await;
    assert_eq!(page["total_bytes"], 0, "{page}");
}

async fn import(server: &Server, token: Option<&str>, file: Vec<u8>) -> (u16, Value) {
    let request = server.client.post(format!("{}/api/heaps", server.url)).header("content-type", "application/octet-stream").body(file);
    let request = token.iter().fold(request, |request, token| request.bearer_auth(token));
    let response = request.send().await.expect("an answer");
    (response.status().as_u16(), response.json().await.expect("JSON"))
}

/// A token for this owner.
fn token(folders: &Folders, owner: &str, more: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapstead"));
    command.args(["auth", "add", owner, "--auth-tokens"]).arg(folders.path().join("tokens.toml")).args(more);
    let ran = command.output().expect("the command runs");
    String::from_utf8(ran.stdout).expect("UTF-8").trim().to_owned()
}

#[tokio::test]
async fn a_patched_heap_is_refused_at_upload_without_flag_or_permission() {
    let folders = Folders::new();
    let (plain, permitted) = (token(&folders, "acme/ann", &[]), token(&folders, "acme/bob", &["--permission", "heaps:import"]));
    let tokens = folders.path().join("tokens.toml");
    let tokens = ["--auth-tokens", tokens.to_str().expect("UTF-8")];
    let original = key_in(&Server::start_with(&folders, &[]).run("let list = new Uint8Array(8)").await);
    let (key, file) = patched(&folders, &original);
    for (flags, token, allowed) in [
        (&[][..], &plain, false),
        (&[][..], &permitted, false),
        (&["--allow-heap-import"][..], &plain, false),
        (&["--allow-heap-import"][..], &permitted, true),
    ] {
        let server = Server::start_with(&folders, &[&tokens, flags].concat());
        let (status, answer) = import(&server, Some(token), file.clone()).await;
        let stored = folders.heaps().join(&key).exists();
        match allowed {
            true => assert_eq!((status, &answer["heap"], stored), (200, &json!(key), true), "{answer}"),
            false => {
                assert_eq!((status, &answer["type"], stored), (403, &json!("urn:heapstead:error:forbidden"), false), "{flags:?}: {answer}");
                let says = if flags.is_empty() { "--allow-heap-import" } else { "the permission `heaps:import`" };
                assert!(answer["detail"].as_str().is_some_and(|detail| detail.contains(says)), "{answer}");
            }
        }
    }
}

/// Without authentication, callers on this machine are the operator; callers on others are not.
#[tokio::test]
async fn callers_without_credentials_may_import_only_on_loopback_or_with_the_flag() {
    let folders = Folders::new();
    let key = key_in(&Server::start_with(&folders, &[]).run("let n = 1").await);
    let file = std::fs::read(folders.heaps().join(key)).expect("the file");
    let exposed = &["--bind-host", "0.0.0.0", "--insecure-no-auth"][..];
    for (flags, expected) in [(&[][..], 200), (exposed, 403), (&[exposed, &["--allow-heap-import"]].concat(), 200)] {
        let mut server = Server::start_with(&folders, flags);
        server.url = server.url.replace("0.0.0.0", "127.0.0.1");
        assert_eq!(import(&server, None, file.clone()).await.0, expected, "{flags:?}");
    }
}

#[tokio::test]
async fn a_patched_heap_in_the_folder_is_refused_when_it_is_restored() {
    let server = Server::start();
    let folders = server.folders();
    let original = key_in(&server.run("let list = new Uint8Array(8); let n = 7").await);
    let (key, file) = patched(folders, &original);
    std::fs::write(folders.heaps().join(&key), file).expect("planted");
    check_refused(&server, json!({ "heap": key }), "it has no signature").await;
    std::fs::copy(sidecar(folders, &original), sidecar(folders, &key)).expect("planted");
    check_refused(&server, json!({ "heap": key }), "its signature does not match").await;

    // The same for a heap that the server has in memory, and for the engine in a sidecar.
    strip(folders, &original);
    check_refused(&server, json!({ "heap": original }), "it has no signature").await;
    let signed = folders.heaps_command(&["sign", &original]);
    assert_eq!(signed.trim(), original);
    let label = std::fs::read_to_string(sidecar(folders, &original)).expect("a sidecar");
    let without_engine = json!({ "mac": serde_json::from_str::<Value>(&label).expect("JSON")["mac"] });
    std::fs::write(sidecar(folders, &original), without_engine.to_string()).expect("written");
    check_refused(&server, json!({ "heap": original }), "its signature does not match").await;
    std::fs::write(sidecar(folders, &original), label).expect("written");
    assert_eq!(server.run_with(json!({ "code": "n", "heap": original })).await["result"], "7");
    // A heap without a signature is the owner's own data, and can be read.
    strip(folders, &original);
    assert_eq!(server.get(&format!("/api/heaps/{original}")).await.0, 200);
}

#[tokio::test]
async fn servers_on_one_database_share_their_keys_through_rotations_and_kills() {
    let folders = Folders::new();
    let start = || Server::start_with(&folders, &[]);
    // Both create the database and its first key.
    let (mut one, other) = std::thread::scope(|scope| {
        let (one, other) = (scope.spawn(start), scope.spawn(start));
        (one.join().expect("a server"), other.join().expect("a server"))
    });
    let first = key_in(&one.run("let n = 1").await);
    let second = key_in(&other.run_with(json!({ "code": "n += 1", "heap": first })).await);
    folders.heaps_command(&["rotate-key"]);
    one.kill();
    // The new server signs with the new key, which the other one does not know yet.
    let new = start();
    let third = key_in(&new.run_with(json!({ "code": "n += 1", "heap": second })).await);
    let fourth = key_in(&other.run_with(json!({ "code": "n += 1", "heap": third })).await);
    assert_eq!(new.run_with(json!({ "code": "n", "heap": fourth })).await["result"], "4");
    let key_of = |heap: &str| {
        std::fs::read_to_string(sidecar(&folders, heap)).expect("a sidecar")[..].split_once("mac\":\"").map(|(_, mac)| mac[..16].to_owned())
    };
    assert!(key_of(&first) == key_of(&second) && key_of(&first) != key_of(&third), "two keys in all");
    assert_eq!(key_of(&third), key_of(&fourth), "the newest signs, once a server has met it");
    // Signing again replaces the signatures of the older key.
    let signed = folders.heaps_command(&["sign", "--all"]);
    assert!(signed.contains(&first) && signed.contains(&second) && !signed.contains(&third), "{signed}");
    assert_eq!(folders.heaps_command(&["sign", "--all", "--dry-run"]), "");
}

/// Story of an upgrade: heaps of an earlier version have no signature. Their sessions must not be lost, and the operator must be told.
#[tokio::test]
async fn heaps_of_an_earlier_version_are_signed_by_the_operator() {
    let folders = Folders::new();
    let log = folders.path().join("log");
    let (session, key) = {
        let server = Server::start_with(&folders, SNAPSHOT);
        let session = server.post("/api/sessions", json!({})).await.1["session_id"].clone();
        let key = key_in(&server.run_with(json!({ "code": "let n = 41", "session": session })).await);
        (session, key)
    };
    strip(&folders, &key);
    let server = Server::start_logged(&folders, &[], &log);
    check_refused(&server, json!({ "session": session }), "it has no signature").await;
    assert!(std::fs::read_to_string(&log).expect("a log").contains("`heapstead heaps sign --all`"));
    assert_eq!(folders.heaps_command(&["sign", "--all", "--dry-run"]).trim(), key, "a dry run lists it");
    check_refused(&server, json!({ "session": session }), "it has no signature").await;
    assert_eq!(folders.heaps_command(&["sign", "--all"]).trim(), key);
    assert_eq!(server.run_with(json!({ "code": "n + 1", "session": session })).await["result"], "42", "the session continues");

    // A signature that is wrong has to be looked at: only naming the heap replaces it.
    let (forged, file) = patched(&folders, &key);
    std::fs::write(folders.heaps().join(&forged), file).expect("planted");
    std::fs::copy(sidecar(&folders, &key), sidecar(&folders, &forged)).expect("planted");
    assert_eq!(folders.heaps_command(&["sign", "--all"]), "");
    assert_eq!(folders.heaps_command(&["sign", &forged]).trim(), forged);
}
