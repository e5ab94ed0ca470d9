//! Heaps between store and engine: verified once, recently used ones kept in memory.

use super::damaged::DamagedHeaps;
use heapstead_engine::{EngineInfo, HeapImage};
use heapstead_store::{HeapInfo, HeapStore, HeapStoreError};
use heapstead_types::{Failure, HeapKey, Limits};
use lru::LruCache;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Total size of cached heaps. A run usually continues from the heap that the previous run produced, which then is not read.
const HOT_BYTES_MAX: u64 = 256 << 20;
/// Least time for the heap store: a busy disk must not fail a run that may compute for a second only.
const STORE_SECS_MIN: u32 = 5;
/// Time for a store that gives up at the deadline to report why.
const DEADLINE_GRACE: Duration = Duration::from_millis(250);

#[derive(Clone)]
pub struct HeapCache {
    store: HeapStore,
    engine: EngineInfo,
    hot: Arc<Mutex<Hot>>,
    damaged: Arc<DamagedHeaps>,
    looked_up: Arc<LookedUp>,
    deadline: Option<Instant>,
}

#[derive(Default)]
struct LookedUp {
    hits: AtomicU64,
    misses: AtomicU64,
}

struct Hot {
    heaps: LruCache<HeapKey, (HeapInfo, HeapImage)>,
    bytes: u64,
}

impl HeapCache {
    pub fn new(store: HeapStore, engine: EngineInfo) -> Self {
        Self {
            store,
            engine,
            hot: Arc::new(Mutex::new(Hot { heaps: LruCache::unbounded(), bytes: 0 })),
            damaged: Arc::default(),
            looked_up: Arc::default(),
            deadline: None,
        }
    }

    /// Damaged heaps are reported there.
    pub fn reporting_to(self, damaged: Arc<DamagedHeaps>) -> Self {
        Self { damaged, ..self }
    }

    /// Cache hits and misses.
    pub fn looked_up(&self) -> (u64, u64) {
        (self.looked_up.hits.load(Relaxed), self.looked_up.misses.load(Relaxed))
    }

    /// The time that the store may take for a run with these limits.
    pub fn time_max(limits: &Limits) -> Duration {
        Duration::from_secs(limits.timeout_secs.max(STORE_SECS_MIN).into())
    }

    /// The same cache, for a caller that waits until then: a store that hangs must not delay a run beyond its time.
    pub fn until(&self, deadline: Instant) -> Self {
        Self { store: self.store.until(deadline), deadline: Some(deadline), ..self.clone() }
    }

    /// Damaged heaps that still exist. If the store does not answer within this time, all known ones.
    pub async fn damaged(&self, time_max: Duration) -> Vec<HeapKey> {
        let looked_at = tokio::time::timeout(time_max, self.still_damaged(Instant::now() + time_max)).await;
        looked_at.unwrap_or_else(|_| self.damaged.known())
    }

    async fn still_damaged(&self, deadline: Instant) -> Vec<HeapKey> {
        let (store, known) = (self.store.until(deadline), self.damaged.all().await);
        let looked_at = tokio::task::spawn_blocking(move || {
            known.into_iter().partition(|key| matches!(store.describe(key), Err(HeapStoreError::NotFound { .. })))
        });
        let (gone, left): (Vec<_>, Vec<_>) = looked_at.await.unwrap_or_default();
        self.damaged.remove(&gone).await;
        left
    }

    /// Restores a heap: verified, and written by a compatible engine. If its engine is not known, the V8 version in its bytes decides.
    pub async fn restore(&self, key: HeapKey) -> Result<HeapImage, Failure> {
        let this = self.clone();
        let restored = self.in_time(blocking(move || this.restore_now(key))).await;
        match &restored {
            Ok(_) => self.damaged.remove(&[key]).await,
            Err(Failure::HeapDamaged { why, .. }) => self.damaged.add(key, why).await,
            Err(_) => {}
        }
        restored
    }

    fn restore_now(&self, key: HeapKey) -> Result<HeapImage, Failure> {
        // A cached heap is used only while the store has it unchanged: a removed heap is not found, a damaged one fails.
        let info = self.store.glance(&key).map_err(store_failure)?;
        if let Some(writer) = &info.engine {
            self.engine.check(writer).map_err(|mismatch| Failure::HeapOfAnotherEngine { key, mismatch })?;
        }
        if let Some(image) = self.hot().find(&info) {
            self.looked_up.hits.fetch_add(1, Relaxed);
            return Ok(image);
        }
        self.looked_up.misses.fetch_add(1, Relaxed);
        let heap = self.store.get(&key).map_err(store_failure)?;
        if heap.engine().is_none() {
            self.engine.check_payload(heap.payload()).map_err(|mismatch| Failure::HeapOfAnotherEngine { key, mismatch })?;
        }
        let image = HeapImage::from_payload(heap.payload()).map_err(|error| Failure::NoWorker(format!("memory for the heap: {error}")))?;
        // Described again, because reading it may have changed its time.
        if let Ok(info) = self.store.glance(&key) {
            self.hot().insert(info, image.clone());
        }
        Ok(image)
    }

    /// Stores a heap. When this returns it survives a power failure.
    pub async fn store(&self, image: HeapImage) -> Result<HeapKey, Failure> {
        let this = self.clone();
        self.in_time(blocking(move || this.store_now(image))).await
    }

    fn store_now(&self, image: HeapImage) -> Result<HeapKey, Failure> {
        let key = image.key();
        let payload = image.payload().map_err(|error| Failure::Store(format!("the new heap can't be read back: {error}")))?;
        self.store.put(&key, &payload, Some(&self.engine.id)).map_err(store_failure)?;
        if let Ok(info) = self.store.glance(&key) {
            self.hot().insert(info, image);
        }
        Ok(key)
    }

    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let Some(deadline) = self.deadline else { return answer.await };
        let late = || Failure::Store("the heap store did not answer in the time that was left for the run".into());
        tokio::time::timeout_at((deadline + DEADLINE_GRACE).into(), answer).await.unwrap_or_else(|_| Err(late()))
    }

    fn hot(&self) -> MutexGuard<'_, Hot> {
        self.hot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hot {
    fn find(&mut self, info: &HeapInfo) -> Option<HeapImage> {
        self.heaps.get(&info.key).filter(|(known, _)| known == info).map(|(_, image)| image.clone())
    }

    fn insert(&mut self, info: HeapInfo, image: HeapImage) {
        self.bytes += image.length();
        if let Some((_, (_, replaced))) = self.heaps.push(info.key, (info, image)) {
            self.bytes -= replaced.length();
        }
        while self.bytes > HOT_BYTES_MAX
            && let Some((_, (_, coldest))) = self.heaps.pop_lru()
        {
            self.bytes -= coldest.length();
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Failure::Store(error.to_string())))
}

fn store_failure(error: HeapStoreError) -> Failure {
    match error {
        HeapStoreError::NotFound { key } => Failure::HeapNotFound { key },
        HeapStoreError::Damaged { key, defect } => Failure::HeapDamaged { key, why: defect.to_string() },
        other => Failure::Store(other.to_string()),
    }
}
