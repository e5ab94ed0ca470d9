//! Heaps as things: listed, shown, taken out and brought in.

use crate::executions::blocking;
use crate::origin::{OnMissingHeap, Origin, StartsFrom};
use crate::record::iso_8601;
use crate::{Archive, Caller, ServiceError};
use heapstead_engine::EngineInfo;
use heapstead_store::{HEADER_BYTES, HeapInfo, HeapStore, HeapStoreError, ListedHeap, StoredHeap, verify};
use heapstead_types::{EngineId, HeapKey, Principal};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How long a run that needs its heap waits to hear whether it is there.
const GLANCE_MAX: Duration = Duration::from_secs(5);

/// A heap in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeapSummary {
    #[schemars(schema_with = "crate::schema::heap_key")]
    pub heap: HeapKey,
    /// Bytes of the snapshot.
    pub bytes: u64,
    pub stored_at: String,
    /// The engine that wrote it; null when that is not known.
    pub engine: Option<String>,
}

impl Archive {
    /// Whether a heap is an owner's. One that nobody on this database ever made, such as another server's on the same bucket, is everybody's who
    /// needs no credentials.
    pub(crate) async fn sees_heap(&self, principal: &Principal, key: HeapKey) -> Result<bool, ServiceError> {
        if !self.seen_heaps(principal, vec![key]).await?.is_empty() {
            return Ok(true);
        }
        if principal.tenant().is_none() {
            // The store is asked in vain for what nobody made. What somebody else did has to take as long.
            let (store, in_vain) = (self.0.heaps.clone(), HeapKey::from_digest(Sha256::digest(key.digest()).into()));
            let _ = blocking(move || Ok(store.glance(&in_vain)?)).await;
        }
        Ok(false)
    }

    async fn seen_heaps(&self, principal: &Principal, keys: Vec<HeapKey>) -> Result<Vec<HeapKey>, ServiceError> {
        Ok(self.0.metadata.owned_heaps(principal, keys, principal.tenant().is_none()).await?)
    }

    /// A heap that is not the caller's is not there.
    async fn check_seen(&self, caller: &Caller, key: HeapKey) -> Result<(), ServiceError> {
        match self.sees_heap(&caller.principal, key).await? {
            true => Ok(()),
            false => Err(HeapStoreError::NotFound { key }.into()),
        }
    }

    /// Refuses what goes on from a heap that has to be there and is not. A store that can't tell refuses nothing: the run says what is wrong with it.
    pub(crate) async fn refuse_missing(&self, caller: &Caller, from: StartsFrom) -> Result<(), ServiceError> {
        let StartsFrom::Given(Origin::Heap { key, on_missing: OnMissingHeap::Fail }) = from else { return Ok(()) };
        self.check_seen(caller, key).await?;
        let store = self.0.heaps.until(Instant::now() + GLANCE_MAX);
        match blocking(move || Ok(store.glance(&key)?)).await {
            Err(missing @ ServiceError::NotFound { .. }) => Err(missing),
            _ => Ok(()),
        }
    }

    pub async fn heap(&self, caller: &Caller, key: HeapKey) -> Result<HeapSummary, ServiceError> {
        self.check_seen(caller, key).await?;
        let store = self.0.heaps.clone();
        blocking(move || Ok(summary(store.describe(&key)?))).await
    }

    /// The caller's heaps in the order of their keys, and whether there are more.
    pub async fn heaps(
        &self,
        caller: &Caller,
        after: Option<HeapKey>,
        limit: Option<u32>,
    ) -> Result<(Vec<HeapSummary>, bool), ServiceError> {
        let store = self.0.heaps.clone();
        let mut listed = self.list_heaps(&caller.principal).await?;
        listed.retain(|heap| after.is_none_or(|after| heap.key > after));
        let more = limit.is_some_and(|limit| listed.len() > limit as usize);
        listed.truncate(limit.map_or(usize::MAX, |limit| limit as usize));
        blocking(move || {
            // One that is gone or damaged meanwhile is not listed.
            Ok((listed.iter().filter_map(|heap| store.describe(&heap.key).ok()).map(summary).collect(), more))
        })
        .await
    }

    /// Every heap of an owner that is in the store, in the order of their keys.
    pub(crate) async fn list_heaps(&self, principal: &Principal) -> Result<Vec<ListedHeap>, ServiceError> {
        let mut heaps = self.list_all_heaps().await?;
        let seen: HashSet<_> = self.seen_heaps(principal, heaps.iter().map(|heap| heap.key).collect()).await?.into_iter().collect();
        heaps.retain(|heap| seen.contains(&heap.key));
        Ok(heaps)
    }

