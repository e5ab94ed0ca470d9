//! Owners: every principal that has records in this database.

use super::RecordsError;
use async_trait::async_trait;
use heapstead_types::Principal;

/// Sums over all owners.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub sessions: u64,
    /// A heap that several owners have is counted for each of them.
    pub heap_bytes: u64,
}

#[async_trait]
pub trait OwnerRecords: Send + Sync {
    async fn totals(&self) -> Result<Totals, RecordsError>;

    /// Every principal with an execution, a heap, a tag or a session, in order.
    async fn owners(&self) -> Result<Vec<Principal>, RecordsError>;
}
