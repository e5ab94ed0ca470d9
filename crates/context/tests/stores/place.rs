//! A store under test: opens it, opens it again as another process would, manipulates its contents and its clock.

use crate::redis_server;
use heapstead_context::store::{
    Backing, ContextStore, KEY_PREFIX, Memory, MemorySettings, QUARANTINE_PREFIX, Redis, RedisSettings, Sqlite, SqliteSettings,
};
use heapstead_context::{
    Access, Audited, Clock, Contexts, Document, Encrypted, Error, Keyring, ManualClock, Metered, Record, SessionId, Timestamp,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

pub const TTL: Duration = Duration::from_secs(30 * 60);
pub const TENANT: &str = "acme";
const MASTER_KEY: &str = "k1 1111111111111111111111111111111111111111111111111111111111111111";

pub fn keys() -> Keyring {
    Keyring::parse(MASTER_KEY).expect("keys")
}

pub fn access(session: &SessionId) -> Access<'_> {
    Access::new(session, "test").of_tenant(TENANT)
}

pub fn new_session() -> SessionId {
    SessionId::random().expect("an id")
}

enum Bottom {
    Memory(Arc<Memory>),
    Sqlite(PathBuf),
    Redis,
}

pub struct Place {
    pub clock: Arc<ManualClock>,
    folder: TempDir,
    bottom: Bottom,
    wrapped: bool,
}

impl Place {
    fn new(bottom: impl FnOnce(&TempDir, &Arc<ManualClock>) -> Bottom) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let clock = Arc::new(ManualClock::at(Timestamp::from_ms(1_800_000_000_000)));
        let bottom = bottom(&folder, &clock);
        Self { clock, folder, bottom, wrapped: false }
    }

    pub fn memory() -> Self {
        Self::new(|_, clock| Bottom::Memory(Arc::new(Memory::new(memory_settings(clock)))))
    }

    pub fn memory_over_sqlite() -> Self {
        Self::new(|folder, clock| {
            let (settings, backing) = (memory_settings(clock), open_sqlite(folder.path().join("backing.db"), clock));
            let backing: Arc<dyn Backing> = Arc::new(Encrypted::new(backing, keys()));
            // In a separate thread, because tests run in a runtime and this blocks.
            let load =
                move || tokio::runtime::Runtime::new().expect("runtime").block_on(Memory::load(settings, backing)).expect("loaded").0;
            Bottom::Memory(Arc::new(std::thread::spawn(load).join().expect("loaded")))
        })
    }

    pub fn sqlite() -> Self {
        Self::new(|folder, _| Bottom::Sqlite(folder.path().join("contexts.db")))
    }

    pub fn redis() -> Self {
        Self::new(|_, _| {
            redis_server::shared();
            Bottom::Redis
        })
    }

    /// The same place with every wrapper around the store.
    pub fn wrapped(self) -> Self {
        Self { wrapped: true, ..self }
    }

    pub fn is_encrypted(&self) -> bool {
        self.wrapped
    }

    /// Opens the store as another process would.
    pub fn open(&self) -> Arc<dyn ContextStore> {
        let clock: Arc<dyn Clock> = self.clock.clone();
        match self.wrapped {
            false => self.open_bare(),
            true => Arc::new(Audited::new(Metered::new(Encrypted::new(self.open_bare(), keys()).with_clock(clock)))),
        }
    }

    pub fn contexts(&self) -> Contexts {
        Contexts::build(self.open(), self.clock.clone(), None)
    }

    pub fn open_bare(&self) -> Arc<dyn ContextStore> {
        match &self.bottom {
            Bottom::Memory(memory) => memory.clone(),
            Bottom::Sqlite(path) => Arc::new(open_sqlite(path.clone(), &self.clock)),
            Bottom::Redis => Arc::new(
                Redis::open(&redis_server::shared().url(), &RedisSettings { ttl: TTL, ..RedisSettings::default() }).expect("redis"),
            ),
        }
    }

    /// Advances the clock for one session.
    pub fn pass(&self, session: &SessionId, time: Duration) {
        self.clock.advance(time);
        if let Bottom::Redis = self.bottom {
            let mut connection = redis_server::shared().connection();
            let key = format!("{KEY_PREFIX}{session}");
            let left: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).expect("time to live");
            assert!(left != -1, "a context without an end");
            let _: i64 = redis::cmd("PEXPIRE").arg(&key).arg(left - time.as_millis() as i64).query(&mut connection).expect("shortened");
        }
    }

    /// Writes bytes directly to the underlying storage, encrypted if the store is.
    pub async fn plant(&self, session: &SessionId, bytes: &[u8]) {
        let store = self.open();
        store.remove(access(session)).await.expect("removed");
        let planted = store.replace(access(session), None, &Document::from_bytes(bytes.to_vec())).await;
        assert!(planted.expect("planted"));
    }

    /// Quarantined documents of this session, if the store exposes them.
    pub fn aside(&self, session: &SessionId) -> Vec<Vec<u8>> {
        match &self.bottom {
            Bottom::Memory(memory) => memory.quarantined().iter().map(|document| document.bytes().to_vec()).collect(),
            Bottom::Sqlite(path) => {
                let database = rusqlite::Connection::open(path).expect("database");
                let mut statement = database.prepare("SELECT record FROM context_quarantine WHERE session_id = ?1").expect("statement");
                let rows = statement.query_map([session.as_bytes()], |row| row.get(0)).expect("rows");
                rows.map(|row| row.expect("row")).collect()
            }
            Bottom::Redis => {
                let key = format!("{QUARANTINE_PREFIX}{session}");
                let found: Option<Vec<u8>> = redis::cmd("GET").arg(key).query(&mut redis_server::shared().connection()).expect("asked");
                found.into_iter().collect()
            }
        }
    }

    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

fn memory_settings(clock: &Arc<ManualClock>) -> MemorySettings {
    MemorySettings { ttl: TTL, clock: clock.clone(), ..MemorySettings::default() }
}

pub fn open_sqlite(path: PathBuf, clock: &Arc<ManualClock>) -> Sqlite {
    Sqlite::open(&path, SqliteSettings { ttl: TTL, clock: clock.clone(), ..SqliteSettings::default() }).expect("sqlite")
}

pub fn record(session: SessionId, note: &str) -> Document {
    let mut record = Record::new(session, Timestamp::from_ms(0));
    record.custom.insert("note".into(), note.into());
    Document::of(record).expect("a document")
}

/// An update that is never refused.
pub async fn change(contexts: &Contexts, session: &SessionId, change: impl Fn(&mut Record)) -> Result<(), Error> {
    let update = contexts.update(access(session), |record| {
        change(record);
        Ok(())
    });
    update.await
}
