//! Heaps that were found damaged. They are left as they are, for inspection, and health tells of them until they are whole again or gone, also after
//! a restart.

use heapstead_store::{Metadata, MetadataError};
use heapstead_types::HeapKey;
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Damaged heaps that are told of: whoever has more knows that the disk is bad.
const TOLD_MAX: usize = 100;

#[derive(Default)]
pub struct Damaged {
    /// As far as this process knows, so that reading a whole heap costs nothing.
    known: Mutex<BTreeSet<HeapKey>>,
    /// What outlives it.
    kept_in: Option<Metadata>,
}

impl Damaged {
    pub fn kept_in(metadata: Metadata) -> Self {
        Self { kept_in: Some(metadata), ..Self::default() }
    }

    pub async fn note(&self, key: HeapKey, why: &str) {
        tracing::error!(%key, why, "a heap is damaged");
        let is_new = self.lock().len() < TOLD_MAX && self.lock().insert(key);
        if let (true, Some(metadata)) = (is_new, &self.kept_in) {
            tell(metadata.add_damaged_heap(key, Timestamp::now()).await);
        }
    }

    /// They are whole, or gone.
    pub async fn forget(&self, keys: &[HeapKey]) {
        let known: Vec<_> = keys.iter().copied().filter(|key| self.lock().remove(key)).collect();
        if let (false, Some(metadata)) = (known.is_empty(), &self.kept_in) {
            tell(metadata.remove_damaged_heaps(known).await);
        }
    }

    /// All that are known, also from earlier processes and from others on the same database.
    pub async fn all(&self) -> Vec<HeapKey> {
        if let Some(metadata) = &self.kept_in {
            match metadata.damaged_heaps(TOLD_MAX).await {
                Ok(kept) => *self.lock() = kept.into_iter().collect(),
                Err(error) => tell(Err(error)),
            }
        }
        self.known()
    }

    /// Those that this process knows without asking.
    pub fn known(&self) -> Vec<HeapKey> {
        self.lock().iter().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<HeapKey>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The database is watched for itself: what can't be kept now is told now, and forgotten with this process.
fn tell(kept: Result<(), MetadataError>) {
    if let Err(error) = kept {
        tracing::warn!(%error, "damaged heaps can't be kept in mind");
    }
}
