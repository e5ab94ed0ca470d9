//! What is stored about heaps, read past the server: files in the folder, and rows of the database. Every file has to have a row.

use crate::fixture::{Folders, Server};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const SETTLE_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeapState {
    /// Files with the name of a heap.
    pub files: BTreeSet<String>,
    /// Files that are being written.
    pub temporary: usize,
    /// Heaps that an owner has.
    pub recorded: BTreeSet<String>,
    pub reservations: u64,
    pub removals: u64,
    /// What counts towards the quota of all owners.
    pub used_bytes: u64,
    /// What the recorded heaps have.
    pub recorded_bytes: u64,
}

impl HeapState {
    pub fn of(folders: &Folders) -> Self {
        let mut state = Self::default();
        for entry in std::fs::read_dir(folders.heaps()).into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().expect("a name");
            if name.starts_with(".writing-") {
                state.temporary += 1;
            } else if name.len() == 64 {
                state.files.insert(name);
            }
        }
        let db = database(folders);
        let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a number") as u64;
        state.reservations = number("SELECT count(*) FROM heap_reservations");
        state.removals = number("SELECT count(*) FROM heap_removals");
        state.used_bytes = number("SELECT coalesce(sum(heap_bytes + reserved_bytes), 0) FROM owners");
        state.recorded_bytes = number("SELECT coalesce(sum(bytes), 0) FROM heaps");
        let mut keys = db.prepare("SELECT DISTINCT key FROM heaps").expect("a query");
        state.recorded = keys.query_map([], |row| row.get(0)).expect("rows").map(|key| key.expect("a key")).collect();
        state
    }

    /// Nothing is under way, every file is recorded, and what counts is what is recorded.
    pub fn is_settled(&self) -> bool {
        let is_idle = (self.temporary, self.reservations, self.removals) == (0, 0, 0);
        is_idle && self.files == self.recorded && self.used_bytes == self.recorded_bytes
    }
}

pub fn database(folders: &Folders) -> rusqlite::Connection {
    let database = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("the database");
    database.busy_timeout(Duration::from_secs(5)).expect("a timeout");
    database
}

/// Waits until the state is settled. What an aborted request left is removed in the background.
pub async fn settled(folders: &Folders) -> HeapState {
    until(folders, HeapState::is_settled).await
}

pub async fn until(folders: &Folders, is_reached: impl Fn(&HeapState) -> bool) -> HeapState {
    let begun = Instant::now();
    loop {
        let state = HeapState::of(folders);
        if is_reached(&state) {
            return state;
        }
        assert!(begun.elapsed() < SETTLE_TIMEOUT, "{state:#?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Heap files of the same length with different keys, made from one.
pub fn variants(file: &[u8], count: u8) -> Vec<(String, Vec<u8>)> {
    let variant = |number: u8| {
        let mut file = file.to_vec();
        *file.last_mut().expect("a byte") ^= number + 1;
        let digest = Sha256::digest(&file[42..]);
        file[10..42].copy_from_slice(&digest);
        (digest.iter().map(|byte| format!("{byte:02x}")).collect(), file)
    };
    (0..count).map(variant).collect()
}

/// A heap file of a server of its own.
pub async fn heap_file() -> Vec<u8> {
    let server = Server::start();
    let record = server.run("let n = 41").await;
    std::fs::read(server.folders().heaps().join(record["heap"].as_str().expect("a heap"))).expect("a file")
}

pub async fn import(server: &Server, file: Vec<u8>) -> (u16, Value) {
    let request = server.client.post(format!("{}/api/heaps", server.url)).header("content-type", "application/octet-stream");
    let response = request.body(file).send().await.expect("an answer");
    (response.status().as_u16(), response.json().await.expect("JSON"))
}
