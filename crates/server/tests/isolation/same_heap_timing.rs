//! Storing and collecting a heap takes as long whether or not another owner has the same heap. That restoring does is shown by the lookups in the
//! cache: `service/tests/service/shared_heaps.rs`.

use crate::fixture::torture;
use crate::owners::{Owner, TestServers};
use crate::sharing::{export, make};
use crate::timing::check_times;
use sha2::{Digest, Sha256};
use std::time::{Duration, Instant, SystemTime};

/// Mark and checksum.
const HEADER_BYTES: usize = 42;

fn samples() -> usize {
    if torture() { 1000 } else { 100 }
}

/// Files that can be imported, each with another key: nobody restores them.
struct Files {
    payload: Vec<u8>,
    count: u64,
}

impl Files {
    async fn new(owner: &Owner) -> Self {
        let key = make(owner).await;
        Self { payload: export(owner, &key).await.2[HEADER_BYTES..].to_vec(), count: 0 }
    }

    /// The key of the next one, and its bytes.
    fn next(&mut self) -> (String, Vec<u8>) {
        self.count += 1;
        let end = self.payload.len() - 8;
        self.payload[end..].copy_from_slice(&self.count.to_be_bytes());
        let digest = Sha256::digest(&self.payload);
        (hex::encode(digest), [b"MCPV8SNAP\0", &digest[..], &self.payload].concat())
    }
}

async fn import(owner: &Owner, file: Vec<u8>) -> Duration {
    let sent = owner.request("POST", "/api/heaps").header("content-type", "application/octet-stream").body(file);
    let began = Instant::now();
    let status = sent.send().await.expect("an answer").status();
    let time = began.elapsed();
    assert_eq!(status, 200);
    time
}

#[tokio::test]
async fn importing_a_heap_takes_as_long_if_another_owner_has_it() {
    let servers = TestServers::start();
    let (ann, bob) = (servers.owner("acme/ann"), servers.owner("umbra/bob"));
    let mut files = Files::new(&ann).await;
    check_times("an import of a heap that another owner has, and of a new one", samples(), async |which| {
        let (file, other) = (files.next().1, files.next().1);
        import(&ann, if which == 0 { file.clone() } else { other }).await;
        import(&bob, file).await
    })
    .await;
}

/// Story: if nobody else had the heap, the response waited until its file was gone.
#[tokio::test]
async fn collecting_a_heap_takes_as_long_if_another_owner_has_it() {
    let servers = TestServers::start_with(&["--retain-heaps", "1"]);
    let (ann, bob) = (servers.owner("acme/ann"), servers.owner("umbra/bob"));
    let mut files = Files::new(&ann).await;
    let database = rusqlite::Connection::open(servers.folders.database().join("heapstead.db")).expect("the database");
    database.busy_timeout(Duration::from_secs(10)).expect("set");
    check_times("collecting a heap that another owner has, and one that nobody else has", samples(), async |which| {
        let ((key, file), (_, other)) = (files.next(), files.next());
        import(&ann, if which == 0 { file.clone() } else { other }).await;
        import(&bob, file).await;
        database.execute("UPDATE heaps SET last_used_at = 0 WHERE principal = 'umbra/bob'", []).expect("aged");
        let stored = std::fs::File::options().append(true).open(servers.folders.heaps().join(&key)).expect("a file");
        stored.set_modified(SystemTime::UNIX_EPOCH).expect("aged");
        let request = bob.request("POST", "/api/heaps/gc").json(&serde_json::json!({}));
        let began = Instant::now();
        let response = request.send().await.expect("an answer").text().await.expect("a body");
        let time = began.elapsed();
        assert!(response.contains(&key), "{response}");
        time
    })
    .await;
}
