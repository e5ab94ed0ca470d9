//! Two server processes on one database: each acts on the executions of the other.

use crate::executions::started;
use crate::fixture::{Folders, Server};
use serde_json::json;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::time::{Duration, Instant};

/// Starts two servers on the same folders.
fn two_servers() -> (Server, Server) {
    let folders = Folders::new();
    (Server::start_with(&folders, &[]), Server::start_with(&folders, &[]))
}

#[tokio::test]
async fn an_execution_of_another_process_is_cancelled() {
    let (one, other) = two_servers();
    for code in ["for (;;);", "await new Promise(done => setTimeout(done, 1e6))"] {
        let id = started(&one, code).await;
        assert_eq!(other.post(&format!("/api/executions/{id}/cancel"), json!({})).await, (200, json!({ "ok": true })), "{code}");
        let (_, record) = one.get(&format!("/api/executions/{id}")).await;
        assert_eq!(record["status"], "cancelled", "{record}");
        let (status, late) = other.post(&format!("/api/executions/{id}/cancel"), json!({})).await;
        assert_eq!((status, &late["ok"]), (409, &json!(false)), "{late}");
    }
}

#[tokio::test]
async fn waiting_for_the_end_and_for_output_works_across_processes() {
    let (one, other) = two_servers();
    let id = started(&one, "console.log('a'); await new Promise(done => setTimeout(done, 700)); console.log('b'); 7").await;
    let (_, first) = other.get(&format!("/api/executions/{id}/output?wait_secs=60")).await;
    assert_eq!((&first["data"], &first["status"]), (&json!("a\n"), &json!("running")), "{first}");
    for cursor in ["byte_offset=2", "line_offset=2"] {
        let (_, next) = other.get(&format!("/api/executions/{id}/output?wait_secs=60&{cursor}")).await;
        assert_eq!(next["data"], "b\n", "{next}");
    }
    let (_, record) = other.get(&format!("/api/executions/{id}?wait_secs=60")).await;
    assert_eq!((&record["status"], &record["result"]), (&json!("completed"), &json!("7")), "{record}");
}

#[tokio::test]
async fn waiting_ends_at_its_timeout() {
    let (one, other) = two_servers();
    let id = started(&one, "await new Promise(done => setTimeout(done, 1e6))").await;
    let began = Instant::now();
    let (_, record) = other.get(&format!("/api/executions/{id}?wait_secs=0.5")).await;
    assert_eq!(record["status"], "running", "{record}");
    assert!((Duration::from_millis(500)..Duration::from_secs(10)).contains(&began.elapsed()), "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_execution_fails_if_its_process_dies_while_a_caller_waits() {
    let (mut one, other) = two_servers();
    let id = started(&one, "console.log('a'); await new Promise(done => setTimeout(done, 1e6))").await;
    let (path, output) = (format!("/api/executions/{id}?wait_secs=60"), format!("/api/executions/{id}/output?wait_secs=60&byte_offset=2"));
    let waiting = async { tokio::join!(other.get(&path), other.get(&output)) };
    let dying = async {
        // Its first line has been printed, so it runs.
        other.get(&format!("/api/executions/{id}/output?wait_secs=60")).await;
        one.kill();
    };
    let (((_, record), (_, page)), ()) = tokio::join!(waiting, dying);
    assert_eq!((&record["status"], &record["error"]), (&json!("failed"), &json!("server restarted")), "{record}");
    assert_eq!((&page["status"], &page["data"]), (&json!("failed"), &json!("")), "{page}");
    let (status, refused) = other.post(&format!("/api/executions/{id}/cancel"), json!({})).await;
    assert_eq!(status, 409, "{refused}");
}

#[tokio::test]
async fn sockets_are_private_and_removed_with_their_process() {
    let server = Server::start();
    let folder = server.folders().database().join("processes");
    let sockets = || -> Vec<_> {
        let files = std::fs::read_dir(&folder).expect("a folder").map(|file| file.expect("a file"));
        files.filter(|file| file.file_type().expect("a type").is_socket()).collect()
    };
    let found = sockets();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].metadata().expect("metadata").permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(&folder).expect("metadata").permissions().mode() & 0o777, 0o700);
    let folders = server.folders().clone();
    assert_eq!(server.terminate(), Some(0));
    assert!(sockets().is_empty(), "{:?}", sockets());
    drop(folders);
}

#[tokio::test]
async fn a_folder_with_a_long_name_works() {
    // Longer than the maximum path of a Unix socket.
    let folders = Folders::named(&"x".repeat(200));
    let (one, other) = (Server::start_with(&folders, &[]), Server::start_with(&folders, &[]));
    let id = started(&one, "for (;;);").await;
    assert_eq!(other.post(&format!("/api/executions/{id}/cancel"), json!({})).await.0, 200);
}
