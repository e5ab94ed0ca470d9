//! Heaps as things: listed, shown, taken out, brought in, and collected when nothing refers to them any more.

use crate::executions::blocking;
use crate::record::iso_8601;
use crate::{Archive, ServiceError};
use heapstead_store::{HEADER_BYTES, HeapInfo, ListedHeap, StoredHeap, verify};
use heapstead_types::{EngineId, HeapKey};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::SystemTime;

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

/// What collecting found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Collected {
    /// Heaps that nothing refers to any more, removed unless it was a dry run.
    #[schemars(with = "Vec<String>")]
    pub removed: Vec<HeapKey>,
    pub removed_bytes: u64,
    pub kept: u64,
}

/// What becomes of heaps that this database never heard of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stray {
    Kept,
    Collected,
}

impl Archive {
    pub async fn heap(&self, key: HeapKey) -> Result<HeapSummary, ServiceError> {
        let store = self.0.heaps.clone();
        blocking(move || Ok(summary(store.describe(&key)?))).await
    }

    /// Heaps in the order of their keys, and whether there are more.
    pub async fn heaps(&self, after: Option<HeapKey>, limit: Option<u32>) -> Result<(Vec<HeapSummary>, bool), ServiceError> {
        let store = self.0.heaps.clone();
        let mut listed = self.list_heaps().await?;
        listed.retain(|heap| after.is_none_or(|after| heap.key > after));
        let more = limit.is_some_and(|limit| listed.len() > limit as usize);
        listed.truncate(limit.map_or(usize::MAX, |limit| limit as usize));
        blocking(move || {
            // One that is gone or damaged meanwhile is not listed.
            Ok((listed.iter().filter_map(|heap| store.describe(&heap.key).ok()).map(summary).collect(), more))
        })
        .await
    }

    /// Every heap in the store, in the order of their keys.
    async fn list_heaps(&self) -> Result<Vec<ListedHeap>, ServiceError> {
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
    pub async fn export_heap(&self, key: HeapKey) -> Result<StoredHeap, ServiceError> {
        let store = self.0.heaps.clone();
        blocking(move || Ok(store.get(&key)?)).await
    }

    /// Brings in a heap file as `export` wrote it. Everything that a read verifies is verified first.
    pub async fn import_heap(&self, file: Vec<u8>, engine: EngineId) -> Result<HeapKey, ServiceError> {
        let store = self.0.heaps.clone();
        blocking(move || {
            let digest = file.get(10..HEADER_BYTES).and_then(|digest| digest.try_into().ok());
            let key = HeapKey::from_digest(digest.unwrap_or_default());
            verify(&file, &key).map_err(|defect| ServiceError::BadInput(format!("`file` is not a heap: {defect}")))?;
            store.put(&key, file.get(HEADER_BYTES..).unwrap_or_default(), &engine)?;
            Ok(key)
        })
        .await
    }

    /// Removes heaps that are past their time and that no tag, no recent log entry and no running execution refers to.
    pub async fn collect_heaps(&self, dry_run: bool) -> Result<Collected, ServiceError> {
        self.collect(dry_run, Stray::Collected).await
    }

    /// As `collect_heaps`, without being asked: what this database never heard of may be another server's.
    pub(crate) async fn collect_own_heaps(&self) -> Result<Collected, ServiceError> {
        self.collect(false, Stray::Kept).await
    }

    async fn collect(&self, dry_run: bool, stray: Stray) -> Result<Collected, ServiceError> {
        let retained = SignedDuration::try_from(self.0.policy.retain_heaps).unwrap_or(SignedDuration::MAX);
        let since = Timestamp::now().checked_sub(retained).unwrap_or(Timestamp::MIN);
        let old_before: SystemTime = since.into();
        let mut collected = Collected::default();
        for heap in self.list_heaps().await? {
            let in_use = heap.stored_at >= old_before
                || self.0.metadata.heap_use(heap.key, since).await?.is_some()
                || (stray == Stray::Kept && !self.0.metadata.knows_heap(heap.key).await?);
            if in_use || (!dry_run && !self.remove_heap(heap.key, old_before).await?) {
                collected.kept += 1;
                continue;
            }
            collected.removed.push(heap.key);
            collected.removed_bytes += heap.payload_bytes;
        }
        Ok(collected)
    }

    /// Removes a heap, unless somebody stored it again meanwhile.
    async fn remove_heap(&self, key: HeapKey, old_before: SystemTime) -> Result<bool, ServiceError> {
        // A run that is about to record this very heap holds the other side of this lock.
        let _alone = self.0.storing.write().await;
        let store = self.0.heaps.clone();
        let removed = blocking(move || {
            match store.describe(&key) {
                Ok(info) if info.stored_at >= old_before => return Ok(false),
                Ok(_) => store.remove(&key)?,
                // What is damaged is left for inspection; what can't be told about is not ours to remove.
                Err(_) => return Ok(false),
            }
            Ok(true)
        });
        let removed = removed.await?;
        if removed {
            self.0.metadata.forget_heap(key).await?;
        }
        Ok(removed)
    }
}

fn summary(info: HeapInfo) -> HeapSummary {
    HeapSummary {
        heap: info.key,
        bytes: info.payload_bytes,
        stored_at: Timestamp::try_from(info.stored_at).map(iso_8601).unwrap_or_default(),
        engine: info.engine.map(|engine| engine.to_string()),
    }
}
