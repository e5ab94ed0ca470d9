//! Key rotation under load: two servers on one store change keys without a restart or a failed call.

use crate::fixture::{Folders, Server};
use crate::load::Load;
use crate::redis_server::RedisServer;
use crate::{calls, context_when, run_in};
use serde_json::json;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(30);

struct KeyFile(PathBuf);

impl KeyFile {
    /// Writes the key file. The first key encrypts; a key is derived from its id.
    fn holds(&self, ids: &[&str]) {
        let line = |id: &&str| format!("{id} {}\n", hex(id).repeat(32));
        let new = self.0.with_extension("new");
        std::fs::write(&new, ids.iter().map(line).collect::<String>()).expect("written");
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).expect("private");
        std::fs::rename(new, &self.0).expect("replaced");
    }
}

fn hex(id: &str) -> String {
    format!("{:02x}", id.as_bytes()[0])
}

/// Ids of the keys of the stored records: `MCTX`, a version, the length of the id, the id.
fn keys_of(records: Vec<Vec<u8>>) -> BTreeSet<String> {
    let key_of = |record: Vec<u8>| {
        assert_eq!(&record[..4], b"MCTX");
        String::from_utf8(record[6..6 + usize::from(record[5])].to_vec()).expect("an id")
    };
    records.into_iter().map(key_of).collect()
}

async fn rotate(folders: &Folders, store: &[&str], keys_in_use: impl Fn() -> BTreeSet<String>) {
    let file = KeyFile(folders.path().join("keys"));
    file.holds(&["a"]);
    let flags = [store, &["--context-key-file", file.0.to_str().expect("UTF-8")]].concat();
    let servers = [Server::start_with(folders, &flags), Server::start_with(folders, &flags)];
    let quiet = json!({ "session": "quiet", "custom": { "said": "under a" } });
    assert_eq!(servers[0].post("/api/context", quiet).await.0, 200);
    let load = Load::start(&servers);
    load.advance(3).await;
    assert_eq!(keys_in_use(), BTreeSet::from(["a".to_owned()]));

    file.holds(&["a", "b"]);
    load.advance(3).await;
    file.holds(&["b", "a"]);
    let begun = Instant::now();
    while keys_in_use() != BTreeSet::from(["b".to_owned()]) {
        assert!(begun.elapsed() < TIMEOUT, "{:?} are in use", keys_in_use());
        // This context is only ever read, by the server that did not write it.
        let (status, context) = servers[1].get("/api/context?session=quiet").await;
        assert_eq!((status, &context["custom"]["said"]), (200, &json!("under a")), "{context}");
        load.advance(1).await;
    }

    file.holds(&["b"]);
    load.advance(3).await;
    let third = Server::start_with(folders, &flags);
    load.advance(3).await;
    let ran = load.end_acknowledged_by(&third).await;
    assert_eq!(third.get("/api/context?session=quiet").await.1["custom"]["said"], "under a");
    for (session, runs) in ran {
        context_when(&third, &session, |context| calls(context) == runs).await;
    }
    run_in(&third, "quiet", "1").await;
    context_when(&servers[0], "quiet", |context| calls(context) == 1).await;
}

#[tokio::test]
async fn in_sqlite() {
    let folders = Folders::new();
    rotate(&folders, &[], || {
        let database = rusqlite::Connection::open(folders.database().join("context.db")).expect("opened");
        let mut statement = database.prepare("SELECT record FROM context_records").expect("a statement");
        let records = statement.query_map([], |row| row.get(0)).expect("rows").map(|record| record.expect("a record"));
        keys_of(records.collect())
    })
    .await;
}

#[tokio::test]
async fn in_redis() {
    let (redis, folders) = (RedisServer::start(), Folders::new());
    rotate(&folders, &["--context-store", "redis", "--redis-url", &redis.url()], || {
        let mut connection = redis.connection();
        let keys: Vec<String> = ::redis::cmd("KEYS").arg("mcp:ctx:v1:*").query(&mut connection).expect("keys");
        keys_of(keys.iter().map(|key| ::redis::cmd("GET").arg(key).query(&mut connection).expect("a record")).collect())
    })
    .await;
}
