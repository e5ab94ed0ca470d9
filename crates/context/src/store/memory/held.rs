//! The state of the memory store, behind its lock: an LRU map, its size in bytes, and the shares of its owners.

use super::MemorySettings;
use super::owners::{Owners, Size};
use crate::store::{CONTEXT_BYTES, Evictions, Saved, Stats};
use crate::{Access, Document, SessionId, StoreError, Timestamp};
use lru::LruCache;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// Quarantined documents that are stored. The rest are only counted.
const ASIDE_MAX: usize = 16;
/// Under memory pressure, one in this many contexts is evicted.
const PRESSURE_SHARE: usize = 5;
/// Overhead of the map and the list for one session, and of those of its owner.
const ENTRY_BYTES: usize = size_of::<Entry>() + 2 * size_of::<SessionId>() + 2 * 48;

pub struct Held {
    ttl_ms: i64,
    sessions_max: usize,
    memory_bytes_max: usize,
    /// The least recently used context is also the first to expire, because all have the same TTL.
    map: LruCache<SessionId, Entry>,
    bytes: usize,
    owners: Owners,
    evictions: Evictions,
    pub aside: VecDeque<Document>,
    quarantined: u64,
    /// Sessions removed since the last flush. `None` without a backing.
    removed: Option<HashSet<SessionId>>,
    /// The latest time seen. Time never goes back here, so the order of use is the order of time.
    latest: Timestamp,
}

struct Entry {
    document: Document,
    tenant: Arc<str>,
    owner: Arc<str>,
    used_at: Timestamp,
    size: Size,
    unflushed: Unflushed,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unflushed {
    Nothing,
    Use,
    Change,
}

impl Held {
    pub fn new(settings: &MemorySettings, flushes: bool) -> Self {
        Self {
            ttl_ms: settings.ttl.as_millis().try_into().unwrap_or(i64::MAX),
            sessions_max: settings.sessions_max.max(1),
            memory_bytes_max: settings.memory_bytes_max,
            map: LruCache::unbounded(),
            bytes: 0,
            owners: Owners::default(),
            evictions: Evictions::default(),
            aside: VecDeque::new(),
            quarantined: 0,
            removed: flushes.then(HashSet::new),
            latest: Timestamp::default(),
        }
    }

    pub fn read(&mut self, access: Access<'_>, now: Timestamp) -> Option<Document> {
        let now = self.advance(now);
        self.sweep(now);
        let entry = self.map.get_mut(access.session)?;
        entry.used_at = now;
        entry.unflushed = entry.unflushed.max(Unflushed::Use);
        self.owners.used(&entry.owner, access.session);
        Some(entry.document.clone())
    }

    pub fn replace(&mut self, access: Access<'_>, expected: Option<&Document>, new: &Document, now: Timestamp) -> Result<bool, StoreError> {
        let now = self.advance(now);
        self.sweep(now);
        let known = self.map.peek(access.session);
        if known.map(|entry| &entry.document) != expected {
            return Ok(false);
        }
        let tenant = known.map(|entry| &entry.tenant).filter(|tenant| ***tenant == *access.tenant).cloned();
        let tenant = tenant.unwrap_or_else(|| access.tenant.into());
        let owner = match known {
            Some(entry) if access.owner.is_empty() => entry.owner.clone(),
            _ => self.owners.name(access.owner),
        };
        if let Some(bytes_max) = access.owner_bytes_max {
            let used_bytes = self.owners.counted_bytes(&owner);
            let before = known.filter(|entry| entry.owner == owner).map_or(0, |entry| entry.size.counted_bytes);
            let after = counted_bytes(new);
            // One that is not longer than before is never refused.
            if after > before && used_bytes - before + after > bytes_max {
                return Err(StoreError::OverQuota { used_bytes, bytes_max });
            }
        }
        self.put(Saved { session: *access.session, tenant, owner, document: new.clone(), used_at: now }, Unflushed::Change);
        self.make_room();
        Ok(true)
    }

    pub fn owner_bytes(&self, owner: &str) -> u64 {
        self.owners.counted_bytes(owner)
    }

    /// Inserts a loaded context, in the order of use. Returns false if it has expired.
    pub fn restore(&mut self, saved: Saved, now: Timestamp) -> bool {
        let alive = now.ms().saturating_sub(saved.used_at.ms()) < self.ttl_ms;
        if alive {
            self.put(saved, Unflushed::Nothing);
            self.make_room();
        } else if let Some(removed) = &mut self.removed {
            removed.insert(saved.session);
        }
        alive
    }

    pub fn remove(&mut self, session: &SessionId, now: Timestamp) -> bool {
        self.sweep(now);
        self.take(session).is_some()
    }

    pub fn forget_removal(&mut self, session: &SessionId) {
        if let Some(removed) = &mut self.removed {
            removed.remove(session);
        }
    }

    pub fn quarantine(&mut self, session: &SessionId, found: &Document) -> bool {
        if self.map.peek(session).is_none_or(|entry| entry.document != *found) {
            return false;
        }
        self.take(session);
        self.aside.push_back(found.clone());
        self.aside.drain(..self.aside.len().saturating_sub(ASIDE_MAX));
        self.quarantined += 1;
        // The backing quarantines it itself.
        self.forget_removal(session);
        true
    }

