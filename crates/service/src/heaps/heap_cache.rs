//! Heaps between store and engine: only signed ones are restored, and new ones are signed. They are verified once; recently used ones are
//! kept in memory.
//!
//! Owners with the same heap share its file, and nothing else. Each has its own place in the cache, because the time that restoring takes shows
//! whether a heap is cached, and what an owner said about the engine of a heap holds only for that owner.

use super::damaged::DamagedHeaps;
use crate::key_ring::KeyRing;
use heapstead_engine::{EngineInfo, HeapImage};
use heapstead_store::records::{FoundHeap, RecordedEngine};
use heapstead_store::{HeapInfo, HeapSigner, HeapStore, HeapStoreError, Records, RecordsError};
use heapstead_types::limits::{HEAPS_CACHED_MB_MAX, snapshot_mb_max};
use heapstead_types::{EngineId, Failure, HeapKey, Limits, Principal};
use lru::LruCache;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Total size of cached heaps. A run usually continues from the heap that the previous run produced, which then is not read.
pub const HOT_BYTES_MAX: u64 = HEAPS_CACHED_MB_MAX << 20;
/// Least time for the heap store: a busy disk must not fail a run that may compute for a second only.
const STORE_SECS_MIN: u32 = 5;
/// Time for a store that gives up at the deadline to report why.
const DEADLINE_GRACE: Duration = Duration::from_millis(250);

#[derive(Clone)]
pub struct HeapCache {
    store: HeapStore,
    engine: Arc<EngineInfo>,
    keys: Arc<KeyRing>,
    owner: Principal,
    /// What owners know about their heaps. None for a command that has no records.
    records: Option<Arc<dyn Records>>,
    hot: Arc<Mutex<Hot>>,
    damaged: Arc<DamagedHeaps>,
    looked_up: Arc<LookedUp>,
    deadline: Option<Instant>,
    /// The heap cap of the run that a heap is for.
    cap_mb: Option<u32>,
}

#[derive(Default)]
struct LookedUp {
    hits: AtomicU64,
    misses: AtomicU64,
}

struct Hot {
    heaps: LruCache<(Principal, HeapKey), (HeapInfo, HeapImage)>,
    bytes: u64,
}

impl HeapCache {
    /// For the user who started the process.
    pub fn new(store: HeapStore, engine: EngineInfo, keys: Arc<KeyRing>) -> Self {
        Self {
            store,
            engine: Arc::new(engine),
            keys,
            owner: Principal::local(),
            records: None,
            hot: Arc::new(Mutex::new(Hot { heaps: LruCache::unbounded(), bytes: 0 })),
            damaged: Arc::default(),
            looked_up: Arc::default(),
            deadline: None,
            cap_mb: None,
        }
    }

    /// Damaged heaps are reported there.
    pub fn reporting_to(self, damaged: Arc<DamagedHeaps>) -> Self {
        Self { damaged, ..self }
    }

    /// Owners have records of their heaps there.
    pub fn recorded_in(self, records: Arc<dyn Records>) -> Self {
        Self { records: Some(records), ..self }
    }

