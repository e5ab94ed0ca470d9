//! With a key file, nothing from a conversation reaches disk, Redis or a log in plaintext.

use crate::fixture::{Folders, Server};
use crate::redis_server;
use crate::{calls, context_when, run_in};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const MARKER: &str = "zanzibar-marker-7731";

fn key_file(folders: &Folders) -> String {
    let path = folders.path().join("keys");
    std::fs::write(&path, format!("k1 {}\n", "ab".repeat(32))).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("private");
    path.to_str().expect("UTF-8").to_owned()
}

async fn record_marker(server: &Server) {
    let set = json!({ "session": "a", "custom": { "k": MARKER } });
    assert_eq!(server.post("/api/context", set).await.0, 200);
    assert_eq!(server.post("/api/context/record", json!({ "session": "a", "query": MARKER })).await.0, 200);
    // The code of runs is also in the session's log, which is not encrypted; so the marker is passed in a call that is only recorded in the
    // context.
    assert_eq!(server.get(&format!("/api/context/check?session=a&query={MARKER}")).await.1["results"], 0);
    run_in(server, "a", "1").await;
    let context = context_when(server, "a", |context| calls(context) == 1).await;
    assert!(context.to_string().contains(MARKER));
}

/// All files of a folder that contain the marker, including open database files.
fn files_with_marker(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with_marker(&path));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

#[tokio::test]
async fn contexts_in_database_files_are_encrypted_and_not_logged() {
    for store in ["sqlite", "memory"] {
        let folders = Folders::new();
        let keys = key_file(&folders);
        let log = folders.path().join("log");
        let flags = ["--context-store", store, "--context-key-file", &keys, "--context-flush", "1s", "--log", "trace"];
        let server = Server::start_logged(&folders, &flags, &log);
        record_marker(&server).await;
        assert_eq!(files_with_marker(folders.path()), Vec::<std::path::PathBuf>::new(), "{store}, while it runs");
        assert_eq!(server.terminate(), Some(0));
        assert_eq!(files_with_marker(folders.path()), Vec::<std::path::PathBuf>::new(), "{store}, afterwards");
        assert!(std::fs::metadata(&log).expect("a log").len() > 1000, "it was logged");
        let server = Server::start_logged(&folders, &flags, &log);
        assert!(server.get("/api/context?session=a").await.1.to_string().contains(MARKER), "{store}: the same keys read it again");
    }
}

#[tokio::test]
async fn contexts_in_redis_are_encrypted() {
    let (redis, folders) = (redis_server::shared(), Folders::new());
    let keys = key_file(&folders);
    let server = Server::start_with(&folders, &["--context-store", "redis", "--redis-url", &redis.url(), "--context-key-file", &keys]);
    record_marker(&server).await;
    assert_eq!(files_with_marker(redis.folder()), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_world_readable_key_file_is_refused() {
    let folders = Folders::new();
    let keys = key_file(&folders);
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o644)).expect("public");
    let output = Server::command(&folders).args(["--http-port", "0", "--context-key-file", &keys]).output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("--context-key-file"), "{said}");
}