    pub(crate) async fn list_all_heaps(&self) -> Result<Vec<ListedHeap>, ServiceError> {
        let store = self.0.heaps.clone();
        blocking(move || {
            let mut heaps = Vec::new();
            store.list(&mut |heap| {
                heaps.push(heap);
                ControlFlow::Continue(())
            })?;
            heaps.sort_by_key(|heap| heap.key);
            Ok(heaps)
        })
        .await
    }

    /// A heap with everything that a read verifies verified.
    pub async fn export_heap(&self, caller: &Caller, key: HeapKey) -> Result<StoredHeap, ServiceError> {
        self.check_seen(caller, key).await?;
        let store = self.0.heaps.clone();
        let read = blocking(move || Ok(store.get(&key))).await?;
        match &read {
            Ok(_) => self.0.damaged.forget(&[key]).await,
            Err(HeapStoreError::Damaged { defect, .. }) => self.0.damaged.note(key, &defect.to_string()).await,
            Err(_) => {}
        }
        Ok(read?)
    }

    /// Brings in a heap file as `export` wrote it. Everything that a read verifies is verified first. A heap whose engine is not known is judged when
    /// it is read, by the version of V8 in it.
    pub async fn import_heap(&self, caller: &Caller, file: Vec<u8>, engine: Option<EngineId>) -> Result<HeapKey, ServiceError> {
        let bytes = file.len().saturating_sub(HEADER_BYTES) as u64;
        self.check_quota(&caller.principal, bytes).await?;
        let digest = file.get(10..HEADER_BYTES).and_then(|digest| digest.try_into().ok());
        let key = HeapKey::from_digest(digest.unwrap_or_default());
        let store = self.0.heaps.clone();
        let stored = blocking(move || {
            verify(&file, &key).map_err(|defect| ServiceError::BadInput(format!("`file` is not a heap: {defect}")))?;
            let payload = file.get(HEADER_BYTES..).unwrap_or_default();
            if let Some(engine) = &engine {
                check_written_by(engine, payload)?;
            }
            // Whoever has it already can't be told anew which engine it is of.
            let known = known_engine(&*store, &key)?.filter(|known| check_written_by(known, payload).is_ok());
            store.put(&key, payload, known.or(engine).as_ref())?;
            Ok(key)
        });
        // Nobody may collect it before somebody has it.
        let _storing = self.0.storing.read().await;
        let key = stored.await?;
        self.0.metadata.own_heap(&caller.principal, key, bytes, Timestamp::now()).await?;
        Ok(key)
    }

    /// Whether an owner may have this much more.
    pub(crate) async fn check_quota(&self, principal: &Principal, bytes: u64) -> Result<(), ServiceError> {
        let Some(max) = self.0.policy.quotas.heap_bytes_max else { return Ok(()) };
        let has = self.0.metadata.heap_bytes(principal).await?;
        if has.saturating_add(bytes) <= max { Ok(()) } else { Err(ServiceError::Busy(quota_text(max))) }
    }
}

/// Whether a snapshot says itself that it is of the V8 that this engine has.
fn check_written_by(engine: &EngineId, payload: &[u8]) -> Result<(), ServiceError> {
    let named = EngineInfo { id: engine.clone(), natives: Vec::new() };
    named.check_payload(payload).map_err(|mismatch| {
        ServiceError::bad_value(
            "engine",
            format!("`{engine}`"),
            format!("the heap itself says that it was written by engine {}", mismatch.heap),
        )
    })
}

/// Which engine wrote a heap that is there already.
fn known_engine(store: &dyn HeapStore, key: &HeapKey) -> Result<Option<EngineId>, HeapStoreError> {
    match store.describe(key) {
        Ok(heap) => Ok(heap.engine),
        Err(HeapStoreError::NotFound { .. } | HeapStoreError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

pub fn quota_text(max: u64) -> String {
    format!("your heaps would take up more than {} MB, which is as much as an owner may have: collect old ones", max >> 20)
}

fn summary(info: HeapInfo) -> HeapSummary {
    HeapSummary {
        heap: info.key,
        bytes: info.payload_bytes,
        stored_at: Timestamp::try_from(info.stored_at).map(iso_8601).unwrap_or_default(),
        engine: info.engine.map(|engine| engine.to_string()),
    }
}
