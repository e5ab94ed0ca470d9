//! The open connections of clients before 2026-07-28 over Streamable HTTP, by owner. What is not in this table does not exist for anybody.
//!
//! An owner that opens too many loses its own least recently used one. If the whole table is full, the owner with the most connections does.

use super::json_rpc::Batches;
use heapstead_service::Connection;
use heapstead_types::{BudgetHolder, Principal};
use lru::LruCache;
use rmcp::transport::streamable_http_server::session::SessionId;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

pub struct ConnectionTable {
    connections_max: usize,
    holders: HashMap<SessionId, BudgetHolder>,
    /// The connections of each holder in the order of their last use. No holder is without connections.
    by_holder: HashMap<BudgetHolder, LruCache<SessionId, Used>>,
    /// Counts uses, to compare the last uses of different holders' connections.
    uses: u64,
}

struct Used {
    open: OpenConnection,
    last: u64,
}

/// The state of a connection since `initialize`.
#[derive(Clone)]
pub struct OpenConnection {
    pub batches: Batches,
    /// The principal that opened it. For all others it does not exist.
    pub owner: Principal,
    pub connection: Arc<Connection>,
}

impl ConnectionTable {
    pub fn new(connections_max: usize) -> Self {
        Self { connections_max, holders: HashMap::new(), by_holder: HashMap::new(), uses: 0 }
    }

    /// Adds a connection. Returns the one that has to be closed for it.
    #[must_use = "the removed connection has to be closed"]
    pub fn insert(&mut self, id: SessionId, holder: BudgetHolder, open: OpenConnection) -> Option<SessionId> {
        let own = self.by_holder.get(&holder).map_or(0, LruCache::len);
        let left = self.connections_max.saturating_sub(self.holders.len() + 1);
        let from = if own > 0 && own + 1 > left {
            Some(holder.clone())
        } else if self.holders.len() >= self.connections_max {
            self.largest()
        } else {
            None
        };
        self.uses += 1;
        let removed = from.and_then(|holder| self.remove_oldest(&holder));
        self.by_holder.entry(holder.clone()).or_insert_with(LruCache::unbounded).put(id.clone(), Used { open, last: self.uses });
        self.holders.insert(id, holder);
        removed
    }

    /// The holder with the most connections; if there are several, the one that has not used one for the longest time.
    fn largest(&self) -> Option<BudgetHolder> {
        let unused_since = |connections: &LruCache<_, Used>| connections.peek_lru().map(|(_, used)| Reverse(used.last));
        let largest = self.by_holder.iter().max_by_key(|(_, connections)| (connections.len(), unused_since(connections)));
        largest.map(|(holder, _)| holder.clone())
    }

    fn remove_oldest(&mut self, holder: &BudgetHolder) -> Option<SessionId> {
        let (oldest, _) = self.by_holder.get(holder)?.peek_lru()?;
        let oldest = oldest.clone();
        self.remove(&oldest);
        Some(oldest)
    }

    pub fn remove(&mut self, id: &str) {
        let Some(holder) = self.holders.remove(id) else { return };
        if let Some(connections) = self.by_holder.get_mut(&holder) {
            connections.pop(id);
            if connections.is_empty() {
                self.by_holder.remove(&holder);
            }
        }
    }

    /// An open connection of this caller.
    pub fn find(&self, id: &str, caller: &Principal) -> Option<&OpenConnection> {
        self.by_holder.get(self.holders.get(id)?)?.peek(id).map(|used| &used.open).filter(|open| open.owner == *caller)
    }

    /// Marks a connection as used. False if it is not open.
    #[must_use = "a connection that is not open must not be used"]
    pub fn touch(&mut self, id: &str) -> bool {
        let Some(holder) = self.holders.get(id) else { return false };
        let Some(used) = self.by_holder.get_mut(holder).and_then(|connections| connections.get_mut(id)) else { return false };
        self.uses += 1;
        used.last = self.uses;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> Principal {
        format!("acme/{name}").parse().expect("an owner")
    }

    /// Opens a connection with this id, whose first letters are its owner. Returns the one that is closed for it.
    fn open(table: &mut ConnectionTable, id: &str) -> Option<String> {
        let owner = owner(id.trim_end_matches(char::is_numeric));
        let holder = BudgetHolder::from(&owner);
        let open = OpenConnection { batches: Batches::Refused, owner, connection: Arc::default() };
        table.insert(id.into(), holder, open).map(|id| id.to_string())
    }

    fn is_open(table: &ConnectionTable, id: &str) -> bool {
        table.find(id, &owner(id.trim_end_matches(char::is_numeric))).is_some()
    }

    /// Two thousand `initialize` of one owner once closed the connections of all others.
    #[test]
    fn an_owner_with_too_many_connections_loses_its_own_least_recently_used() {
        let mut table = ConnectionTable::new(10);
        assert_eq!(open(&mut table, "bob1"), None);
        for number in 1..=4 {
            assert_eq!(open(&mut table, &format!("ann{number}")), None);
        }
        assert!(table.touch("ann1"));
        assert_eq!(open(&mut table, "ann5").as_deref(), Some("ann2"));
        for number in 6..100 {
            assert!(open(&mut table, &format!("ann{number}")).is_some_and(|closed| closed.starts_with("ann")));
        }
        assert!(is_open(&table, "bob1"));
        for name in ["bob2", "bob3", "carl1"] {
            assert_eq!(open(&mut table, name), None, "there is room for others: {name}");
        }
        assert_eq!(table.holders.len(), table.by_holder.values().map(LruCache::len).sum::<usize>());
    }

    #[test]
    fn a_full_table_takes_from_the_owner_with_the_most() {
        let mut table = ConnectionTable::new(6);
        for id in ["ann1", "ann2", "ann3", "bob1", "carl1", "dora1"] {
            assert_eq!(open(&mut table, id), None, "{id}");
        }
        assert_eq!(open(&mut table, "emil1").as_deref(), Some("ann1"));
        assert_eq!(open(&mut table, "fritz1").as_deref(), Some("ann2"));
        // Now everybody has one.
        assert!(table.touch("ann3"));
        assert_eq!(open(&mut table, "gerd1").as_deref(), Some("bob1"), "the one that was not used for the longest time");
        assert_eq!(table.holders.len(), 6);
    }

    /// A request that came while its connection was closed once entered it again, without an owner.
    #[test]
    fn a_closed_connection_is_not_opened_again_by_its_use() {
        let mut table = ConnectionTable::new(10);
        assert_eq!(open(&mut table, "ann1"), None);
        table.remove("ann1");
        assert!(!table.touch("ann1"));
        assert!(table.find("ann1", &owner("ann")).is_none() && table.holders.is_empty() && table.by_holder.is_empty());
    }

    #[test]
    fn only_its_owner_finds_a_connection() {
        let mut table = ConnectionTable::new(10);
        assert_eq!(open(&mut table, "ann1"), None);
        assert!(is_open(&table, "ann1"));
        assert!(table.find("ann1", &owner("bob")).is_none());
        assert!(table.find("ann2", &owner("ann")).is_none());
    }
}
