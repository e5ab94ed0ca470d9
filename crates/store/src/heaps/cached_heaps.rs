//! Heaps of another store, with copies of those used last in a folder of this machine. The other store has the say: it is written first,
//! and asked for everything but bytes that are here and whole.
//!
//! Copies are files as [`FileHeaps`] writes them, but not synced; a file's time of change is when it was used last. Several processes may
//! share the folder.

use super::atomic_file;
use super::file_heaps::FileHeaps;
use super::heap_store::{HeapInfo, HeapStore, HeapStoreError, ListedHeap, StoredHeap};
use heapstead_types::{EngineId, HeapKey};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The share of the bound that is freed at once when it is reached, so that not every further heap has to look through the folder. Also how
/// much one process writes before it looks what others wrote meanwhile.
const SLACK_SHARE: u64 = 16;

#[derive(Clone)]
pub struct CachedHeaps {
    inner: Arc<dyn HeapStore>,
    copies: FileHeaps,
    bytes_max: u64,
    room: Arc<Mutex<Room>>,
}

/// How full the folder is, as far as this process knows.
#[derive(Debug, Default)]
struct Room {
    used_bytes: u64,
    /// What may be written before it has to be counted again.
    uncounted_bytes: u64,
}

impl CachedHeaps {
    /// Opens the folder, and makes it if it is missing. `max_mb` bounds the heaps in it.
    pub fn open(inner: Arc<dyn HeapStore>, folder: &Path, max_mb: u64) -> Result<Self, HeapStoreError> {
        let copies = FileHeaps::open_as_copies(folder)?;
        Ok(Self { inner, copies, bytes_max: max_mb.saturating_mul(1 << 20), room: Arc::default() })
    }

    /// A whole copy whose engine is known. Without its engine it is on its way in or out, or its engine never was known; then the store is asked.
    fn copy(&self, key: &HeapKey) -> Option<StoredHeap> {
        match self.copies.get(key) {
            Ok(heap) if heap.engine().is_some() => {
                // If it fails, the copy is gone, or seems older than it is.
                let _ = self.copies.touch(key);
                Some(heap)
            }
            Ok(_) | Err(HeapStoreError::NotFound { .. }) => None,
            Err(damaged @ HeapStoreError::Damaged { .. }) => {
                tracing::warn!("cached {damaged}: the copy is dropped");
                let _ = self.copies.remove(key);
                None
            }
            Err(error) => {
                tracing::warn!("the heap cache can't be read: {error}");
                None
            }
        }
    }

    /// Keeps a copy, if there is room for it at all. What fails here costs a download later, and nothing else.
    fn keep_copy(&self, key: &HeapKey, payload: &[u8], engine: &EngineId) {
        let keep = || {
            // Someone may have removed the folder to make space.
            atomic_file::make_folders(self.copies.folder())?;
            match self.make_room(payload.len() as u64)? {
                true => self.copies.put(key, payload, Some(engine)),
                false => Ok(()),
            }
        };
        if let Err(error) = keep() {
            tracing::warn!("the heap cache can't keep heap {key}: {error}");
        }
    }

    /// Removes the copies that were not used for longest until this one fits.
    fn make_room(&self, bytes: u64) -> Result<bool, HeapStoreError> {
        let slack_bytes = self.bytes_max / SLACK_SHARE;
        if bytes > self.bytes_max {
            return Ok(false);
        }
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        if room.uncounted_bytes < bytes || room.used_bytes + bytes > self.bytes_max {
            let goal = self.bytes_max.saturating_sub(bytes);
            room.used_bytes = self.shrink_to(goal, goal.saturating_sub(slack_bytes))?;
            room.uncounted_bytes = slack_bytes.max(bytes);
        }
        room.used_bytes += bytes;
        room.uncounted_bytes -= bytes;
        Ok(true)
    }

    /// If the copies have more bytes than `bytes_max`, removes the oldest until they have at most `goal_bytes`. Returns how many are left.
    fn shrink_to(&self, bytes_max: u64, goal_bytes: u64) -> Result<u64, HeapStoreError> {
        let mut copies = Vec::new();
        self.copies.list(&mut |copy| {
            copies.push(copy);
            ControlFlow::Continue(())
        })?;
        self.copies.tidy()?;
        let mut used_bytes = copies.iter().map(|copy| copy.payload_bytes).sum::<u64>();
        if used_bytes <= bytes_max {
            return Ok(used_bytes);
        }
        copies.sort_unstable_by_key(|copy| copy.stored_at);
        for copy in copies {
            if used_bytes <= goal_bytes {
                break;
            }
            self.copies.remove(&copy.key)?;
            used_bytes -= copy.payload_bytes;
        }
        Ok(used_bytes)
    }
}

impl HeapStore for CachedHeaps {
    fn backend(&self) -> &'static str {
        self.inner.backend()
    }

    fn get(&self, key: &HeapKey) -> Result<StoredHeap, HeapStoreError> {
        if let Some(copy) = self.copy(key) {
            return Ok(copy);
        }
        let heap = self.inner.get(key)?;
        if let Some(engine) = heap.engine() {
            self.keep_copy(key, heap.payload(), engine);
        }
        Ok(heap)
    }

    fn put(&self, key: &HeapKey, payload: &[u8], engine: Option<&EngineId>) -> Result<(), HeapStoreError> {
        self.inner.put(key, payload, engine)?;
        if let Some(engine) = engine {
            self.keep_copy(key, payload, engine);
        }
        Ok(())
    }

    fn describe(&self, key: &HeapKey) -> Result<HeapInfo, HeapStoreError> {
        self.inner.describe(key)
    }

    fn glance(&self, key: &HeapKey) -> Result<HeapInfo, HeapStoreError> {
        match self.copies.describe(key) {
            Ok(copy) if copy.engine.is_some() => Ok(copy),
            _ => self.inner.describe(key),
        }
    }

    fn list(&self, each: &mut dyn FnMut(ListedHeap) -> ControlFlow<()>) -> Result<(), HeapStoreError> {
        self.inner.list(each)
    }

    fn remove(&self, key: &HeapKey) -> Result<(), HeapStoreError> {
        self.inner.remove(key)?;
        if let Err(error) = self.copies.remove(key) {
            tracing::warn!("the heap cache can't drop heap {key}: {error}");
        }
        Ok(())
    }

    fn tidy(&self) -> Result<(), HeapStoreError> {
        self.inner.tidy()
    }

    /// A cache that does not work makes things slow, not wrong, so it is not asked.
    fn check(&self) -> Result<(), HeapStoreError> {
        self.inner.check()
    }

    fn until(&self, deadline: Instant) -> Arc<dyn HeapStore> {
        Arc::new(Self { inner: self.inner.until(deadline), ..self.clone() })
    }
}