    /// The same cache, as another owner sees it.
    pub fn for_owner(&self, owner: &Principal) -> Self {
        Self { store: self.store.for_owner(owner), owner: owner.clone(), ..self.clone() }
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

    /// The same cache, for a run with this heap cap: a heap that can't fit into it is not loaded.
    pub fn for_cap(self, heap_mb: u32) -> Self {
        Self { cap_mb: Some(heap_mb), ..self }
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

    /// Restores a heap of the owner: verified, signed, and written by a compatible engine. If its owner does not know the engine, the V8
    /// version in its bytes decides.
    pub async fn restore(&self, key: HeapKey) -> Result<HeapImage, Failure> {
        let restored = self.in_time(self.restore_signed(key)).await;
        match &restored {
            Ok(_) => self.damaged.remove(&[key]).await,
            Err(Failure::HeapDamaged { why, .. }) => self.damaged.add(key, why).await,
            Err(_) => {}
        }
        restored
    }

    async fn restore_signed(&self, key: HeapKey) -> Result<HeapImage, Failure> {
        let keys = self.keys.keys().await.map_err(no_keys)?;
        let restored = self.restore_with(key, HeapSigner::new(&keys)).await;
        let Err(Failure::HeapUnsigned { .. }) = restored else { return restored };
        // Another process may have signed it with a new key.
        let now = self.keys.reload().await.map_err(no_keys)?;
        if now == keys { restored } else { self.restore_with(key, HeapSigner::new(&now)).await }
    }

    async fn restore_with(&self, key: HeapKey, signer: HeapSigner) -> Result<HeapImage, Failure> {
        let (this, with) = (self.clone(), signer.clone());
        if let Some(image) = blocking(move || this.restore_cached(key, &with)).await? {
            return Ok(image);
        }
        let (this, engine) = (self.clone(), self.recorded_engine(key).await?);
        blocking(move || this.restore_stored(key, &engine, &signer)).await
    }

    /// The image that this owner restored or stored before. It is used only while the store has the heap unchanged: a removed heap is not
    /// found, a damaged one fails.
    fn restore_cached(&self, key: HeapKey, signer: &HeapSigner) -> Result<Option<HeapImage>, Failure> {
        let info = self.store.glance(&key).map_err(store_failure)?;
        if signer.check(&key, &info.label).is_err() || self.check_fits(&info).is_err() {
            return Ok(None);
        }
        let found = self.hot().find(&self.owner, &info);
        let counter = if found.is_some() { &self.looked_up.hits } else { &self.looked_up.misses };
        counter.fetch_add(1, Relaxed);
        Ok(found)
    }

    /// What the owner's own record says about the engine of a heap. What is stored beside the file, another owner may have said.
    async fn recorded_engine(&self, key: HeapKey) -> Result<RecordedEngine, Failure> {
        let Some(records) = &self.records else { return Ok(RecordedEngine::InFile) };
        match records.find_heap(&self.owner, key).await {
            Ok(FoundHeap::Owned(heap)) => Ok(heap.engine),
            Ok(FoundHeap::Unowned) => Ok(RecordedEngine::InFile),
            Ok(FoundHeap::OfOthers) => Ok(RecordedEngine::Known(None)),
            Err(error) => Err(Failure::Store(error.to_string())),
        }
    }

    fn restore_stored(&self, key: HeapKey, engine: &RecordedEngine, signer: &HeapSigner) -> Result<HeapImage, Failure> {
        let mut info = self.store.glance(&key).map_err(store_failure)?;
        if signer.check(&key, &info.label).is_err() {
            // It may have been signed since the local copy was made.
            info = self.store.describe(&key).map_err(store_failure)?;
        }
        // The engine first, because a signature does not help a heap of another engine.
        self.check_engine(key, engine.or(info.label.engine.as_ref()))?;
        signer.check(&key, &info.label).map_err(|why| store_failure(HeapStoreError::Unsigned { key, why }))?;
        self.check_fits(&info)?;
        // Its label is checked again: it may have changed meanwhile.
        let heap = self.store.open_signed(&key, signer).map_err(store_failure)?;
        let engine = engine.or(heap.label().engine.as_ref());
        self.check_engine(key, engine)?;
        if engine.is_none() {
            let start = heap.start().map_err(store_failure)?;
            self.engine.check_payload(&start).map_err(|mismatch| Failure::HeapOfAnotherEngine { key, mismatch })?;
        }
        let image = HeapImage::from_pieces(|write| heap.read_payload(write));
        let image = image.map_err(|error| Failure::NoWorker(format!("memory for the heap: {error}")))?;
        if image.key() != key {
            return Err(Failure::HeapDamaged { key, why: "its file changed while it was read".into() });
        }
        // Described again, because reading it may have changed its time.
        if let Ok(info) = self.store.glance(&key) {
            self.hot().insert(&self.owner, info, image.clone());
        }
        Ok(image)
    }

    fn check_fits(&self, info: &HeapInfo) -> Result<(), Failure> {
        match self.cap_mb {
            Some(heap_mb) if info.payload_bytes > snapshot_mb_max(heap_mb) << 20 => Err(Failure::MemoryCap { heap_mb }),
            _ => Ok(()),
        }
    }

    fn check_engine(&self, key: HeapKey, writer: Option<&EngineId>) -> Result<(), Failure> {
        let Some(writer) = writer else { return Ok(()) };
        self.engine.check(writer).map_err(|mismatch| Failure::HeapOfAnotherEngine { key, mismatch })
    }

    /// The engine that heaps are restored in and produced by.
    pub fn engine_id(&self) -> &EngineId {
        &self.engine.id
    }

    /// Signs and stores a heap that a worker wrote, without a record. When this returns it survives a power failure.
    pub async fn store(&self, image: HeapImage) -> Result<HeapKey, Failure> {
        self.store_reserved(image, ()).await.map(|(key, ())| key)
    }

    /// As `store`, for a heap with a reservation, which is held until the write has ended, also if the caller stops waiting before.
    pub async fn store_reserved<R: Send + 'static>(&self, image: HeapImage, reservation: R) -> Result<(HeapKey, R), Failure> {
        let stored = async {
            let signer = HeapSigner::new(&self.keys.keys().await.map_err(no_keys)?);
            let this = self.clone();
            blocking(move || this.store_now(image, &signer).map(|key| (key, reservation))).await
        };
        self.in_time(stored).await
    }

    fn store_now(&self, image: HeapImage, signer: &HeapSigner) -> Result<HeapKey, Failure> {
        let key = image.key();
        let staged = self.store.stage(&key, |write| image.read_chunks(write)).map_err(store_failure)?;
        self.store.store(staged, &signer.label(&key, Some(self.engine.id.clone()))).map_err(store_failure)?;
        if let Ok(info) = self.store.glance(&key) {
            self.hot().insert(&self.owner, info, image);
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
    /// Valid also if another owner has stored the heap again meanwhile, which must not show.
    fn find(&mut self, owner: &Principal, info: &HeapInfo) -> Option<HeapImage> {
        let (known, image) = self.heaps.get_mut(&(owner.clone(), info.key))?;
        if info.may_be_damaged_since(known) {
            return None;
        }
        *known = info.clone();
        Some(image.clone())
    }

    fn insert(&mut self, owner: &Principal, info: HeapInfo, image: HeapImage) {
        self.bytes += image.length();
        if let Some((_, (_, replaced))) = self.heaps.push((owner.clone(), info.key), (info, image)) {
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
        HeapStoreError::Unsigned { key, why } => Failure::HeapUnsigned { key, why: why.to_string() },
        other => Failure::Store(other.to_string()),
    }
}

fn no_keys(error: RecordsError) -> Failure {
    Failure::Store(format!("the keys that heaps are signed with can't be read: {error}"))
}
