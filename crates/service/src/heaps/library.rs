//! The heaps of an owner: visibility, listing and export. What an owner sees is in its own records, whatever other owners have.

use super::Heaps;
use crate::error::blocking;
use crate::executions::{InputHeap, OnMissingHeap, StartPoint, iso_8601};
use crate::{Caller, ServiceError};
use heapstead_store::records::{FoundHeap, HeapRange, OwnedHeap, RecordedEngine};
use heapstead_store::{HeapInfo, HeapStoreError, OpenHeap};
use heapstead_types::{EngineId, HeapKey, Principal};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::sync::Arc;
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
    /// When you stored it last.
    pub stored_at: String,
    /// The engine that your run or import named; null if none was named.
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

/// A heap as a file. It was verified when it was opened, and is read piece by piece.
#[derive(Debug)]
pub struct ExportedHeap {
    heap: Arc<OpenHeap>,
    /// None if the caller's run or import named none.
    pub engine: Option<EngineId>,
}

impl ExportedHeap {
    /// The length of the file.
    pub fn bytes(&self) -> u64 {
        self.heap.file_bytes()
    }

    /// The next piece from `offset` on; empty at the end.
    pub async fn piece(&self, offset: u64) -> Result<Vec<u8>, ServiceError> {
        let heap = self.heap.clone();
        blocking(move || Ok(heap.piece(offset)?)).await
    }

    /// The whole file in memory, for commands.
    pub async fn read(&self) -> Result<Vec<u8>, ServiceError> {
        let mut file = Vec::new();
        while (file.len() as u64) < self.bytes() {
            file.extend(self.piece(file.len() as u64).await?);
        }
        Ok(file)
    }
}

/// Which heaps to list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListHeaps {
    pub after: Option<HeapKey>,
    pub limit: Option<u32>,
    /// Also heaps that are not in this database, for callers without credentials. The store is listed for that.
    pub unknown: bool,
}