    pub fn sweep(&mut self, now: Timestamp) {
        let now = self.advance(now);
        while self.map.peek_lru().is_some_and(|(_, entry)| now.ms().saturating_sub(entry.used_at.ms()) >= self.ttl_ms) {
            self.take_oldest();
            self.evictions.idle += 1;
        }
    }

    pub fn stats(&mut self, now: Timestamp) -> Stats {
        self.sweep(now);
        Stats {
            sessions: Some(self.map.len() as u64),
            sessions_max: Some(self.sessions_max as u64),
            memory_bytes: self.bytes as u64,
            memory_bytes_max: Some(self.memory_bytes_max as u64),
            evictions: self.evictions,
            quarantined: self.quarantined,
        }
    }

    /// The changes that must be flushed. They count as flushed from now on; see [`Self::not_flushed`].
    pub fn unflushed(&mut self) -> (Vec<Saved>, Vec<(SessionId, Timestamp)>, Vec<SessionId>) {
        let (mut changed, mut used) = (Vec::new(), Vec::new());
        for (session, entry) in &mut self.map {
            match std::mem::replace(&mut entry.unflushed, Unflushed::Nothing) {
                Unflushed::Nothing => {}
                Unflushed::Use => used.push((*session, entry.used_at)),
                Unflushed::Change => changed.push(Saved {
                    session: *session,
                    tenant: entry.tenant.clone(),
                    owner: entry.owner.clone(),
                    document: entry.document.clone(),
                    used_at: entry.used_at,
                }),
            }
        }
        (changed, used, self.removed.iter_mut().flat_map(HashSet::drain).collect())
    }

    /// After a failed flush, marks these for the next one.
    pub fn not_flushed(&mut self, changed: &[SessionId], used: &[SessionId], removed: Vec<SessionId>) {
        for (sessions, unflushed) in [(changed, Unflushed::Change), (used, Unflushed::Use)] {
            for session in sessions {
                if let Some(entry) = self.map.peek_mut(session) {
                    entry.unflushed = entry.unflushed.max(unflushed);
                }
            }
        }
        // A session that was created again is flushed as a change and must not be removed after it.
        let gone = removed.into_iter().filter(|session| !self.map.contains(session)).collect::<Vec<_>>();
        self.removed.iter_mut().for_each(|removed| removed.extend(&gone));
    }

    fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.latest = self.latest.max(now);
        self.latest
    }

    fn put(&mut self, saved: Saved, unflushed: Unflushed) {
        let Saved { session, tenant, owner, document, used_at } = saved;
        self.forget_removal(&session);
        let memory_bytes = document.memory_bytes() + tenant.len() + ENTRY_BYTES;
        let size = Size { memory_bytes, counted_bytes: counted_bytes(&document) };
        let replaced = self.map.put(session, Entry { document, tenant, owner: owner.clone(), used_at, size, unflushed });
        if let Some(replaced) = replaced {
            self.bytes -= replaced.size.memory_bytes;
            self.owners.remove(&replaced.owner, &session, replaced.size);
        }
        self.bytes += memory_bytes;
        self.owners.add(&owner, session, size);
    }

    fn make_room(&mut self) {
        while self.map.len() > self.sessions_max
            && let Some(session) = self.owners.oldest_of_most()
        {
            self.take(&session);
            self.evictions.lru += 1;
        }
        while self.bytes > self.memory_bytes_max && !self.map.is_empty() {
            self.relieve();
        }
    }

    /// Evicts a fifth of the contexts. With several owners, fewer if a fifth of the memory is free, so that those with little keep theirs.
    fn relieve(&mut self) {
        let is_shared = self.owners.len() > 1;
        let enough_bytes = self.memory_bytes_max - self.memory_bytes_max / PRESSURE_SHARE;
        let mut owners = self.owners.by_memory();
        for _ in 0..self.map.len().div_ceil(PRESSURE_SHARE) {
            let Some((.., owner)) = owners.pop() else { return };
            let Some(session) = self.owners.oldest_of(&owner) else { return };
            self.take(&session);
            self.evictions.memory_pressure += 1;
            owners.extend(self.owners.memory_rank(&owner));
            if is_shared && self.bytes <= enough_bytes {
                return;
            }
        }
    }

    fn take_oldest(&mut self) {
        if let Some(session) = self.map.peek_lru().map(|(session, _)| *session) {
            self.take(&session);
        }
    }

    fn take(&mut self, session: &SessionId) -> Option<Entry> {
        let entry = self.map.pop(session)?;
        self.bytes -= entry.size.memory_bytes;
        self.owners.remove(&entry.owner, session, entry.size);
        if let Some(removed) = &mut self.removed {
            removed.insert(*session);
        }
        Some(entry)
    }
}

/// What a document counts for its owner.
fn counted_bytes(document: &Document) -> u64 {
    document.bytes().len() as u64 + CONTEXT_BYTES
}
