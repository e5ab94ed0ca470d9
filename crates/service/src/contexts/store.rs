//! The context store that the operator chose: memory, a database of its own, or Redis; encrypted or not.

use heapstead_context::store::{Backing, Flusher, Memory, MemorySettings, Redis, RedisSettings, Sqlite, SqliteSettings};
use heapstead_context::{
    Access, Audited, ContextStore, Contexts, Encrypted, InvalidKeyFile, Keyring, Meter, Metered, SessionId, StoreError, Upkeep,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Expired contexts are deleted at least this often.
const UPKEEP_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct ContextSettings {
    pub place: ContextPlace,
    pub ttl: Duration,
    /// Master keys. If set, contexts outside of this process are encrypted.
    pub key_file: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub enum ContextPlace {
    /// In this process; flushed to and loaded from a database.
    Memory {
        database: PathBuf,
        sessions_max: usize,
        memory_bytes_max: usize,
        flush_every: Duration,
    },
    Sqlite {
        database: PathBuf,
    },
    Redis {
        url: String,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum ContextStoreError {
    #[error("`--context-key-file` can't be used: {0}")]
    Keys(#[from] InvalidKeyFile),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ContextSettings {
    /// Checks the store and describes it. A server that uses it is not disturbed.
    pub async fn check(&self) -> Result<String, ContextStoreError> {
        let keys = self.keys()?;
        let found = match &self.place {
            ContextPlace::Sqlite { database } => check_database(database).await?,
            ContextPlace::Memory { database, .. } => format!("in memory; {}", check_database(database).await?),
            ContextPlace::Redis { url } => {
                Redis::open(url, &RedisSettings::default())?.check().await?;
                "Redis can be read and written".into()
            }
        };
        Ok(match keys {
            Some(keys) => format!("{found}; the key `{}` encrypts", keys.newest()),
            None => found,
        })
    }

    fn keys(&self) -> Result<Option<Keyring>, InvalidKeyFile> {
        self.key_file.as_deref().map(Keyring::from_file).transpose()
    }
}

async fn check_database(database: &Path) -> Result<String, StoreError> {
    Sqlite::open(database, SqliteSettings::default())?.check().await?;
    Ok(format!("{} can be read and written", database.display()))
}

/// Removes a context from a database that servers use, if it exists. Others are not touched: their TTL is for the servers to apply.
pub(crate) async fn remove_from(database: &Path, session: &SessionId) -> Result<(), StoreError> {
    if database.is_file() {
        Sqlite::open(database, SqliteSettings::default())?.remove(Access::new(session, "end_session")).await?;
    }
    Ok(())
}

/// What the contexts of an owner count for in a database that servers use. Zero if it can't be read.
pub(crate) async fn bytes_in(database: &Path, owner: &str) -> u64 {
    if !database.is_file() {
        return 0;
    }
    match Sqlite::open(database, SqliteSettings::default()) {
        Ok(store) => store.owner_bytes(owner).await.ok().flatten().unwrap_or_default(),
        Err(_) => 0,
    }
}

/// An open store with its background tasks.
pub struct OpenContexts {
    pub(crate) contexts: Contexts,
    pub(crate) meter: Arc<Meter>,
    /// Flushed at shutdown.
    pub(crate) memory: Option<Arc<Memory>>,
    pub(crate) _flusher: Option<Flusher>,
    pub(crate) _upkeep: Upkeep,
}

impl OpenContexts {
    /// To be called inside the runtime. A Redis that is not there yet is no error.
    pub async fn open(settings: ContextSettings) -> Result<Self, ContextStoreError> {
        let ttl = settings.ttl;
        let keys = settings.keys()?;
        match settings.place {
            ContextPlace::Sqlite { database } => {
                let sqlite = Sqlite::open(&database, SqliteSettings { ttl, ..SqliteSettings::default() })?;
                Ok(match keys {
                    Some(keys) => Self::around(Encrypted::new(sqlite, keys), ttl),
                    None => Self::around(sqlite, ttl),
                })
            }
            ContextPlace::Redis { url } => {
                let redis = Redis::open(&url, &RedisSettings { ttl, ..RedisSettings::default() })?;
                Ok(match keys {
                    Some(keys) => Self::around(Encrypted::new(redis, keys), ttl),
                    None => Self::around(redis, ttl),
                })
            }
            ContextPlace::Memory { database, sessions_max, memory_bytes_max, flush_every } => {
                let sqlite = Sqlite::open(&database, SqliteSettings { ttl, ..SqliteSettings::default() })?;
                let backing: Arc<dyn Backing> = match keys {
                    Some(keys) => Arc::new(Encrypted::new(sqlite, keys)),
                    None => Arc::new(sqlite),
                };
                let memory = MemorySettings { ttl, sessions_max, memory_bytes_max, ..MemorySettings::default() };
                let (memory, _) = Memory::load(memory, backing).await?;
                let memory = Arc::new(memory);
                let flusher = memory.flush_every(flush_every);
                Ok(Self { _flusher: Some(flusher), memory: Some(memory.clone()), ..Self::around(memory, ttl) })
            }
        }
    }

    fn around(store: impl ContextStore, ttl: Duration) -> Self {
        let store = Metered::new(Audited::new(store));
        let meter = store.meter();
        let contexts = Contexts::new(store);
        let _upkeep = contexts.keep_up((ttl / 4).min(UPKEEP_MAX));
        Self { contexts, meter, memory: None, _flusher: None, _upkeep }
    }
}