impl Heaps<'_> {
    /// Whether a principal may see a heap: its own heaps, and for principals without credentials also heaps that nobody in this database has,
    /// such as those of another server on the same bucket.
    pub(crate) async fn is_visible(&self, principal: &Principal, key: HeapKey) -> Result<bool, ServiceError> {
        Ok(self.find(principal, key).await?.is_some())
    }

    /// A heap that the principal may see.
    async fn find(&self, principal: &Principal, key: HeapKey) -> Result<Option<VisibleHeap>, ServiceError> {
        let sees_unowned = principal.tenant().is_none();
        match self.0.records.find_heap(principal, key).await? {
            FoundHeap::Owned(heap) => return Ok(Some(VisibleHeap::Owned(heap))),
            FoundHeap::Unowned if sees_unowned => return Ok(Some(VisibleHeap::Unowned)),
            FoundHeap::Unowned | FoundHeap::OfOthers => {}
        }
        if sees_unowned {
            // A heap without an owner is also looked up in the store. This lookup takes the same time for a heap of another owner.
            let (store, decoy) = (self.0.heaps.for_owner(principal), HeapKey::from_digest(Sha256::digest(key.digest()).into()));
            let _ = blocking(move || Ok(store.glance(&decoy)?)).await;
        }
        Ok(None)
    }

    /// A heap that the caller may not see is not found.
    async fn require(&self, caller: &Caller, key: HeapKey) -> Result<VisibleHeap, ServiceError> {
        self.find(&caller.principal, key).await?.ok_or_else(|| HeapStoreError::NotFound { key }.into())
    }

    /// Refuses a run whose heap has to exist and does not. If the store can't say, the run is accepted and reports the store's error. Returns
    /// whether the heap is known to be visible to the caller.
    pub(crate) async fn refuse_missing(&self, caller: &Caller, from: StartPoint) -> Result<bool, ServiceError> {
        let StartPoint::Given(InputHeap::Heap { key, on_missing: OnMissingHeap::Fail }) = from else { return Ok(false) };
        self.require(caller, key).await?;
        let store = self.0.heaps.for_owner(&caller.principal).until(Instant::now() + GLANCE_MAX);
        match blocking(move || Ok(store.glance(&key)?)).await {
            Err(missing @ ServiceError::NotFound { .. }) => Err(missing),
            _ => Ok(true),
        }
    }

    /// A heap as its owner knows it. The store only tells whether it is there.
    pub async fn show(&self, caller: &Caller, key: HeapKey) -> Result<HeapSummary, ServiceError> {
        let found = self.require(caller, key).await?;
        let store = self.0.heaps.clone();
        let info = blocking(move || Ok(store.describe(&key)?)).await?;
        Ok(match found {
            VisibleHeap::Owned(heap) => owned_summary(heap, || info.label.engine),
            VisibleHeap::Unowned => summary(info),
        })
    }

    /// The caller's heaps, ordered by key. The cost is that of the page, unless heaps are requested that are not in this database.
    pub async fn list(&self, caller: &Caller, request: ListHeaps) -> Result<HeapList, ServiceError> {
        let ListHeaps { after, limit, unknown } = request;
        let (owned, mut has_more) = self.0.records.heaps(&caller.principal, HeapRange { after, limit }).await?;
        let unowned = match unknown && caller.principal.tenant().is_none() {
            // One more than the limit shows whether there are more.
            true => self.unowned(after, limit.map(|limit| limit as usize + 1)).await?,
            false => Vec::new(),
        };
        let store = self.0.heaps.clone();
        blocking(move || {
            let in_file = |key: &HeapKey| store.describe(key).ok().and_then(|info| info.label.engine);
            let mut heaps: Vec<_> = owned.into_iter().map(|heap| (heap.key, owned_summary(heap.clone(), || in_file(&heap.key)))).collect();
            // A heap that was deleted or damaged meanwhile is not listed.
            heaps.extend(unowned.iter().filter_map(|heap| store.describe(&heap.key).ok()).map(|info| (info.key, summary(info))));
            heaps.sort_unstable_by_key(|(key, _)| *key);
            let count = limit.map_or(usize::MAX, |limit| limit as usize);
            has_more |= heaps.len() > count;
            heaps.truncate(count);
            let next_cursor = heaps.last().filter(|_| has_more).map(|(key, _)| key.to_string());
            Ok(HeapList { heaps: heaps.into_iter().map(|(_, heap)| heap).collect(), next_cursor })
        })
        .await
    }

    /// The heap file, with the engine that the caller knows. It is verified before the first byte is returned: a damaged heap is an error, and
    /// never the beginning of a file.
    pub async fn export(&self, caller: &Caller, key: HeapKey) -> Result<ExportedHeap, ServiceError> {
        let found = self.require(caller, key).await?;
        let store = self.0.heaps.for_owner(&caller.principal);
        let read = blocking(move || Ok(store.open(&key))).await?;
        match &read {
            Ok(_) => self.0.damaged.remove(&[key]).await,
            Err(HeapStoreError::Damaged { defect, .. }) => self.0.damaged.add(key, &defect.to_string()).await,
            Err(_) => {}
        }
        let heap = read?;
        let engine = match found {
            VisibleHeap::Owned(owned) => owned.engine.or(heap.label().engine.as_ref()).cloned(),
            VisibleHeap::Unowned => heap.label().engine.clone(),
        };
        Ok(ExportedHeap { heap: Arc::new(heap), engine })
    }
}

/// A heap that a caller may see.
enum VisibleHeap {
    Owned(OwnedHeap),
    /// It is not in this database.
    Unowned,
}

/// What the owner's own record says. `in_file` is asked for heaps of earlier versions.
fn owned_summary(heap: OwnedHeap, in_file: impl FnOnce() -> Option<EngineId>) -> HeapSummary {
    let engine = match heap.engine {
        RecordedEngine::Known(engine) => engine,
        RecordedEngine::InFile => in_file(),
    };
    HeapSummary { heap: heap.key, bytes: heap.bytes, stored_at: iso_8601(heap.stored_at), engine: engine.map(|engine| engine.to_string()) }
}

fn summary(info: HeapInfo) -> HeapSummary {
    HeapSummary {
        heap: info.key,
        bytes: info.payload_bytes,
        stored_at: Timestamp::try_from(info.stored_at).map(iso_8601).unwrap_or_default(),
        engine: info.label.engine.map(|engine| engine.to_string()),
    }
}

pub fn parse_heap_key(parameter: &str, text: &str) -> Result<HeapKey, ServiceError> {
    text.parse()
        .map_err(|_| ServiceError::bad_value(parameter, format!("`{text}`"), "expected a heap key, which is 64 lowercase hex digits"))
}
