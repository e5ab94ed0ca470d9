//! Damaged heaps. They are left as they are, for inspection; health reports them until they are intact again or gone, also after a restart.

use heapstead_store::{Records, RecordsError};
use heapstead_types::HeapKey;
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most damaged heaps that are reported: with more, the disk is bad.
const REPORTED_MAX: usize = 100;

#[derive(Default)]
pub struct DamagedHeaps {
    /// Those that this process knows, so that reading an intact heap costs no query.
    known: Mutex<BTreeSet<HeapKey>>,
    records: Option<Arc<dyn Records>>,
}

impl DamagedHeaps {
    pub fn stored_in(records: Arc<dyn Records>) -> Self {
        Self { records: Some(records), ..Self::default() }
    }

    pub async fn add(&self, key: HeapKey, why: &str) {
        tracing::error!(%key, why, "a heap is damaged");
        let is_new = self.lock().len() < REPORTED_MAX && self.lock().insert(key);
        if let (true, Some(records)) = (is_new, &self.records) {
            log_error(records.add_damaged_heap(key, Timestamp::now()).await);
        }
    }

    /// They are intact, or gone.
    pub async fn remove(&self, keys: &[HeapKey]) {
        let known: Vec<_> = keys.iter().copied().filter(|key| self.lock().remove(key)).collect();
        if let (false, Some(records)) = (known.is_empty(), &self.records) {
            log_error(records.remove_damaged_heaps(known).await);
        }
    }

    /// All that are known, also from earlier processes and from others on the same database.
    pub async fn all(&self) -> Vec<HeapKey> {
        if let Some(records) = &self.records {
            match records.damaged_heaps(REPORTED_MAX).await {
                Ok(stored) => *self.lock() = stored.into_iter().collect(),
                Err(error) => log_error(Err(error)),
            }
        }
        self.known()
    }

    /// Those that this process knows.
    pub fn known(&self) -> Vec<HeapKey> {
        self.lock().iter().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<HeapKey>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Health checks the database itself, so an error here is only logged.
fn log_error(stored: Result<(), RecordsError>) {
    if let Err(error) = stored {
        tracing::warn!(%error, "records of damaged heaps can't be read or written");
    }
}
