//! Contexts in the memory of one process: exact LRU order, sliding TTL and a memory limit. With a backing, contexts are flushed and loaded
//! again. If there are several owners, the one that has the most is evicted from first, so that it does not evict the contexts of others.

mod flush;
mod held;
mod owners;

pub use flush::{FLUSH_EVERY_DEFAULT, Flusher, Loaded};

use super::{Backing, ContextStore, Pending, SESSIONS_MAX_DEFAULT, Stats, TTL_DEFAULT};
use crate::{Access, Clock, Document, SystemClock};
use held::Held;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Clone)]
pub struct MemorySettings {
    pub ttl: Duration,
    /// Above this number, the owner with the most contexts loses its least recently used one.
    pub sessions_max: usize,
    /// Above this limit, the oldest fifth is evicted. With several owners, those with the most memory lose theirs, until a fifth is free.
    pub memory_bytes_max: usize,
    pub clock: Arc<dyn Clock>,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { ttl: TTL_DEFAULT, sessions_max: SESSIONS_MAX_DEFAULT, memory_bytes_max: 512 << 20, clock: Arc::new(SystemClock) }
    }
}

pub struct Memory {
    clock: Arc<dyn Clock>,
    held: Mutex<Held>,
    backing: Option<Arc<dyn Backing>>,
    /// Held during a flush and a removal: a session removed during a flush would come back.
    flushing: tokio::sync::Mutex<()>,
}

impl Memory {
    /// A store without a backing: its contexts are lost when the process exits.
    pub fn new(settings: MemorySettings) -> Self {
        Self::with(settings, None)
    }

    fn with(settings: MemorySettings, backing: Option<Arc<dyn Backing>>) -> Self {
        let clock = settings.clock.clone();
        Self { clock, held: Mutex::new(Held::new(&settings, backing.is_some())), backing, flushing: tokio::sync::Mutex::new(()) }
    }

    /// The newest quarantined documents.
    pub fn quarantined(&self) -> Vec<Document> {
        self.held().aside.iter().cloned().collect()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn remove_everywhere(&self, access: Access<'_>) -> bool {
        let Some(backing) = &self.backing else { return self.held().remove(access.session, self.clock.now()) };
        let _no_flush = self.flushing.lock().await;
        let was_there = self.held().remove(access.session, self.clock.now());
        // The removal stays noted for the next flush until the backing has removed it too.
        match backing.remove(access).await {
            Ok(_) => self.held().forget_removal(access.session),
            Err(error) => tracing::warn!(%error, "a cleared context is still in the database until the next flush"),
        }
        was_there
    }
}

impl ContextStore for Memory {
    fn backend(&self) -> &'static str {
        "memory"
    }

    fn read<'a>(&'a self, access: Access<'a>) -> Pending<'a, Option<Document>> {
        Box::pin(async move { Ok(self.held().read(access, self.clock.now())) })
    }

    fn replace<'a>(&'a self, access: Access<'a>, expected: Option<&'a Document>, new: &'a Document) -> Pending<'a, bool> {
        Box::pin(async move { self.held().replace(access, expected, new, self.clock.now()) })
    }

    fn remove<'a>(&'a self, access: Access<'a>) -> Pending<'a, bool> {
        Box::pin(async move { Ok(self.remove_everywhere(access).await) })
    }

    fn quarantine<'a>(&'a self, access: Access<'a>, found: &'a Document, why: &'a str) -> Pending<'a, bool> {
        Box::pin(async move {
            if !self.held().quarantine(access.session, found) {
                return Ok(false);
            }
            if let Some(backing) = &self.backing {
                backing.quarantine(access, found, why).await?;
            }
            Ok(true)
        })
    }

    fn sweep(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            self.held().sweep(self.clock.now());
            Ok(())
        })
    }

    fn stats(&self) -> Pending<'_, Stats> {
        Box::pin(async move { Ok(self.held().stats(self.clock.now())) })
    }

    fn owner_bytes<'a>(&'a self, owner: &'a str) -> Pending<'a, Option<u64>> {
        Box::pin(async move { Ok(Some(self.held().owner_bytes(owner))) })
    }

    /// Memory is always available, but the backing may not be.
    fn check(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            match &self.backing {
                Some(backing) => backing.check().await,
                None => Ok(()),
            }
        })
    }
}
