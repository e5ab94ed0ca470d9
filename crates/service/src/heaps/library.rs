//! The heaps of an owner: visibility, listing, import and export.

use super::Heaps;
use crate::error::blocking;
use crate::executions::{InputHeap, OnMissingHeap, StartPoint, iso_8601};
use crate::{Caller, ServiceError};
use heapstead_engine::EngineInfo;
use heapstead_store::{HEADER_BYTES, HeapInfo, HeapStore, HeapStoreError, ListedHeap, StoredHeap, verify};
use heapstead_types::{EngineId, ErrorCode, HeapKey, Principal};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How long accepting a run waits for the store to say whether its heap exists.
const GLANCE_MAX: Duration = Duration::from_secs(5);

/// A heap in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeapSummary {
    #[schemars(schema_with = "crate::schema::heap_key")]
    pub heap: HeapKey,
    /// Bytes of the snapshot.
    pub bytes: u64,
    pub stored_at: String,
    /// The engine that wrote it; null if not known.
    pub engine: Option<String>,
}

/// Heaps, ordered by key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeapList {
    pub heaps: Vec<HeapSummary>,
    /// Pass this as `cursor` to get the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The key of a heap that was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ImportedHeap {
    pub heap: HeapKey,
}

impl Heaps<'_> {
    /// Whether a principal may see a heap: its own heaps, and for principals without credentials also heaps that nobody in this database has,
    /// such as those of another server on the same bucket.
    pub(crate) async fn is_visible(&self, principal: &Principal, key: HeapKey) -> Result<bool, ServiceError> {
        if !self.visible(principal, vec![key]).await?.is_empty() {
            return Ok(true);
        }
        if principal.tenant().is_none() {
            // A heap without an owner is also looked up in the store. This lookup takes the same time for a heap of another owner.
            let (store, decoy) = (self.0.heaps.clone(), HeapKey::from_digest(Sha256::digest(key.digest()).into()));
            let _ = blocking(move || Ok(store.glance(&decoy)?)).await;
        }
        Ok(false)
    }

    async fn visible(&self, principal: &Principal, keys: Vec<HeapKey>) -> Result<Vec<HeapKey>, ServiceError> {
        Ok(self.0.records.owned_heaps(principal, keys, principal.tenant().is_none()).await?)
    }

    /// A heap that the caller may not see is not found.
    async fn check_visible(&self, caller: &Caller, key: HeapKey) -> Result<(), ServiceError> {
        match self.is_visible(&caller.principal, key).await? {
            true => Ok(()),
            false => Err(HeapStoreError::NotFound { key }.into()),
        }
    }

    /// Refuses a run whose heap has to exist and does not. If the store can't say, the run is accepted and reports the store's error. Returns
    /// whether the heap is known to be visible to the caller.
    pub(crate) async fn refuse_missing(&self, caller: &Caller, from: StartPoint) -> Result<bool, ServiceError> {
        let StartPoint::Given(InputHeap::Heap { key, on_missing: OnMissingHeap::Fail }) = from else { return Ok(false) };
        self.check_visible(caller, key).await?;
        let store = self.0.heaps.until(Instant::now() + GLANCE_MAX);
        match blocking(move || Ok(store.glance(&key)?)).await {
            Err(missing @ ServiceError::NotFound { .. }) => Err(missing),
            _ => Ok(true),
        }
    }

    pub async fn show(&self, caller: &Caller, key: HeapKey) -> Result<HeapSummary, ServiceError> {
        self.check_visible(caller, key).await?;
        let store = self.0.heaps.clone();
        blocking(move || Ok(summary(store.describe(&key)?))).await
    }

    /// The caller's heaps, ordered by key.
    pub async fn list(&self, caller: &Caller, after: Option<HeapKey>, limit: Option<u32>) -> Result<HeapList, ServiceError> {
        let store = self.0.heaps.clone();
        let mut listed = self.list_of(&caller.principal).await?;
        listed.retain(|heap| after.is_none_or(|after| heap.key > after));
        let has_more = limit.is_some_and(|limit| listed.len() > limit as usize);
        listed.truncate(limit.map_or(usize::MAX, |limit| limit as usize));
        blocking(move || {
            // A heap that was deleted or damaged meanwhile is not listed.
            let heaps: Vec<_> = listed.iter().filter_map(|heap| store.describe(&heap.key).ok()).map(summary).collect();
            let next_cursor = heaps.last().filter(|_| has_more).map(|last| last.heap.to_string());
            Ok(HeapList { heaps, next_cursor })
        })
        .await
    }

    /// Every heap of an owner that is in the store, in the order of their keys.
    pub(super) async fn list_of(&self, principal: &Principal) -> Result<Vec<ListedHeap>, ServiceError> {
        let mut heaps = self.list_all().await?;
        let seen: HashSet<_> = self.visible(principal, heaps.iter().map(|heap| heap.key).collect()).await?.into_iter().collect();
        heaps.retain(|heap| seen.contains(&heap.key));
        Ok(heaps)
    }

    pub(super) async fn list_all(&self) -> Result<Vec<ListedHeap>, ServiceError> {
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

    /// The heap file, verified.
    pub async fn export(&self, caller: &Caller, key: HeapKey) -> Result<StoredHeap, ServiceError> {
        self.check_visible(caller, key).await?;
        let store = self.0.heaps.clone();
        let read = blocking(move || Ok(store.get(&key))).await?;
        match &read {
            Ok(_) => self.0.damaged.remove(&[key]).await,
            Err(HeapStoreError::Damaged { defect, .. }) => self.0.damaged.add(key, &defect.to_string()).await,
            Err(_) => {}
        }
        Ok(read?)
    }

    /// Stores a heap file as `export` returned it, after verifying it. If its engine is not known, the V8 version inside decides when it is used.
    pub async fn import(&self, caller: &Caller, file: Vec<u8>, engine: Option<EngineId>) -> Result<ImportedHeap, ServiceError> {
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
            // The engine of a heap that exists already can't be changed.
            let known = known_engine(&store, &key)?.filter(|known| check_written_by(known, payload).is_ok());
            store.put(&key, payload, known.or(engine).as_ref())?;
            Ok(key)
        });
        // It must not be collected before it is recorded.
        let _storing = self.0.storing.read().await;
        let key = stored.await?;
        self.0.records.own_heap(&caller.principal, key, bytes, Timestamp::now()).await?;
        Ok(ImportedHeap { heap: key })
    }

    /// Refuses to store this many more bytes if the owner's quota would be exceeded.
    pub(crate) async fn check_quota(&self, principal: &Principal, bytes: u64) -> Result<(), ServiceError> {
        let Some(max) = self.0.policy.quotas.heap_bytes_max else { return Ok(()) };
        let has = self.0.records.heap_bytes(principal).await?;
        if has.saturating_add(bytes) <= max { Ok(()) } else { Err(ServiceError::busy(ErrorCode::HeapQuotaExceeded, quota_text(max))) }
    }
}

/// Checks that the V8 version in a snapshot is that of the engine.
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

/// The engine of a heap that exists already.
fn known_engine(store: &HeapStore, key: &HeapKey) -> Result<Option<EngineId>, HeapStoreError> {
    match store.describe(key) {
        Ok(heap) => Ok(heap.engine),
        Err(HeapStoreError::NotFound { .. } | HeapStoreError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn quota_text(max: u64) -> String {
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

pub fn parse_heap_key(parameter: &str, text: &str) -> Result<HeapKey, ServiceError> {
    text.parse()
        .map_err(|_| ServiceError::bad_value(parameter, format!("`{text}`"), "expected a heap key, which is 64 lowercase hex digits"))
}
