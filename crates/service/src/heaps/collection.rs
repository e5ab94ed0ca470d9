//! Garbage collection of heaps that were not used within their retention and that nothing refers to: on request of their owner, and every ten minutes by the server (`retention.rs`). What
//! refers to a heap is decided in `store/src/sqlite/heaps.rs` (`uses_heap`).

use super::Heaps;
use crate::error::blocking;
use crate::{Caller, ServiceError};
use heapstead_store::ListedHeap;
use heapstead_types::{HeapKey, Principal};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::SystemTime;

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

/// Parameters of one collection.
#[derive(Debug, Clone, Copy)]
struct Collecting<'a> {
    /// None if the server collects the heaps of all owners.
    owner: Option<&'a Principal>,
    request: CollectRequest,
    /// Heaps stored or used since then stay.
    since: Timestamp,
}

/// What happens to a heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    /// It is removed from this owner and stays for others.
    IsDisowned,
    IsRemoved,
}

impl Heaps<'_> {
    /// Removes the caller's heaps that are past their retention and that no tag, session, recent log entry or running execution refers to.
    pub async fn collect(&self, caller: &Caller, request: CollectRequest) -> Result<Collected, ServiceError> {
        let heaps = self.list_of(&caller.principal).await?;
        self.collect_from(heaps, Some(&caller.principal), request).await
    }

    /// As `collect`, for the heaps of all owners.
    pub(crate) async fn collect_all(&self) -> Result<Collected, ServiceError> {
        let heaps = self.list_all().await?;
        self.collect_from(heaps, None, CollectRequest::default()).await
    }

    async fn collect_from(
        &self,
        heaps: Vec<ListedHeap>,
        owner: Option<&Principal>,
        request: CollectRequest,
    ) -> Result<Collected, ServiceError> {
        let retained = SignedDuration::try_from(self.0.policy.retain_heaps).unwrap_or(SignedDuration::MAX);
        let since = Timestamp::now().checked_sub(retained).unwrap_or(Timestamp::MIN);
        let collecting = Collecting { owner, request, since };
        // Also those that other processes found.
        self.0.damaged.all().await;
        let mut collected = Collected::default();
        for heap in heaps {
            let mut fate = self.fate(&heap, collecting).await?;
            if fate != Fate::Stays && !request.dry_run {
                fate = self.carry_out(&heap, collecting).await?;
            }
            if fate == Fate::Stays {
                collected.kept += 1;
            } else {
                collected.removed.push(heap.key);
                collected.removed_bytes += heap.payload_bytes;
            }
        }
        Ok(collected)
    }

    async fn fate(&self, heap: &ListedHeap, collecting: Collecting<'_>) -> Result<Fate, ServiceError> {
        // A damaged heap is left for inspection.
        if self.0.damaged.known().contains(&heap.key) || self.in_use(heap, collecting).await? {
            return Ok(Fate::Stays);
        }
        if let Some(owner) = collecting.owner
            && self.0.records.others_have_heap(owner, heap.key).await?
        {
            return Ok(Fate::IsDisowned);
        }
        let (store, key, old_before) = (self.0.heaps.clone(), heap.key, SystemTime::from(collecting.since));
        blocking(move || {
            Ok(match store.describe(&key) {
                Ok(info) if info.stored_at < old_before => Fate::IsRemoved,
                // One that can't be described may be damaged, and is not removed.
                _ => Fate::Stays,
            })
        })
        .await
    }

    /// Whether a heap is in use: by its owner, or, if the heaps of all owners are collected or it has no owner, by any owner.
    async fn in_use(&self, heap: &ListedHeap, collecting: Collecting<'_>) -> Result<bool, ServiceError> {
        let Collecting { owner, request, since } = collecting;
        let (records, is_young) = (&self.0.records, heap.stored_at >= SystemTime::from(since));
        let is_known = records.knows_heap(heap.key).await?;
        if let (Some(owner), true) = (owner, is_known) {
            return Ok(
                records.owner_uses_heap(owner, heap.key, since).await? || (is_young && !records.others_have_heap(owner, heap.key).await?)
            );
        }
        Ok(is_young || records.uses_heap(heap.key, since).await? || !(is_known || request.unknown))
    }

    /// Disowns or removes the heap, unless it was stored or used again meanwhile.
    async fn carry_out(&self, heap: &ListedHeap, collecting: Collecting<'_>) -> Result<Fate, ServiceError> {
        // A run that is about to record this heap holds the read side. Waiting for it may take a while, so the fate is decided again.
        let _exclusive = self.0.storing.write().await;
        let fate = self.fate(heap, collecting).await?;
        match (fate, collecting.owner) {
            (Fate::IsDisowned, Some(owner)) => self.0.records.disown_heap(owner, heap.key).await?,
            (Fate::IsRemoved, _) => {
                let (store, key) = (self.0.heaps.clone(), heap.key);
                blocking(move || Ok(store.remove(&key)?)).await?;
                self.0.records.delete_heap(key).await?;
            }
            _ => {}
        }
        Ok(fate)
    }
}
