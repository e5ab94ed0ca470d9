//! Storage faults: the run reports the error, the server stays up, health reports it, and the server recovers by itself.

use crate::fixture::{Folders, Server};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// A small separate file system, which can be full or read-only even for root.
pub struct Disk {
    mounted: std::path::PathBuf,
}

impl Disk {
    pub fn mount(at: &Path, options: &str) -> Self {
        std::fs::create_dir_all(at).expect("a folder");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at));
        Self { mounted: at.to_owned() }
    }

    fn remount(&self, options: &str) {
        run(Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.mounted));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.mounted).status();
    }
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

/// The problems that health reports.
fn problems(health: &Value) -> String {
    health["problems"].to_string()
}

async fn health(server: &Server) -> Value {
    server.get("/api/health").await.1
}

/// A run that must fail because of storage, without any trace of success.
async fn fails_with(server: &Server, says: &str) {
    let record = server.run("console.log('written'); 1").await;
    assert_eq!(record["status"], "failed", "{record}");
    let error = record["error"].as_str().expect("a text");
    assert!(error.contains("storage") && error.contains(says), "{error}");
    assert_eq!(record["heap"], Value::Null, "{record}");
}

async fn works(server: &Server) {
    let record = server.run("1 + 1").await;
    assert_eq!(record["status"], "completed", "{record}");
    let health = health(server).await;
    assert_eq!(health["status"], "healthy", "{health}");
}

#[tokio::test]
async fn a_full_disk_under_the_heaps() {
    let folders = Folders::new();
    let disk = Disk::mount(&folders.heaps(), "size=8m");
    let server = Server::start_with(&folders, &[]);
    works(&server).await;
    std::fs::write(folders.heaps().join("ballast"), vec![7; 8 << 20]).expect_err("the disk is full");
    fails_with(&server, "No space left").await;
    let degraded = health(&server).await;
    assert_eq!(degraded["heap_store"]["ok"], false, "{degraded}");
    assert_eq!(degraded["status"], "degraded", "{degraded}");
    std::fs::remove_file(folders.heaps().join("ballast")).expect("removed");
    works(&server).await;
    drop(server);
    drop(disk);
}

#[tokio::test]
async fn a_folder_that_becomes_read_only() {
    let folders = Folders::new();
    let disk = Disk::mount(&folders.heaps(), "size=32m");
    let server = Server::start_with(&folders, &[]);
    works(&server).await;
    disk.remount("ro");
    fails_with(&server, "Read-only").await;
    assert_eq!(health(&server).await["heap_store"]["ok"], false);
    disk.remount("rw");
    works(&server).await;
    drop(server);
}

#[tokio::test]
async fn a_full_disk_under_the_database_and_the_output() {
    let folders = Folders::new();
    let disk = Disk::mount(&folders.database(), "size=8m");
    let server = Server::start_with(&folders, &[]);
    works(&server).await;
    let _ = std::fs::write(folders.database().join("ballast"), vec![7; 8 << 20]);
    // Nothing can be recorded: the run is refused or fails, and nothing claims success.
    for _ in 0..3 {
        let (status, answer) = server.post("/api/exec", json!({ "code": "console.log('x'.repeat(100000)); 1", "wait_secs": 20 })).await;
        match status {
            503 => assert!(answer["detail"].as_str().is_some_and(|text| text.contains("database")), "{answer}"),
            200 => assert_eq!(answer["status"], "failed", "{answer}"),
            other => panic!("{other}: {answer}"),
        }
    }
    let degraded = health(&server).await;
    assert!(problems(&degraded).contains("outputs: "), "{degraded}");
    std::fs::remove_file(folders.database().join("ballast")).expect("removed");
    works(&server).await;
    drop(server);
    drop(disk);
}

#[tokio::test]
async fn a_database_locked_by_another_process() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    works(&server).await;
    // Longer than the server's busy timeout.
    let holder = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("opened");
    holder.execute_batch("BEGIN IMMEDIATE").expect("held");
    let (status, problem) = server.post("/api/exec", json!({ "code": "1" })).await;
    assert_eq!(status, 503, "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|text| text.contains("locked")), "{problem}");
    assert_eq!(server.get("/api/executions").await.0, 200, "reads still work");
    let degraded = health(&server).await;
    assert!(degraded["status"] == "degraded" && problems(&degraded).contains("metadata: "), "{degraded}");
    holder.execute_batch("ROLLBACK").expect("released");
    works(&server).await;
    assert_eq!(server.get("/api/executions").await.1["executions"].as_array().expect("a list").len(), 2, "the refused run has no record");
}

