//! Secret keys that all servers on one database share, cached for a minute. The newest key is used; older ones stay valid.

use heapstead_store::records::{KeyPurpose, ServerKey};
use heapstead_store::{Records, RecordsError};
use heapstead_types::random_bytes;
use jiff::Timestamp;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// As long as AES-256 and HMAC-SHA256 need.
pub const KEY_BYTES: usize = 32;

/// The keys of one purpose.
pub struct KeyRing {
    records: Arc<dyn Records>,
    purpose: KeyPurpose,
    known: RwLock<Known>,
}

#[derive(Clone)]
struct Known {
    /// The newest last. Empty until the first use.
    keys: Arc<[ServerKey]>,
    read_at: Instant,
}

/// After this time another process may have rotated the key.
const KNOWN_FOR: Duration = Duration::from_secs(60);

impl KeyRing {
    pub fn new(records: Arc<dyn Records>, purpose: KeyPurpose) -> Self {
        Self { records, purpose, known: RwLock::new(Known { keys: Arc::default(), read_at: Instant::now() }) }
    }

    /// At least one key, the newest last. The first use of a database creates the first key, which is on disk when this returns.
    pub async fn keys(&self) -> Result<Arc<[ServerKey]>, RecordsError> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        if !known.keys.is_empty() && known.read_at.elapsed() < KNOWN_FOR {
            return Ok(known.keys);
        }
        let stored = self.reload().await?;
        if !stored.is_empty() {
            return Ok(stored);
        }
        let first = random_bytes::<KEY_BYTES>().to_vec();
        Ok(self.cache(self.records.server_keys_or(self.purpose, first, Timestamp::now()).await?))
    }

    /// Reads the keys again: another process may have added one.
    pub async fn reload(&self) -> Result<Arc<[ServerKey]>, RecordsError> {
        Ok(self.cache(self.records.server_keys(self.purpose).await?))
    }

    /// Adds a key that this process uses from now on, and other processes within a minute.
    pub async fn rotate(&self) -> Result<(), RecordsError> {
        self.records.add_server_key(self.purpose, random_bytes::<KEY_BYTES>().to_vec(), Timestamp::now()).await?;
        self.reload().await.map(drop)
    }

    /// Adds keys of another database, unless they are known; the last of them is used from now on. Servers that share heaps need each
    /// other's keys.
    pub async fn add(&self, keys: Vec<Vec<u8>>) -> Result<usize, RecordsError> {
        // Its own first key first, so that it is not the newest.
        let known = self.keys().await?;
        let new: Vec<_> = keys.into_iter().filter(|new| known.iter().all(|known| known.key != *new)).collect();
        let count = new.len();
        for key in new {
            self.records.add_server_key(self.purpose, key, Timestamp::now()).await?;
        }
        self.reload().await?;
        Ok(count)
    }

    fn cache(&self, keys: Vec<ServerKey>) -> Arc<[ServerKey]> {
        let keys: Arc<[ServerKey]> = keys.into();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Known { keys: keys.clone(), read_at: Instant::now() };
        keys
    }
}
