//! What a server stores and shares between requests, without an engine. The command line opens these alone, a server with a [`crate::Service`].
//!
//! Each noun has a view with its operations: [`Stores::executions`], [`Stores::sessions`], [`Stores::heaps`], [`Stores::contexts`],
//! [`Stores::events`].

use crate::contexts::{self, Contexts, Conversations};
use crate::events::{Events, Hub};
use crate::executions::{Executions, RunningExecutions, TurnQueues};
use crate::heaps::{DamagedHeaps, Heaps};
use crate::key_ring::KeyRing;
use crate::live::LiveSessions;
use crate::owner_permits::OwnerPermits;
use crate::policy::Policy;
use crate::sessions::{AccessAudit, Sessions};
use heapstead_store::peers::Peers;
use heapstead_store::records::KeyPurpose;
use heapstead_store::{Database, HeapStore, Outputs, Records};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use tokio::sync::{Mutex, Notify};

/// Maximum number of concurrent reads of output pages per owner. Each read occupies a thread.
const OUTPUT_READS_AT_ONCE: usize = 2;

/// Cheap to clone.
#[derive(Clone)]
pub struct Stores(Arc<Shared>);

/// Public only because `Stores` dereferences to it inside this crate; nothing in it can be reached from outside.
pub struct Shared {
    pub(crate) heaps: HeapStore,
    pub(crate) records: Arc<dyn Records>,
    pub(crate) peers: Arc<dyn Peers>,
    pub(crate) outputs: Outputs,
    /// Limits concurrent reads of output pages: all followers of an execution wake at the same time.
    pub(crate) reading: OwnerPermits,
    /// Limits replays that callers ask for, each of which has a source and a heap in memory.
    pub(crate) replaying: OwnerPermits,
    pub(crate) damaged: Arc<DamagedHeaps>,
    pub(crate) policy: Policy,
    /// Executions of this process.
    pub(crate) running: RunningExecutions,
    /// Sessions whose heap is in the memory of this process.
    pub(crate) live: Arc<LiveSessions>,
    /// Turns of this process, in order.
    pub(crate) turns: TurnQueues,
    /// Notified when a session was opened that may expire before all others.
    pub(crate) expiries: Arc<Notify>,
    /// Held while files of heaps are removed, from before the removal is recorded (`heaps/removal.rs`).
    pub(crate) removing: Arc<Mutex<()>>,
    pub(crate) state_keys: KeyRing,
    /// Keys that heaps are signed with.
    pub(crate) heap_keys: Arc<KeyRing>,
    pub(crate) hub: Arc<Hub>,
    /// Set if this process records conversations.
    pub(crate) conversations: OnceLock<Conversations>,
    /// The context database of servers, for a process that records no conversations itself.
    pub(crate) context_database: OnceLock<PathBuf>,
    pub(crate) access_audit: AccessAudit,
}

impl std::ops::Deref for Stores {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Stores {
    /// Opens without side effects: no orphan is ended and nothing is deleted.
    pub fn open(heaps: HeapStore, database: Database, policy: Policy) -> Self {
        let Database { records, peers, outputs } = database;
        records.limit_storage(policy.quotas.stored_bytes_max);
        Self(Arc::new(Shared {
            heaps,
            outputs,
            reading: OwnerPermits::new(OUTPUT_READS_AT_ONCE),
            replaying: OwnerPermits::new(1),
            peers,
            damaged: Arc::new(DamagedHeaps::stored_in(records.clone())),
            state_keys: KeyRing::new(records.clone(), KeyPurpose::SessionState),
            heap_keys: Arc::new(KeyRing::new(records.clone(), KeyPurpose::Heaps)),
            records,
            policy,
            running: RunningExecutions::default(),
            live: Arc::default(),
            turns: TurnQueues::default(),
            expiries: Arc::default(),
            removing: Arc::default(),
            hub: Arc::default(),
            conversations: OnceLock::new(),
            context_database: OnceLock::new(),
            access_audit: AccessAudit::default(),
        }))
    }

    /// For a process that records no conversations: contexts in this database, which servers use, are counted, and deleted with their
    /// sessions.
    pub fn use_contexts_of(&self, database: PathBuf) {
        let counted = database.clone();
        self.records.count_elsewhere(Arc::new(move |owner| {
            let database = counted.clone();
            Box::pin(async move { contexts::bytes_in(&database, owner.name()).await })
        }));
        // Set once, right after opening.
        let _ = self.0.context_database.set(database);
    }

    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }

    pub fn executions(&self) -> Executions<'_> {
        Executions(self)
    }

    pub fn sessions(&self) -> Sessions<'_> {
        Sessions(self)
    }

    pub fn heaps(&self) -> Heaps<'_> {
        Heaps(self)
    }

    pub fn contexts(&self) -> Contexts<'_> {
        Contexts(self)
    }

    pub fn events(&self) -> Events<'_> {
        Events(self)
    }

    /// For background tasks, which end when the last user of the stores is gone.
    pub(crate) fn downgrade(&self) -> WeakStores {
        WeakStores(Arc::downgrade(&self.0))
    }
}

#[derive(Clone)]
pub(crate) struct WeakStores(Weak<Shared>);

impl WeakStores {
    pub fn upgrade(&self) -> Option<Stores> {
        self.0.upgrade().map(Stores)
    }
}
