//! What each owner has in memory, so that a full store evicts from the owner that has the most. With one owner, or one context each, that is
//! the least recently used context of all.

use crate::SessionId;
use lru::LruCache;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::sync::Arc;

#[derive(Default)]
pub struct Owners {
    shares: HashMap<Arc<str>, Share>,
    /// By number of contexts. The last one is evicted from.
    by_contexts: BTreeSet<Rank>,
    /// Counts all uses, so that the order of uses of different owners is known.
    uses: u64,
}

/// How much an owner has, when it used its oldest context, and its name. Of two that have as much, the one with the older context is greater.
type Rank = (usize, Reverse<u64>, Arc<str>);

struct Share {
    /// When each context was used last.
    contexts: LruCache<SessionId, u64>,
    size: Size,
}

/// What a context takes up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    pub memory_bytes: usize,
    /// What counts towards the limit of its owner.
    pub counted_bytes: u64,
}

impl Owners {
    pub fn len(&self) -> usize {
        self.shares.len()
    }

    pub fn counted_bytes(&self, owner: &str) -> u64 {
        self.shares.get(owner).map_or(0, |share| share.size.counted_bytes)
    }

    /// The owner as it is held, so that a name is in memory once.
    pub fn name(&self, owner: &str) -> Arc<str> {
        self.shares.get_key_value(owner).map_or_else(|| owner.into(), |(name, _)| name.clone())
    }

    pub fn add(&mut self, owner: &Arc<str>, session: SessionId, size: Size) {
        self.uses += 1;
        let now = self.uses;
        self.change(owner, |share| {
            share.contexts.put(session, now);
            share.size.memory_bytes += size.memory_bytes;
            share.size.counted_bytes += size.counted_bytes;
        });
    }

    pub fn used(&mut self, owner: &Arc<str>, session: &SessionId) {
        self.uses += 1;
        let now = self.uses;
        self.change(owner, |share| share.contexts.get_mut(session).into_iter().for_each(|used| *used = now));
    }

    pub fn remove(&mut self, owner: &Arc<str>, session: &SessionId, size: Size) {
        self.change(owner, |share| {
            share.contexts.pop(session);
            share.size.memory_bytes -= size.memory_bytes;
            share.size.counted_bytes -= size.counted_bytes;
        });
    }

    /// The least recently used context of the owner with the most contexts.
    pub fn oldest_of_most(&self) -> Option<SessionId> {
        let (.., owner) = self.by_contexts.last()?;
        self.oldest_of(owner)
    }

    /// All owners. The greatest has the most memory.
    pub fn by_memory(&self) -> BinaryHeap<Rank> {
        self.shares.keys().filter_map(|owner| self.memory_rank(owner)).collect()
    }

    pub fn memory_rank(&self, owner: &Arc<str>) -> Option<Rank> {
        let share = self.shares.get(owner)?;
        Some((share.size.memory_bytes, Reverse(share.oldest_use()?), owner.clone()))
    }

    pub fn oldest_of(&self, owner: &str) -> Option<SessionId> {
        self.shares.get(owner)?.contexts.peek_lru().map(|(session, _)| *session)
    }

    fn change(&mut self, owner: &Arc<str>, change: impl FnOnce(&mut Share)) {
        let share = self.shares.entry(owner.clone()).or_default();
        if let Some(oldest) = share.oldest_use() {
            self.by_contexts.remove(&(share.contexts.len(), Reverse(oldest), owner.clone()));
        }
        change(share);
        match share.oldest_use() {
            Some(oldest) => drop(self.by_contexts.insert((share.contexts.len(), Reverse(oldest), owner.clone()))),
            None => drop(self.shares.remove(owner)),
        }
    }
}

impl Share {
    fn oldest_use(&self) -> Option<u64> {
        self.contexts.peek_lru().map(|(_, used)| *used)
    }
}

impl Default for Share {
    fn default() -> Self {
        Self { contexts: LruCache::unbounded(), size: Size::default() }
    }
}
