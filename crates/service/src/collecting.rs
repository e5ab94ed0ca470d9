//! Heaps that nothing refers to any more, collected: on request of their owner, and by the server itself.

use crate::executions::blocking;
use crate::{Archive, Caller, ServiceError};
use heapstead_store::ListedHeap;
use heapstead_types::{HeapKey, Principal};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::SystemTime;

/// What to collect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CollectRequest {
    /// Only tell what would be removed.
    pub dry_run: bool,
    /// Also what this database never heard of, which may be another server's on the same store. Such heaps are nobody's but those callers' who
    /// need no credentials.
    pub unknown: bool,
}

/// What collecting found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Collected {
    /// Heaps that nothing refers to any more, removed unless it was a dry run.
    #[schemars(with = "Vec<String>")]
    pub removed: Vec<HeapKey>,
    pub removed_bytes: u64,
    pub kept: u64,
}

/// For whom heaps are collected, and which.
#[derive(Debug, Clone, Copy)]
struct Collecting<'a> {
    /// None when nobody asked.
    owner: Option<&'a Principal>,
    request: CollectRequest,
    /// What was stored or used since then stays.
    since: Timestamp,
}

/// What becomes of a heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    /// It stays for others who have it too.
    IsDisowned,
    IsRemoved,
}

impl Archive {
    /// Removes the caller's heaps that are past their time and that no tag, no session, no recent log entry and no running execution refers to.
    pub async fn collect_heaps(&self, caller: &Caller, request: CollectRequest) -> Result<Collected, ServiceError> {
        let heaps = self.list_heaps(&caller.principal).await?;
        self.collect(heaps, Some(&caller.principal), request).await
    }

    /// As `collect_heaps`, of everybody's heaps and without being asked.
    pub(crate) async fn collect_own_heaps(&self) -> Result<Collected, ServiceError> {
        let heaps = self.list_all_heaps().await?;
        self.collect(heaps, None, CollectRequest::default()).await
    }

    async fn collect(&self, heaps: Vec<ListedHeap>, owner: Option<&Principal>, request: CollectRequest) -> Result<Collected, ServiceError> {
        let retained = SignedDuration::try_from(self.0.policy.retain_heaps).unwrap_or(SignedDuration::MAX);
        let since = Timestamp::now().checked_sub(retained).unwrap_or(Timestamp::MIN);
        let collecting = Collecting { owner, request, since };
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
        if self.in_use(heap, collecting).await? {
            return Ok(Fate::Stays);
        }
        if let Some(owner) = collecting.owner
            && self.0.metadata.others_have_heap(owner, heap.key).await?
        {
            return Ok(Fate::IsDisowned);
        }
        let (store, key, old_before) = (self.0.heaps.clone(), heap.key, SystemTime::from(collecting.since));
        blocking(move || {
            Ok(match store.describe(&key) {
                Ok(info) if info.stored_at < old_before => Fate::IsRemoved,
                // What is damaged is left for inspection; what can't be told about is not ours to remove.
                _ => Fate::Stays,
            })
        })
        .await
    }

    /// Whether a heap has to stay: for its owner, or, where nobody is asking or nobody made it, for anybody.
    async fn in_use(&self, heap: &ListedHeap, collecting: Collecting<'_>) -> Result<bool, ServiceError> {
        let Collecting { owner, request, since } = collecting;
        let (metadata, is_young) = (&self.0.metadata, heap.stored_at >= SystemTime::from(since));
        let is_known = metadata.knows_heap(heap.key).await?;
        if let (Some(owner), true) = (owner, is_known) {
            return Ok(metadata.owner_uses_heap(owner, heap.key, since).await?
                || (is_young && !metadata.others_have_heap(owner, heap.key).await?));
        }
        Ok(is_young || metadata.uses_heap(heap.key, since).await? || !(is_known || request.unknown))
    }

    /// Does it, unless somebody stored or used the heap again meanwhile.
    async fn carry_out(&self, heap: &ListedHeap, collecting: Collecting<'_>) -> Result<Fate, ServiceError> {
        // A run that is about to record this very heap holds the other side of this lock. Taking it may have taken a while.
        let _alone = self.0.storing.write().await;
        let fate = self.fate(heap, collecting).await?;
        match (fate, collecting.owner) {
            (Fate::IsDisowned, Some(owner)) => self.0.metadata.disown_heap(owner, heap.key).await?,
            (Fate::IsRemoved, _) => {
                let (store, key) = (self.0.heaps.clone(), heap.key);
                blocking(move || Ok(store.remove(&key)?)).await?;
                self.0.metadata.forget_heap(key).await?;
            }
            _ => {}
        }
        Ok(fate)
    }
}
