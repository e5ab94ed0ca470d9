//! Encryption: no plaintext is stored, tampered documents are refused, and keys rotate during use.

use crate::place::{Place, access, change, keys, new_session, open_sqlite};
use crate::processes::call;
use crate::redis_server::RedisServer;
use heapstead_context::store::{ContextStore, KEY_PREFIX, Memory, MemorySettings, Redis, RedisSettings, Sqlite};
use heapstead_context::{
    Access, Audited, Contexts, Document, Encrypted, Error, Keyring, Metered, NewResource, Record, ResourceType, SessionId, StoreError,
    Timestamp, ToolCall,
};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

const MARKER: &str = "m4rk3r-that-must-not-be-seen";

fn key(id: &str, digit: char) -> String {
    format!("{id} {}", digit.to_string().repeat(64))
}

/// Puts a marker into every part of a record that takes text.
fn mark(record: &mut Record) {
    let now = Timestamp::from_ms(5);
    let args = json!({ "marked": MARKER }).as_object().cloned().expect("an object");
    record.add_call(ToolCall { tool: MARKER.into(), args, called_at: now, result_summary: MARKER.into() });
    let resource = NewResource {
        resource_id: MARKER.into(),
        resource_type: ResourceType::Document,
        content_hash: MARKER.into(),
        summary: MARKER.into(),
    };
    record.add_resource(resource, now).expect("added");
    record.add_search(MARKER, 1, now).expect("added");
    record.custom.insert(MARKER.into(), json!(MARKER));
}

fn assert_unmarked(folder: &Path) {
    let mut files = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.is_file() {
                let bytes = std::fs::read(&entry).expect("file");
                assert!(!bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes()), "{}", entry.display());
                files += usize::from(!bytes.is_empty());
            }
        }
    }
    assert!(files > 0);
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("log").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Captures the log of this thread while the guard is held.
fn logged() -> (Log, tracing::subscriber::DefaultGuard) {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false).with_writer(move || writer.clone()).finish();
    (log, tracing::subscriber::set_default(subscriber))
}

#[tokio::test]
async fn plaintext_is_nowhere_in_sqlite_nor_in_the_log() {
    let (place, session, (log, _logging)) = (Place::sqlite().wrapped(), new_session(), logged());
    let contexts = place.contexts();
    for _ in 0..40 {
        change(&contexts, &session, mark).await.expect("updated");
    }
    contexts.get(Access { tool: "context_get", ..access(&session) }).await.expect("there");
    // Damaged after decryption and quarantined: it is still encrypted there.
    place.plant(&session, format!("{{\"schema_version\":1,\"session_id\":\"{MARKER}\"}}").as_bytes()).await;
    assert_eq!(contexts.find(access(&session)).await.expect("not fatal"), None);
    assert_unmarked(place.folder());
    let log = String::from_utf8(log.0.lock().expect("log").clone()).expect("text");
    assert!(
        log.contains("DEBUG") && log.contains("context read") && log.contains(&session.to_string()) && log.contains("context_get"),
        "{log}"
    );
    assert!(!log.contains(MARKER), "{log}");
    for line in log.lines().filter(|line| !line.contains("DEBUG") && !line.contains("TRACE")) {
        assert!(!line.contains(&session.to_string()), "ids only at DEBUG: {line}");
    }
}

#[tokio::test]
async fn plaintext_is_nowhere_in_redis() {
    let (server, session) = (RedisServer::start(), new_session());
    let contexts = Contexts::new(Encrypted::new(Redis::open(&server.url(), &RedisSettings::default()).expect("redis"), keys()));
    for _ in 0..20 {
        change(&contexts, &session, mark).await.expect("updated");
    }
    let value: Vec<u8> = redis::cmd("GET").arg(format!("{KEY_PREFIX}{session}")).query(&mut server.connection()).expect("value");
    assert!(!value.is_empty() && !value.windows(MARKER.len()).any(|window| window == MARKER.as_bytes()));
    assert_unmarked(server.folder());
}

#[tokio::test]
async fn plaintext_is_nowhere_in_what_memory_flushes() {
    let (place, session) = (Place::sqlite(), new_session());
    let backing = Arc::new(Encrypted::new(open_sqlite(place.folder().join("contexts.db"), &place.clock), keys()));
    let settings = MemorySettings { clock: place.clock.clone(), ..MemorySettings::default() };
    let memory = Arc::new(Memory::load(settings, backing).await.expect("loaded").0);
    let contexts = Contexts::new(memory.clone());
    for _ in 0..3 {
        change(&contexts, &session, mark).await.expect("updated");
        memory.flush().await.expect("flushed");
    }
    assert_unmarked(place.folder());
}

struct Vault {
    bare: Arc<Sqlite>,
    sealed: Encrypted<Arc<Sqlite>>,
    place: Place,
}