/// The end cannot be recorded: the run fails, immediately and after a restart, and its heap is not referenced.
#[tokio::test]
async fn a_database_locked_when_a_run_ends() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, &[]);
    let (_, accepted) =
        server.post("/api/exec", json!({ "code": "await new Promise(done => setTimeout(done, 500)); 1", "session": "s" })).await;
    let id = accepted["execution_id"].as_str().expect("an id").to_owned();
    let holder = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("opened");
    holder.execute_batch("BEGIN IMMEDIATE").expect("held");
    let (_, record) = server.get(&format!("/api/executions/{id}?wait_secs=30")).await;
    assert_eq!((&record["status"], &record["heap"]), (&json!("failed"), &Value::Null), "{record}");
    assert!(record["error"].as_str().is_some_and(|text| text.contains("locked")), "{record}");
    holder.execute_batch("ROLLBACK").expect("released");
    works(&server).await;
    server.kill();
    let server = Server::start_with(&folders, &[]);
    let (_, after) = server.get(&format!("/api/executions/{id}")).await;
    assert_eq!((&after["status"], &after["heap"]), (&json!("failed"), &Value::Null), "{after}");
    assert_eq!(server.get("/api/sessions").await.1["sessions"], json!([]), "it is not in a log");
}

#[tokio::test]
async fn a_heap_damaged_or_removed_while_the_server_runs() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, &[]);
    let first = server.run("var kept = 1").await;
    let key = first["heap"].as_str().expect("a heap").to_owned();
    let path = folders.heaps().join(&key);
    let whole = std::fs::read(&path).expect("the file");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    std::fs::write(&path, &flipped).expect("damaged");
    let record = server.run_with(json!({ "code": "kept", "heap": key })).await;
    assert_eq!(record["status"], "failed", "{record}");
    assert!(record["error"].as_str().is_some_and(|text| text.contains("damaged")), "{record}");
    assert_eq!(std::fs::read(&path).expect("left for inspection"), flipped);
    assert_eq!(health(&server).await["heap_store"]["damaged"], 1);
    server.kill();
    let mut server = Server::start_with(&folders, &[]);
    assert_eq!(health(&server).await["heap_store"]["damaged"], 1, "a restart does not repair it");
    server.kill();
    let server = Server::start_with(&folders, &[]);
    std::fs::write(&path, &whole).expect("mended");
    assert_eq!(server.run_with(json!({ "code": "kept", "heap": key })).await["result"], "1");
    assert_eq!(health(&server).await["heap_store"]["damaged"], 0, "a successful read clears the damage");
    std::fs::write(&path, &flipped).expect("damaged again");
    assert_eq!(server.run_with(json!({ "code": "kept", "heap": key })).await["status"], "failed");
    assert_eq!(health(&server).await["heap_store"]["damaged"], 1);
    std::fs::remove_file(&path).expect("removed");
    let record = server.run_with(json!({ "code": "typeof kept", "heap": key })).await;
    assert_eq!((&record["status"], &record["result"]), (&json!("completed"), &json!("\"undefined\"")), "{record}");
    assert!(record["warnings"][0].as_str().is_some_and(|text| text.contains("was not found")), "{record}");
    let (status, problem) = server.post("/api/exec", json!({ "code": "kept", "heap": key, "on_missing_heap": "fail" })).await;
    assert_eq!(status, 404, "{problem}");
    assert_eq!(health(&server).await["heap_store"]["damaged"], 0, "a removed heap does not count as damaged");
    std::fs::write(&path, &whole).expect("put back");
    assert_eq!(server.run_with(json!({ "code": "kept", "heap": key })).await["result"], "1");
}

#[tokio::test]
async fn damage_found_during_an_export_is_reported_too() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let record = server.run("var kept = 1").await;
    let key = record["heap"].as_str().expect("a heap");
    let path = folders.heaps().join(key);
    let whole = std::fs::read(&path).expect("the file");
    std::fs::write(&path, &whole[..whole.len() - 1]).expect("damaged");
    let export = format!("/api/heaps/{key}/file");
    assert_eq!(server.get(&export).await.0, 409);
    assert_eq!(health(&server).await["heap_store"]["damaged"], 1);
    std::fs::write(&path, &whole).expect("mended");
    let exported = server.client.get(format!("{}{export}", server.url)).send().await.expect("an answer");
    assert_eq!(exported.status(), 200);
    assert_eq!(health(&server).await["heap_store"]["damaged"], 0, "a successful read clears the damage");
}

#[tokio::test]
async fn a_warning_is_visible_while_the_code_runs() {
    let server = Server::start();
    let code = "console.log('runs'); await new Promise(done => setTimeout(done, 60000))";
    let (_, accepted) = server.post("/api/exec", json!({ "code": code, "heap": "0".repeat(64) })).await;
    let id = accepted["execution_id"].as_str().expect("an id");
    server.get(&format!("/api/executions/{id}/output?wait_secs=30")).await;
    let (_, record) = server.get(&format!("/api/executions/{id}")).await;
    assert_eq!(record["status"], "running", "{record}");
    assert!(record["warnings"][0].as_str().is_some_and(|text| text.contains("was not found")), "{record}");
}
