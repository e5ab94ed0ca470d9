//! No heap file without a record, and no byte over the quota.
//!
//! Story: an upload that its client aborted, and a run that was cancelled while its heap was being stored, left a file that no record named and
//! no collection removed. With a quota of 60 MB an owner stored 355 MB. The quota was checked before storing and not while recording, so
//! concurrent uploads exceeded it too.

use crate::fixture::{Folders, Server};
use crate::heap_store_state::{HeapState, database, heap_file, import, settled, until, variants};
use serde_json::json;
use std::io::Write;
use std::net::TcpStream;

/// Sends a part of an upload and closes the connection.
fn abort_upload(server: &Server, file: &[u8], sent_bytes: usize) {
    let address = server.url.strip_prefix("http://").expect("a URL");
    let mut connection = TcpStream::connect(address).expect("a connection");
    let head = format!(
        "POST /api/heaps HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
        file.len()
    );
    connection.write_all(head.as_bytes()).expect("sent");
    connection.write_all(&file[..sent_bytes]).expect("sent");
}

#[tokio::test]
async fn an_aborted_upload_leaves_no_file_and_no_usage() {
    let (server, file) = (Server::start(), heap_file().await);
    let folders = server.folders();
    for (number, (_, file)) in variants(&file, 12).into_iter().enumerate() {
        // Some before their end. The others are complete: each is recorded, or it is as if it had never been sent.
        let sent_bytes = if number % 3 == 0 { file.len() } else { file.len() * number / 12 };
        abort_upload(&server, &file, sent_bytes);
    }
    let state = settled(folders).await;
    assert!(state.files.len() <= 4, "{state:?}");
    // An upload has a place among the transfers until the server notices that its client has left.
    let status = loop {
        match import(&server, file.clone()).await.0 {
            429 => {}
            status => break status,
        }
    };
    assert_eq!(status, 200);
    assert!(HeapState::of(folders).is_settled());
}

#[tokio::test]
async fn a_refused_upload_leaves_nothing() {
    let (server, file) = (Server::start(), heap_file().await);
    let mut flipped = file.clone();
    flipped[5000] ^= 1;
    for file in [flipped, file[..file.len() - 1].to_vec(), file[..100].to_vec(), b"not a heap".to_vec(), Vec::new()] {
        assert_eq!(import(&server, file).await.0, 400);
    }
    assert_eq!(settled(server.folders()).await, HeapState::default());
}

#[tokio::test]
async fn a_run_cancelled_while_its_heap_is_stored_leaves_no_file_and_no_usage() {
    for point in ["heap-reserved", "heap-stored"] {
        let folders = Folders::new();
        let pipe = folders.path().join("pause");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).expect("a pipe");
        let pause = format!("{point}:{}", pipe.display());
        let server = Server::start_in(&folders, &[], &[("HEAPSTEAD_PAUSE_AT", &pause)]);
        let (_, begun) = server.post("/api/exec", json!({ "code": "let n = 1" })).await;
        let id = begun["execution_id"].as_str().expect("an id");
        // Opens as soon as the server is there.
        let paused =
            tokio::task::spawn_blocking(move || std::fs::File::options().write(true).open(pipe).expect("paused")).await.expect("paused");
        assert_eq!(HeapState::of(&folders).reservations, 1, "{point}");
        let path = format!("{}/api/executions/{id}/cancel", server.url);
        let cancelled = tokio::spawn(server.client.post(path).json(&json!({})).send());
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        drop(paused);
        cancelled.await.expect("no panic").expect("an answer");
        let (_, record) = server.get(&format!("/api/executions/{id}?wait_secs=60")).await;
        let state = settled(&folders).await;
        match record["status"].as_str() {
            Some("cancelled") => assert_eq!(state, HeapState::default(), "{point}"),
            // The cancel came too late.
            _ => assert_eq!((record["status"].as_str(), state.files.len()), (Some("completed"), 1), "{point}: {record}"),
        }
        assert!(point == "heap-stored" || record["status"] == "cancelled", "{record}");
    }
}