impl Vault {
    fn new() -> Self {
        let place = Place::sqlite();
        let bare = Arc::new(open_sqlite(place.folder().join("contexts.db"), &place.clock));
        let sealed = Encrypted::new(bare.clone(), keys()).with_clock(place.clock.clone());
        Self { bare, sealed, place }
    }

    /// A server that has not read anything yet.
    fn fresh(&self) -> Encrypted<Arc<Sqlite>> {
        Encrypted::new(self.bare.clone(), keys()).with_clock(self.place.clock.clone())
    }

    async fn write(&self, session: &SessionId, note: &str) -> Document {
        let before = self.sealed.read(access(session)).await.expect("read");
        let stored = self.sealed.replace(access(session), before.as_ref(), &crate::place::record(*session, note)).await;
        assert!(stored.expect("stored"));
        self.raw(session).await
    }

    async fn raw(&self, session: &SessionId) -> Document {
        self.bare.read(access(session)).await.expect("read").expect("there")
    }

    async fn put_raw(&self, session: &SessionId, bytes: &[u8]) {
        let before = self.bare.read(access(session)).await.expect("read");
        assert!(self.bare.replace(access(session), before.as_ref(), &Document::from_bytes(bytes.to_vec())).await.expect("stored"));
    }
}

#[tokio::test]
async fn swapped_cut_changed_and_plain_documents_are_refused() {
    let (vault, one, other) = (Vault::new(), new_session(), new_session());
    let whole = vault.write(&one, "one").await.bytes().to_vec();
    let swapped = vault.write(&other, "other").await.bytes().to_vec();
    let mut bad: Vec<Vec<u8>> =
        vec![swapped, Vec::new(), crate::place::record(one, "plain").bytes().to_vec(), [&whole[..], b"\0"].concat()];
    bad.extend((0..whole.len()).step_by(7).map(|end| whole[..end].to_vec()));
    // Every byte, except those of the tenant and key id, which have their own errors.
    bad.extend((0..whole.len()).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x01;
        bytes
    }));
    for bytes in bad {
        vault.put_raw(&one, &bytes).await;
        let error = vault.sealed.read(access(&one)).await.expect_err("refused");
        assert!(matches!(error, StoreError::Tampered { .. } | StoreError::ForeignTenant | StoreError::UnknownKey { .. }), "{error}");
    }
    vault.put_raw(&one, &whole).await;
    assert!(vault.sealed.read(access(&one)).await.expect("the right one").is_some());
}

#[tokio::test]
async fn tampered_documents_are_quarantined_and_the_session_continues() {
    let (vault, one) = (Vault::new(), new_session());
    let mut bytes = vault.write(&one, "one").await.bytes().to_vec();
    *bytes.last_mut().expect("some") ^= 1;
    vault.put_raw(&one, &bytes).await;
    let contexts = Contexts::new(Audited::new(Metered::new(vault.fresh())));
    assert_eq!(contexts.find(access(&one)).await.expect("not fatal"), None);
    assert_eq!((contexts.counts().quarantined, vault.place.aside(&one)), (1, vec![bytes]));
    change(&contexts, &one, |record| record.add_call(call("x", 1))).await.expect("updated");
}

#[tokio::test]
async fn another_tenant_can_neither_read_nor_change_a_context() {
    let (vault, one) = (Vault::new(), new_session());
    vault.write(&one, "acme's").await;
    let contexts = Contexts::new(vault.fresh());
    let foreign = Access::new(&one, "test").of_tenant("globex");
    assert!(matches!(contexts.get(foreign).await, Err(Error::NotFound)));
    assert!(matches!(contexts.update(foreign, |_| Ok(())).await, Err(Error::NotFound)));
    assert_eq!((contexts.counts().isolation_violations, contexts.counts().quarantined), (2, 0));
    assert_eq!(contexts.get(access(&one)).await.expect("still there").custom["note"], "acme's");
    // Changing the tenant name in the header does not help.
    let raw = vault.raw(&one).await.bytes().to_vec();
    let at = raw.windows(4).position(|window| window == b"acme").expect("the tenant");
    let renamed = [&raw[..at], b"evil", &raw[at + 4..]].concat();
    vault.put_raw(&one, &renamed).await;
    let error = vault.fresh().read(Access::new(&one, "test").of_tenant("evil")).await.expect_err("refused");
    assert!(matches!(error, StoreError::Tampered { .. }));
}

