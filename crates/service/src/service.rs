//! The service: engine, stores and rules in one hand. Every edge calls this, and a rule that is not here is in the wrong place.

use crate::heap_access::HeapAccess;
use crate::live::Registry;
use crate::origin::OnMissingHeap;
use crate::{ServiceError, sweep};
use heapstead_engine::Engine;
use heapstead_store::{HeapStore, Metadata, Outputs};
use heapstead_types::Limits;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
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
pub struct Service(pub(crate) Arc<Parts>);

pub(crate) struct Parts {
    pub engine: Engine,
    pub heaps: HeapAccess,
    pub metadata: Metadata,
    pub outputs: Outputs,
    pub policy: Policy,
    pub live: Registry,
    pub closing: AtomicBool,
    /// Read while a heap is on its way from the store into a record, written while heaps are collected.
    pub storing: Arc<RwLock<()>>,
}

impl Service {
    /// Takes over what an earlier process left: runs that were going when it died have failed. Then keeps house in the background.
    pub async fn open(engine: Engine, heaps: Arc<dyn HeapStore>, metadata: Metadata, policy: Policy) -> Result<Self, ServiceError> {
        let service = Self(Arc::new(Parts {
            heaps: HeapAccess::new(heaps, engine.info().clone()),
            outputs: Outputs::new(metadata.folder().join("outputs")),
            engine,
            metadata,
            policy,
            live: Registry::default(),
            closing: AtomicBool::new(false),
            storing: Arc::default(),
        }));
        sweep::fail_orphans(&service).await?;
        sweep::start(&service);
        Ok(service)
    }

    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }

    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }
}
