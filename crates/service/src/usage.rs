//! What an owner has stored, and how much it may have.

use crate::{Caller, ServiceError, Stores};
use schemars::JsonSchema;
use serde::Serialize;

/// What you have stored, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StorageUsage {
    /// Everything that counts towards `stored_bytes_max`.
    pub stored_bytes: u64,
    /// Heaps, also those that are being stored.
    pub heap_bytes: u64,
    /// Executions with results and output, sessions with logs, and tags: their texts, and 512 bytes for each record.
    pub other_bytes: u64,
    /// Conversation contexts: their records, and 512 bytes for each. Contexts in Redis do not count.
    pub context_bytes: u64,
    /// How much you may have stored (`--max-stored-mb-per-owner`); null if there is no limit.
    pub stored_bytes_max: Option<u64>,
    /// How much of it may be heaps (`--max-heap-mb-per-owner`); null if there is no further limit.
    pub heap_bytes_max: Option<u64>,
}

impl Stores {
    pub async fn usage(&self, caller: &Caller) -> Result<StorageUsage, ServiceError> {
        let (used, quotas) = (self.records.usage(&caller.principal).await?, self.policy().quotas);
        Ok(StorageUsage {
            stored_bytes: used.bytes(),
            heap_bytes: used.heap_bytes,
            other_bytes: used.other_bytes,
            context_bytes: used.elsewhere_bytes,
            stored_bytes_max: quotas.stored_bytes_max,
            heap_bytes_max: quotas.heap_bytes_max,
        })
    }
}
