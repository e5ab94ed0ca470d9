//! Keeps the console output of a run within its owner's quota on storage. Output is counted in the database when the run ends; until then the
//! output of the owner's runs in this process is added to what the database counts.

use super::output_text::OutputText;
use crate::Stores;
use heapstead_store::outputs::Extent;
use heapstead_types::Principal;

/// The database is asked once per this many bytes of output, so that short output costs no access.
const CHECK_BYTES: u64 = 1 << 20;

pub struct OutputQuota<'a> {
    principal: &'a Principal,
    /// The output may have this many bytes before the next check.
    checked_bytes: u64,
    is_exceeded: bool,
}

impl<'a> OutputQuota<'a> {
    pub fn of(principal: &'a Principal) -> Self {
        Self { principal, checked_bytes: CHECK_BYTES, is_exceeded: false }
    }

    pub fn is_exceeded(&self) -> bool {
        self.is_exceeded
    }

    /// What is stored of this output: all of it, the last line when the quota is exceeded, then nothing.
    pub async fn admit(&mut self, stores: &Stores, written: Extent, bytes: Vec<u8>, text: &mut OutputText) -> Option<Vec<u8>> {
        let Some(bytes_max) = stores.policy.quotas.stored_bytes_max else { return Some(text.written(bytes)) };
        if self.is_exceeded {
            return None;
        }
        let output_bytes = written.bytes + bytes.len() as u64;
        if output_bytes <= self.checked_bytes {
            return Some(text.written(bytes));
        }
        self.checked_bytes = output_bytes + CHECK_BYTES;
        // If the database can't be read, the end of the run can't be recorded either.
        let stored = stores.records.usage(self.principal).await.map_or(0, |usage| usage.bytes());
        self.is_exceeded = stored.saturating_add(stores.running.output_bytes(self.principal)) > bytes_max;
        Some(if self.is_exceeded { text.over_quota(bytes_max >> 20) } else { text.written(bytes) })
    }
}
