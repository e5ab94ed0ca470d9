//! Health: every component is tried.

use crate::Service;
use crate::error::blocking;
use crate::executions::{ExecutionOutcome, iso_8601};
use heapstead_engine::{Engine, Job, Kind, Lane};
use heapstead_types::Limits;
use heapstead_types::limits::HEAP_MB_MIN;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Display;
use std::time::Duration;

/// How long a component may take to answer.
const CHECK_MAX: Duration = Duration::from_secs(5);

/// The state of the server and its components.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Health {
    /// `degraded` if a store can't be used, contexts take over 90 % of their memory or have reached their maximum number, or no code can be run.
    pub status: HealthStatus,
    pub context_store: ContextHealth,
    pub heap_store: HeapStoreHealth,
    pub engine: EngineHealth,
    /// Descriptions of problems. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub problems: Vec<String>,
    /// RFC 3339, UTC.
    pub timestamp: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    Healthy,
    Degraded,
}

/// The context store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ContextHealth {
    /// `memory`, `sqlite`, `redis` or `none`.
    pub backend: String,
    /// Null while they are being counted.
    pub session_count: Option<u64>,
    /// Null if there is no limit.
    pub max_sessions: Option<u64>,
    /// Memory of the store, not of the process.
    pub heap_used_mb: u64,
    pub heap_pressure_pct: u64,
    /// True if Redis is not used.
    pub redis_ok: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeapStoreHealth {
    /// `folder`, `s3` or `none`.
    pub backend: String,
    pub ok: bool,
    /// Number of damaged heaps. They are left as they are, for inspection; the log names them.
    pub damaged: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EngineHealth {
    /// Whether code could be run just now.
    pub ok: bool,
    /// Running and queued executions.
    pub running: u64,
    pub queued: u64,
    pub v8: String,
}

/// Runs a check with a time limit. Returns the problem, if there is one.
async fn check<E: Display>(name: &str, check: impl Future<Output = Result<(), E>>) -> Option<String> {
    match tokio::time::timeout(CHECK_MAX, check).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("{name}: {error}")),
        Err(_) => Some(format!("{name}: no answer within {} s", CHECK_MAX.as_secs())),
    }
}

/// Runs some code, regardless of the queue.
async fn check_engine(engine: &Engine) -> Option<String> {
    let limits = Limits { heap_mb: HEAP_MB_MIN, timeout_secs: CHECK_MAX.as_secs() as u32, ..Limits::default() };
    let job = Job { code: "1".into(), kind: Kind::Stateless, limits, headers: Vec::new(), lane: Lane::default() };
    check("engine", async { ExecutionOutcome::from(engine.run_unqueued(job).await.1).error().map_or(Ok(()), Err) }).await
}

impl Health {
    /// Of a stateless server.
    pub async fn stateless(engine: &Engine) -> Self {
        let running = EngineHealth::before(engine);
        let problem = check_engine(engine).await;
        let heap_store = HeapStoreHealth { backend: "none".into(), ok: true, damaged: 0 };
        Self::of(ContextHealth::none(), heap_store, EngineHealth { ok: problem.is_none(), ..running }, problem.into_iter().collect())
    }

    fn of(context_store: ContextHealth, heap_store: HeapStoreHealth, engine: EngineHealth, problems: Vec<String>) -> Self {
        let status = if problems.is_empty() { HealthStatus::Healthy } else { HealthStatus::Degraded };
        Self { status, context_store, heap_store, engine, problems, timestamp: iso_8601(Timestamp::now()) }
    }
}

impl EngineHealth {
    /// Counted before the engine is tried, which would count too.
    fn before(engine: &Engine) -> Self {
        let load = engine.load();
        Self { ok: true, running: load.running as u64, queued: load.queued as u64, v8: engine.info().id.v8.clone() }
    }
}

impl ContextHealth {
    fn none() -> Self {
        Self { backend: "none".into(), session_count: Some(0), max_sessions: None, heap_used_mb: 0, heap_pressure_pct: 0, redis_ok: true }
    }
}

impl Service {
    pub async fn health(&self) -> Health {
        let before = EngineHealth::before(self.engine());
        let ([engine, heaps, records, outputs], (context_store, contexts), damaged) =
            tokio::join!(self.probe(), self.context_health(), self.runtime.heaps.damaged(CHECK_MAX));
        let engine_health = EngineHealth { ok: engine.is_none(), ..before };
        let heap_store =
            HeapStoreHealth { backend: self.stores.heaps.backend().into(), ok: heaps.is_none(), damaged: damaged.len() as u64 };
        let problems = [engine, heaps, records, outputs].into_iter().flatten().chain(contexts).collect();
        Health::of(context_store, heap_store, engine_health, problems)
    }

    /// Whether calls can be served. Contexts are not needed.
    pub async fn is_ready(&self) -> bool {
        self.probe().await.iter().all(Option::is_none)
    }

    /// Problems of engine, heap store, records and outputs.
    async fn probe(&self) -> [Option<String>; 4] {
        let (store, outputs) = (self.stores.heaps.clone(), self.stores.outputs.clone());
        tokio::join!(
            check_engine(self.engine()),
            check("heap store", blocking(move || Ok(store.check()?))),
            check("metadata", self.stores.records.check()),
            check("outputs", blocking(move || Ok(outputs.check()?)))
        )
        .into()
    }

    async fn context_health(&self) -> (ContextHealth, Vec<String>) {
        let Some(conversations) = self.stores.conversations.get() else { return (ContextHealth::none(), Vec::new()) };
        let found = conversations.contexts().health().await;
        let shown = ContextHealth {
            backend: found.backend.into(),
            session_count: found.session_count,
            max_sessions: found.max_sessions,
            heap_used_mb: found.heap_used_mb,
            heap_pressure_pct: found.heap_pressure_pct,
            redis_ok: found.redis_ok,
        };
        (shown, found.degraded.into_iter().map(|problem| format!("context store: {problem}")).collect())
    }
}