/// Kills a server at each point between a reservation and its record or removal. The next server cleans up when it starts.
#[tokio::test]
async fn a_killed_server_leaves_no_file_without_a_record() {
    let file = heap_file().await;
    for (point, action) in [
        ("heap-reserved", "run"),
        ("heap-stored", "run"),
        ("before-commit", "run"),
        ("committed", "run"),
        ("import-reserved", "import"),
        ("heap-reserved", "import"),
        ("import-stored", "import"),
        ("removal-recorded", "collect"),
        ("heap-removed", "collect"),
    ] {
        let folders = Folders::new();
        let kept = {
            let server = Server::start_with(&folders, &[]);
            let kept = server.run_with(json!({ "code": "let kept = 1", "tags": { "keep": "me" } })).await["heap"].clone();
            server.run("let unused = 1").await;
            kept
        };
        let crash = format!("{point}:1");
        let arguments: &[&str] = if action == "collect" { &[] } else { &["--retain-heaps", "36500"] };
        let mut server = Server::start_in(&folders, arguments, &[("HEAPSTEAD_CRASH_AT", &crash)]);
        database(&folders).execute_batch("UPDATE heaps SET last_used_at = 0").expect("aged");
        for entry in std::fs::read_dir(folders.heaps()).expect("heaps").flatten().filter(|entry| entry.path().is_file()) {
            let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
            std::fs::File::options().append(true).open(entry.path()).and_then(|file| file.set_modified(old)).expect("aged");
        }
        let (url, client, file) = (server.url.clone(), server.client.clone(), file.clone());
        let request = match action {
            "run" => client.post(format!("{url}/api/exec")).json(&json!({ "code": "let n = 2", "wait_secs": 20 })),
            "import" => client.post(format!("{url}/api/heaps")).header("content-type", "application/octet-stream").body(file),
            _ => client.post(format!("{url}/api/heaps/gc")).json(&json!({})),
        };
        let _ = request.send().await;
        tokio::time::timeout(std::time::Duration::from_secs(30), server.ended()).await.expect("it kills itself");
        server.kill();
        let server = Server::start_with(&folders, arguments);
        // An unfinished write has no name; it is removed when it is an hour old.
        let state = until(&folders, |state| HeapState { temporary: 0, ..state.clone() }.is_settled()).await;
        assert!(state.recorded.contains(kept.as_str().expect("a key")), "{point} {action}: {state:?}");
        let (_, list) = server.get("/api/heaps").await;
        assert_eq!(list["heaps"].as_array().map(Vec::len), Some(state.files.len()), "{point} {action}");
        for key in &state.recorded {
            let ran = server.run_with(json!({ "code": "1", "heap": key, "on_missing_heap": "fail" })).await;
            assert_eq!(ran["status"], "completed", "{point} {action}: {ran}");
        }
    }
}

#[tokio::test]
async fn concurrent_uploads_never_exceed_the_quota() {
    let file = heap_file().await;
    let payload_bytes = file.len() as u64 - 42;
    let (quota_mb, folders) = (2, Folders::new());
    let fitting = (quota_mb << 20) / payload_bytes;
    assert!((1..8).contains(&fitting), "{fitting}");
    let server = Server::start_with(&folders, &["--max-heap-mb-per-owner", &quota_mb.to_string()]);
    for round in 0..3 {
        let uploads = variants(&file, 8).into_iter().map(|(_, file)| import(&server, file));
        let answers = futures_util::future::join_all(uploads).await;
        let state = settled(&folders).await;
        assert!(state.used_bytes <= quota_mb << 20, "round {round}: {state:?}");
        for (status, answer) in answers.iter().filter(|(status, _)| *status != 200) {
            assert_eq!(*status, 429, "{answer}");
        }
    }
    // One after the other, so that none is refused because of a reservation that is given back.
    for (_, file) in variants(&file, 8) {
        import(&server, file).await;
    }
    let state = settled(&folders).await;
    assert_eq!((state.files.len() as u64, state.used_bytes), (fitting, fitting * payload_bytes), "what fits is stored");
    let (status, refused) = import(&server, variants(&file, 9).pop().expect("one more").1).await;
    assert_eq!((status, &refused["type"]), (429, &json!("urn:heapstead:error:heap_quota_exceeded")), "{refused}");
}
