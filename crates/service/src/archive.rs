//! Everything that is kept: records, output, heaps, tags and logs, and what can be asked about them without running anything.

use crate::context_recording::Conversations;
use crate::damaged::Damaged;
use crate::hub::Hub;
use crate::live::Registry;
use crate::origin::OnMissingHeap;
use crate::state::StateKeys;
use crate::trespass::Trespasses;
use heapstead_store::{HeapStore, Metadata, Outputs};
use heapstead_types::Limits;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Notify, RwLock};

/// What the operator decided.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// For runs that say nothing else.
    pub limits: Limits,
    pub on_missing_heap: OnMissingHeap,
    pub retain_executions: Duration,
    pub retain_heaps: Duration,
    /// How long a session lasts that nobody uses.
    pub session_ttl: Duration,
    /// Whether every run has to be in a session.
    pub require_session: bool,
    pub quotas: Quotas,
    /// Whether execute sessions are reused by the principal that opened them alone, and not by others of its tenant.
    pub delegated: bool,
}

/// What one owner may have at once; none is no bound.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quotas {
    pub sessions_max: Option<u32>,
    pub heap_bytes_max: Option<u64>,
    pub running_max: Option<u32>,
}

#[derive(Clone)]
pub struct Archive(pub(crate) Arc<Kept>);

pub(crate) struct Kept {
    pub heaps: Arc<dyn HeapStore>,
    pub metadata: Metadata,
    pub outputs: Outputs,
    /// Heaps that were found damaged.
    pub damaged: Arc<Damaged>,
    pub policy: Policy,
    /// Executions that run in this process.
    pub live: Registry,
    /// Woken when a session is there that may expire before all others.
    pub expiries: Arc<Notify>,
    /// Read while a heap is on its way from the store into a record, written while heaps are collected.
    pub storing: Arc<RwLock<()>>,
    /// What seals the states of sessions.
    pub state_keys: StateKeys,
    /// Who is told what happens.
    pub hub: Arc<Hub>,
    /// What conversations have done, where that is kept.
    pub conversations: OnceLock<Conversations>,
    /// The database in which servers may have left contexts, for a process that keeps none itself.
    pub left_contexts: OnceLock<PathBuf>,
    /// Who asked for sessions that are not theirs.
    pub trespasses: Trespasses,
}

impl Archive {
    /// Only opens it: nothing is taken over from processes that died, and nothing is removed.
    pub fn open(heaps: Arc<dyn HeapStore>, metadata: Metadata, policy: Policy) -> Self {
        let outputs = Outputs::new(metadata.folder().join("outputs"));
        Self(Arc::new(Kept {
            heaps,
            outputs,
            damaged: Arc::new(Damaged::kept_in(metadata.clone())),
            metadata,
            policy,
            live: Registry::default(),
            expiries: Arc::default(),
            storing: Arc::default(),
            state_keys: StateKeys::default(),
            hub: Arc::default(),
            conversations: OnceLock::new(),
            left_contexts: OnceLock::new(),
            trespasses: Trespasses::default(),
        }))
    }

    /// Sessions that end here take along what servers have left of them in this database.
    pub fn end_contexts_in(&self, database: PathBuf) {
        // Set once, where the archive is opened.
        let _ = self.0.left_contexts.set(database);
    }

    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }
}