#[tokio::test]
async fn a_replayed_older_version_is_refused_after_a_newer_was_seen() {
    let (vault, one) = (Vault::new(), new_session());
    let old = vault.write(&one, "old").await;
    let reader = vault.fresh();
    vault.write(&one, "new").await;
    reader.read(access(&one)).await.expect("read").expect("the new one");
    vault.put_raw(&one, old.bytes()).await;
    for store in [&vault.sealed, &reader] {
        let error = store.read(access(&one)).await.expect_err("refused").to_string();
        assert!(error.contains("older version"), "{error}");
    }
    // Not detectable, as documented: this server has never seen the newer version.
    assert!(vault.fresh().read(access(&one)).await.expect("read").is_some());
}

#[tokio::test]
async fn a_replayed_cleared_context_is_refused() {
    let (vault, one) = (Vault::new(), new_session());
    let old = vault.write(&one, "old").await;
    vault.sealed.remove(access(&one)).await.expect("removed");
    vault.put_raw(&one, old.bytes()).await;
    assert!(matches!(vault.sealed.read(access(&one)).await, Err(StoreError::Tampered { .. })));
    vault.bare.remove(access(&one)).await.expect("removed");
    vault.write(&one, "begun anew").await;
    assert!(vault.sealed.read(access(&one)).await.expect("read").is_some());
}

#[tokio::test]
async fn readers_beside_writers_see_no_replay() {
    let (vault, one) = (Arc::new(Vault::new()), new_session());
    vault.write(&one, "0").await;
    let writer = vault.clone();
    let writing = tokio::spawn(async move {
        for note in 0..200 {
            writer.write(&one, &note.to_string()).await;
        }
    });
    while !writing.is_finished() {
        vault.sealed.read(access(&one)).await.expect("never refused").expect("there");
        tokio::task::yield_now().await;
    }
    writing.await.expect("ended");
}

#[tokio::test]
async fn keys_rotate_during_use() {
    let (vault, one, folder) = (Vault::new(), new_session(), tempfile::tempdir().expect("folder"));
    let path = folder.path().join("keys");
    let (old, new) = (key("2026-10", '1'), key("2026-11", '2'));
    let write_keys = |lines: &[&str]| {
        std::fs::write(&path, lines.join("\n")).expect("written");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("private");
    };
    let has_key = |raw: &Document, id: &str| raw.bytes().windows(id.len()).any(|window| window == id.as_bytes());
    write_keys(&[&old]);
    let open = || Encrypted::new(vault.bare.clone(), Keyring::from_file(&path).expect("keys"));
    let servers = [open(), open()];
    let users = [Contexts::new(Arc::new(open())), Contexts::new(Arc::new(open()))];
    let add = |contexts: &Contexts| {
        let contexts = contexts.clone();
        async move { change(&contexts, &one, |record| record.add_call(call("x", 1))).await.expect("updated") }
    };
    add(&users[0]).await;
    assert!(has_key(&vault.raw(&one).await, "2026-10"));
    // The first server is started with the new key on top. The second does not know it, and reloads its file.
    write_keys(&[&new, &old]);
    let first = Contexts::new(open());
    add(&first).await;
    assert!(has_key(&vault.raw(&one).await, "2026-11"), "the newest encrypts");
    add(&users[1]).await;
    // An explicit rotation, without a restart.
    servers[0].rotate(Keyring::from_file(&path).expect("keys"));
    assert!(servers[0].read(access(&one)).await.expect("read").is_some());
    // The old key is removed.
    write_keys(&[&new]);
    let last = Contexts::new(open());
    assert_eq!(last.get(access(&one)).await.expect("there").calls_total(), 3);
}

#[tokio::test]
async fn a_document_under_an_unknown_key_is_left_unchanged() {
    let (vault, one) = (Vault::new(), new_session());
    let before = vault.write(&one, "x").await;
    let contexts = Contexts::new(Encrypted::new(vault.bare.clone(), Keyring::parse(&key("other", '3')).expect("keys")));
    for _ in 0..2 {
        let error = contexts.update(access(&one), |_| Ok(())).await.expect_err("unknown");
        assert!(matches!(&error, Error::Store(StoreError::UnknownKey { key_id }) if key_id == "k1"), "{error}");
    }
    assert_eq!(vault.raw(&one).await, before);
    assert_eq!(contexts.counts().quarantined, 0);
    // The right key id with a different key does not decrypt it either.
    let wrong = Encrypted::new(vault.bare.clone(), Keyring::parse(&key("k1", '3')).expect("keys"));
    assert!(matches!(wrong.read(access(&one)).await, Err(StoreError::Tampered { .. })));
}

#[test]
fn a_key_file_that_everyone_may_read_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("keys");
    std::fs::write(&path, key("a", '1')).expect("written");
    for (mode, is_fine) in [(0o644, false), (0o602, false), (0o640, true), (0o400, true)] {
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("set");
        assert_eq!(Keyring::from_file(&path).is_ok(), is_fine, "{mode:o}");
    }
    assert!(Keyring::from_file(&folder.path().join("none")).expect_err("none").to_string().contains("can't be read"));
}
