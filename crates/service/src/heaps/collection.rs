//! Garbage collection of heaps that were not used within their retention and that nothing refers to: on request of their owner, and every ten minutes by the server (`retention.rs`). What
//! refers to a heap is decided in `store/src/sqlite/heaps.rs` (`UNUSED`). Whether an owner's heap is collected does not depend on other owners, nor does
//! the time that it takes: its file goes afterwards.

use super::{Heaps, removal};
use crate::error::blocking;
use crate::{Caller, ServiceError};
use heapstead_store::records::{CollectedHeap, HeapRange};
use heapstead_store::{HeapStoreError, ListedHeap};
use heapstead_types::{HeapKey, Principal};
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::SystemTime;

/// Heaps that are looked up in one read.
const BATCH_HEAPS: u32 = 500;

/// What to collect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CollectRequest {
    /// Report what would be removed, and remove nothing.
    pub dry_run: bool,
    /// Also heaps that are not in this database. They may be another server's on the same store, so only callers without credentials see them.
    pub unknown: bool,
}

/// Result of a collection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Collected {
    /// Heaps that nothing refers to, removed unless it was a dry run.
    #[schemars(with = "Vec<String>")]
    pub removed: Vec<HeapKey>,
    pub removed_bytes: u64,
    pub kept: u64,
}

impl Heaps<'_> {
    /// Removes the caller's heaps that are past their retention and that no tag, session, recent log entry or running execution refers to.
    pub async fn collect(&self, caller: &Caller, request: CollectRequest) -> Result<Collected, ServiceError> {
        // Also those that other processes found.
        self.0.damaged.all().await;
        let mut collected = self.collect_of(&caller.principal, request).await?;
        if request.unknown && caller.principal.tenant().is_none() {
            self.collect_unowned(request, &mut collected).await?;
        }
        collected.removed.sort();
        Ok(collected)
    }

    /// As `collect`, for the heaps of all owners.
    pub(crate) async fn collect_all(&self) -> Result<(), ServiceError> {
        self.0.damaged.all().await;
        for owner in self.0.records.owners().await? {
            self.collect_of(&owner, CollectRequest::default()).await?;
        }
        Ok(())
    }

    async fn collect_of(&self, owner: &Principal, request: CollectRequest) -> Result<Collected, ServiceError> {
        let since = removal::since(self.0);
        let (mut collected, mut after, mut removals) = (Collected::default(), None, Vec::new());
        let all = self.0.records.count_heaps(owner).await?;
        loop {
            let range = HeapRange { after, limit: Some(BATCH_HEAPS) };
            let unused = self.0.records.unused_heaps(owner, since, range).await?;
            let Some(last) = unused.last() else { break };
            after = Some(last.key);
            for heap in unused {
                if !self.may_go(heap.key).await? {
                    continue;
                }
                if !request.dry_run {
                    match self.0.records.collect_heap(owner, heap.key, since).await? {
                        // It was stored or used again meanwhile.
                        CollectedHeap::Kept => continue,
                        CollectedHeap::Disowned => {}
                        CollectedHeap::Removing(removal) => removals.push(removal),
                    }
                }
                collected.removed.push(heap.key);
                collected.removed_bytes += heap.bytes;
            }
        }
        collected.kept = all.saturating_sub(collected.removed.len() as u64);
        removal::after_response(self.0, owner, removals).await?;
        Ok(collected)
    }

    /// Damaged heaps are left for inspection.
    async fn may_go(&self, key: HeapKey) -> Result<bool, ServiceError> {
        if self.0.damaged.known().contains(&key) {
            return Ok(false);
        }
        let store = self.0.heaps.clone();
        // One that can't be described may be damaged, and is not removed.
        blocking(move || Ok(matches!(store.describe(&key), Ok(_) | Err(HeapStoreError::NotFound { .. })))).await
    }

    /// Heaps in the store that are not in this database. This lists the whole store.
    async fn collect_unowned(&self, request: CollectRequest, collected: &mut Collected) -> Result<(), ServiceError> {
        let since = removal::since(self.0);
        for heap in self.unowned(None, None).await? {
            let is_young = heap.stored_at >= SystemTime::from(since);
            if is_young || self.0.damaged.known().contains(&heap.key) || self.0.records.uses_heap(heap.key, since).await? {
                collected.kept += 1;
                continue;
            }
            if self.may_go(heap.key).await? && (request.dry_run || self.remove_unowned(heap.key).await?) {
                collected.removed.push(heap.key);
                collected.removed_bytes += heap.payload_bytes;
            } else {
                collected.kept += 1;
            }
        }
        Ok(())
    }

    /// False if it is in this database by now.
    async fn remove_unowned(&self, key: HeapKey) -> Result<bool, ServiceError> {
        let stores = self.0.clone();
        removal::alone(self.0, async move {
            match stores.records.remove_unowned_heap(key).await? {
                Some(removal) => removal::carry_out(&stores, removal).await.map(|()| true),
                None => Ok(false),
            }
        })
        .await
    }

    /// Every heap in the store, in the order of their keys.
    pub(super) async fn list_all(&self) -> Result<Vec<ListedHeap>, ServiceError> {
        let store = self.0.heaps.clone();
        blocking(move || Ok(first_after(&store, None, usize::MAX)?)).await
    }

    /// The first heaps after a key that the store has and this database does not, in the order of their keys. Lists the whole store, and holds
    /// as many heaps in memory as it returns.
    pub(super) async fn unowned(&self, after: Option<HeapKey>, limit: Option<usize>) -> Result<Vec<ListedHeap>, ServiceError> {
        let (mut found, mut after) = (Vec::new(), after);
        loop {
            let room = limit.map_or(usize::MAX, |limit| limit - found.len());
            let (store, from) = (self.0.heaps.clone(), after);
            let listed = blocking(move || Ok(first_after(&store, from, room)?)).await?;
            let Some(last) = listed.last().filter(|_| room > 0) else { return Ok(found) };
            after = Some(last.key);
            let is_all = listed.len() < room;
            let mut unowned = self.0.records.unowned_heaps(listed.iter().map(|heap| heap.key).collect()).await?.into_iter().peekable();
            found.extend(listed.into_iter().filter(|heap| unowned.next_if_eq(&heap.key).is_some()));
            if is_all {
                return Ok(found);
            }
        }
    }
}

/// The first heaps of the store after a key, in the order of their keys.
fn first_after(store: &heapstead_store::HeapStore, after: Option<HeapKey>, count: usize) -> Result<Vec<ListedHeap>, HeapStoreError> {
    let mut first = std::collections::BTreeMap::new();
    store.list(&mut |heap| {
        if after.is_none_or(|after| heap.key > after) {
            first.insert(heap.key, heap);
            if first.len() > count {
                first.pop_last();
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(first.into_values().collect())
}
