//! Owners: every principal that has records in this database.

use super::RecordsError;
use async_trait::async_trait;
use heapstead_types::Principal;
use std::pin::Pin;
use std::sync::Arc;

/// Sums over all owners.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub sessions: u64,
    /// A heap that several owners have is counted for each of them.
    pub heap_bytes: u64,
}

/// What an owner has stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Heaps, and heaps that are being stored.
    pub heap_bytes: u64,
    /// Executions with their results and output, sessions with their logs, tags: their texts, and a fixed number of bytes per record.
    pub other_bytes: u64,
    /// What another store has: [`StoredElsewhere`].
    pub elsewhere_bytes: u64,
}

impl Usage {
    pub fn bytes(self) -> u64 {
        self.here_bytes().saturating_add(self.elsewhere_bytes)
    }

    /// Without what another store has.
    pub fn here_bytes(self) -> u64 {
        self.heap_bytes.saturating_add(self.other_bytes)
    }
}

/// Asks another store for the bytes of an owner, which count towards its quota too.
pub type StoredElsewhere = Arc<dyn Fn(Principal) -> Pin<Box<dyn Future<Output = u64> + Send>> + Send + Sync>;

#[async_trait]
pub trait OwnerRecords: Send + Sync {
    async fn usage(&self, principal: &Principal) -> Result<Usage, RecordsError>;

    /// Deletes the counters of owners that have nothing.
    async fn delete_unused_owners(&self) -> Result<(), RecordsError>;

    async fn totals(&self) -> Result<Totals, RecordsError>;

    /// Every principal with an execution, a heap, a tag or a session, in order.
    async fn owners(&self) -> Result<Vec<Principal>, RecordsError>;
}
