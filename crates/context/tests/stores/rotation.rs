//! Key rotation through the key file alone: running servers reload it, and contexts that are only read are re-encrypted too.

use crate::place::{access, change, new_session};
use heapstead_context::store::{Memory, MemorySettings, Sqlite, SqliteSettings};
use heapstead_context::{Contexts, Encrypted, Keyring, SessionId};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

struct Vault(TempDir);

impl Vault {
    fn new() -> Self {
        let vault = Self(tempfile::tempdir().expect("folder"));
        vault.holds(&["old"]);
        vault
    }

    fn keys(&self) -> PathBuf {
        self.0.path().join("keys")
    }

    /// Writes the key file. The first key encrypts.
    fn holds(&self, ids: &[&str]) {
        let line = |id: &&str| format!("{id} {}\n", hex::encode(id).repeat(11)[..64].to_owned());
        std::fs::write(self.keys(), ids.iter().map(line).collect::<String>()).expect("written");
        std::fs::set_permissions(self.keys(), std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("private");
    }

    fn open(&self) -> Encrypted<Sqlite> {
        let sqlite = Sqlite::open(&self.0.path().join("contexts.db"), SqliteSettings::default()).expect("sqlite");
        Encrypted::new(sqlite, Keyring::from_file(&self.keys()).expect("keys"))
    }

    async fn load(&self) -> (Arc<Memory>, Contexts) {
        let (memory, loaded) = Memory::load(MemorySettings::default(), Arc::new(self.open())).await.expect("loaded");
        assert_eq!(loaded.unreadable, 0);
        let memory = Arc::new(memory);
        (memory.clone(), Contexts::new(memory))
    }

    fn is_under(&self, session: &SessionId, id: &str) -> bool {
        let database = rusqlite::Connection::open(self.0.path().join("contexts.db")).expect("database");
        let record: Vec<u8> = database
            .query_row("SELECT record FROM context_records WHERE session_id = ?1", [session.as_bytes()], |row| row.get(0))
            .expect("a record");
        record[6..].starts_with(id.as_bytes())
    }
}

async fn patiently(mut done: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !done().await {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn is_kept(contexts: &Contexts, session: &SessionId) -> bool {
    contexts.get(access(session)).await.expect("there").custom["kept"] == 1
}

#[tokio::test]
async fn contexts_that_are_only_read_are_re_encrypted_under_the_new_key() {
    let (vault, session) = (Vault::new(), new_session());
    let contexts = Contexts::new(vault.open());
    change(&contexts, &session, |record| drop(record.custom.insert("kept".into(), json!(1)))).await.expect("updated");
    assert!(vault.is_under(&session, "old"));
    // A half-written key file is ignored.
    std::fs::write(vault.keys(), "new").expect("written");
    assert!(is_kept(&contexts, &session).await);
    vault.holds(&["new", "old"]);
    patiently(async || is_kept(&contexts, &session).await && vault.is_under(&session, "new")).await;
    vault.holds(&["new"]);
    assert!(is_kept(&Contexts::new(vault.open()), &session).await);
    change(&contexts, &session, |record| drop(record.custom.insert("more".into(), json!(2)))).await.expect("updated");
}

#[tokio::test]
async fn the_memory_stores_database_is_re_encrypted_too() {
    let (vault, session) = (Vault::new(), new_session());
    let (memory, contexts) = vault.load().await;
    change(&contexts, &session, |record| drop(record.custom.insert("kept".into(), json!(1)))).await.expect("updated");
    memory.flush().await.expect("flushed");
    vault.holds(&["new", "old"]);
    patiently(async || {
        assert!(is_kept(&contexts, &session).await);
        memory.flush().await.expect("flushed");
        vault.is_under(&session, "new")
    })
    .await;
    memory.close().await.expect("closed");
    vault.holds(&["new"]);
    assert!(is_kept(&vault.load().await.1, &session).await);
}
