//! Everything that is kept: records, output, heaps, tags and logs, and what can be asked about them without running anything.

use crate::live::Registry;
use crate::origin::OnMissingHeap;
use heapstead_store::{HeapStore, Metadata, Outputs};
use heapstead_types::Limits;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::RwLock;

/// What the operator decided.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// For runs that say nothing else.
    pub limits: Limits,
    pub on_missing_heap: OnMissingHeap,
    pub retain_executions: Duration,
    pub retain_heaps: Duration,
}

#[derive(Clone)]
pub struct Archive(pub(crate) Arc<Kept>);

pub(crate) struct Kept {
    pub heaps: Arc<dyn HeapStore>,
    pub metadata: Metadata,
    pub outputs: Outputs,
    pub policy: Policy,
    /// Executions that run in this process.
    pub live: Registry,
    /// Read while a heap is on its way from the store into a record, written while heaps are collected.
    pub storing: Arc<RwLock<()>>,
}

impl Archive {
    /// Only opens it: nothing is taken over from processes that died, and nothing is removed.
    pub fn open(heaps: Arc<dyn HeapStore>, metadata: Metadata, policy: Policy) -> Self {
        let outputs = Outputs::new(metadata.folder().join("outputs"));
        Self(Arc::new(Kept { heaps, outputs, metadata, policy, live: Registry::default(), storing: Arc::default() }))
    }

    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }
}
