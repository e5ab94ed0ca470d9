//! The service: the stores, and the engine that runs code. Every protocol calls this; a rule belongs here and not into a protocol.

use crate::caller::Caller;
use crate::contexts::{Contexts, Conversations, OpenContexts};
use crate::events::{Events, followers};
use crate::executions::ResultRange;
use crate::executions::{
    ExecutionRecord, Executions, RunParameters, RunningExecution, StopReason, driver, note_head, orphans, peer_questions,
};
use crate::heaps::{HeapCache, Heaps, signing};
use crate::live::{self, Checkpoints, LiveSessions};
use crate::monitoring::Meter;
use crate::policy::Policy;
use crate::retention;
use crate::sessions::{Sessions, access_audit, expiry};
use crate::{ServiceError, Stores};
use heapstead_catalog::Catalogs;
use heapstead_engine::Engine;
use heapstead_store::{Database, HeapStore};
use heapstead_types::limits;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Cheap to clone.
#[derive(Clone)]
pub struct Service {
    pub(crate) stores: Stores,
    pub(crate) runtime: Arc<Runtime>,
}

/// What running code needs besides the stores.
pub(crate) struct Runtime {
    pub engine: Engine,
    pub heaps: HeapCache,
    pub closing: AtomicBool,
    pub catalogs: Catalogs,
    /// Identifies the engine and the base heap.
    pub generation: String,
    pub meter: Meter,
    pub live: Arc<LiveSessions>,
    pub checkpoints: Checkpoints,
}

impl Service {
    /// Ends executions of servers that died, starts the background tasks, and answers questions of other servers on the same database.
    pub async fn open(
        engine: Engine,
        heaps: HeapStore,
        database: Database,
        policy: Policy,
        catalogs: Catalogs,
        contexts: Option<OpenContexts>,
    ) -> Result<Self, ServiceError> {
        let service = Self::new(engine, heaps, database, policy, catalogs);
        let stores = &service.stores;
        // So that no run waits for them.
        stores.heap_keys.keys().await?;
        // Findings of earlier processes.
        stores.damaged.all().await;
        if let Some(contexts) = contexts {
            Conversations::start(contexts, stores);
        }
        peer_questions::respond(stores);
        orphans::fail_all(stores).await?;
        retention::start(stores);
        expiry::start(stores);
        followers::start(stores);
        access_audit::start(stores);
        signing::warn_of_unsigned(stores);
        live::eviction::start(&service);
        Ok(service)
    }

    /// Without background tasks: nothing expires, and orphans stay. For tests.
    pub fn new(engine: Engine, heaps: HeapStore, database: Database, policy: Policy, catalogs: Catalogs) -> Self {
        let stores = Stores::open(heaps.clone(), database, policy);
        let runtime = Runtime {
            heaps: HeapCache::new(heaps, engine.info().clone(), stores.heap_keys.clone())
                .reporting_to(stores.damaged.clone())
                .recorded_in(stores.records.clone()),
            generation: engine.generation().to_owned(),
            engine,
            closing: AtomicBool::new(false),
            catalogs,
            meter: Meter::default(),
            live: stores.live.clone(),
            checkpoints: Checkpoints::new(policy.live.checkpoints_max),
        };
        Self { stores, runtime: Arc::new(runtime) }
    }

    /// Accepts a run. Once this returns, its id is never forgotten; a refused run leaves nothing behind.
    pub async fn run(&self, caller: &Caller, parameters: RunParameters) -> Result<Arc<RunningExecution>, ServiceError> {
        limits::code(&parameters.code)?;
        let session = self.sessions().resolve_for_run(caller, parameters.session.as_deref()).await?;
        let accepted = async {
            let request = self.run_request(caller, session.clone(), parameters)?;
            driver::accept(self, caller, request).await
        };
        let accepted = accepted.await;
        if let (Err(_), Some(opened)) = (&accepted, session.opened()) {
            self.sessions().refresh_after_refusal(caller, opened).await;
        }
        accepted
    }

    /// Waits for a run that this caller started. The caller receives the record, and with it the notice about its session.
    pub async fn wait_for_run(&self, caller: &Caller, execution: &RunningExecution, wait: Duration) -> ExecutionRecord {
        let record = execution.record_after(wait).await;
        note_head(caller, execution);
        self.deliver_notice(&record).await;
        record
    }

    /// The record of an execution. If it still runs, waits for its end, at most `wait`. The caller receives the notice about its session.
    pub async fn execution(&self, caller: &Caller, id: &str, wait: Duration) -> Result<ExecutionRecord, ServiceError> {
        let record = self.executions().get(caller, id, wait).await?;
        self.deliver_notice(&record).await;
        Ok(record)
    }

    /// As [`Self::execution`], with a part of its result.
    pub async fn execution_part(
        &self,
        caller: &Caller,
        id: &str,
        wait: Duration,
        range: ResultRange,
    ) -> Result<ExecutionRecord, ServiceError> {
        let record = self.executions().get_part(caller, id, wait, range).await?;
        self.deliver_notice(&record).await;
        Ok(record)
    }

    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    pub fn policy(&self) -> &Policy {
        self.stores.policy()
    }

    pub fn executions(&self) -> Executions<'_> {
        self.stores.executions()
    }

    pub fn sessions(&self) -> Sessions<'_> {
        self.stores.sessions()
    }

    pub fn heaps(&self) -> Heaps<'_> {
        self.stores.heaps()
    }

    pub fn contexts(&self) -> Contexts<'_> {
        self.stores.contexts()
    }

    pub fn events(&self) -> Events<'_> {
        self.stores.events()
    }

    pub fn catalogs(&self) -> &Catalogs {
        &self.runtime.catalogs
    }

    pub fn engine(&self) -> &Engine {
        &self.runtime.engine
    }

    pub(crate) fn refuse_while_closing(&self) -> Result<(), ServiceError> {
        match self.runtime.closing.load(Relaxed) {
            true => Err(ServiceError::shutting_down()),
            false => Ok(()),
        }
    }

    /// Accepts nothing new, gives running executions this long to end, then stops them. Returns when every execution has ended.
    pub async fn close(&self, grace: Duration) {
        self.runtime.closing.store(true, Relaxed);
        let running = self.stores.running.all();
        let all_ended = async {
            for execution in &running {
                execution.ended().await;
            }
        };
        if tokio::time::timeout(grace, all_ended).await.is_ok() {
            return;
        }
        for execution in &running {
            execution.stop(StopReason::Shutdown);
        }
        for execution in &running {
            execution.ended().await;
        }
    }
}
