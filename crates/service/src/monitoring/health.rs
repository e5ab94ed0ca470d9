//! Health: every component is tried. Operators see the load of all owners; others see their own, and nothing that depends on other owners.

use super::live_health::{LIVE_SESSIONS, LiveHealth};
use super::metrics::{Meter, check_may_watch};
use crate::error::blocking;
use crate::executions::{ExecutionOutcome, iso_8601};
use crate::{Caller, Service};
use heapstead_engine::{Engine, Job, Kind};
use heapstead_types::limits::HEAP_MB_MIN;
use heapstead_types::{BudgetHolder, Limits};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Display;
use std::time::Duration;

/// How long a component may take to answer.
const CHECK_MAX: Duration = Duration::from_secs(5);

/// How the problems of the context store begin. Contexts are not needed to serve calls.
const CONTEXT_STORE: &str = "context store";

/// The state of the server and its components.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Health {
    /// `degraded` if a store can't be used, contexts take over 90 % of their memory or have reached their maximum number, heaps of live sessions
    /// can't be stored because of the server, or no code can be run.
    pub status: HealthStatus,
    pub context_store: ContextHealth,
    pub heap_store: HeapStoreHealth,
    pub engine: EngineHealth,
    pub live_sessions: LiveHealth,
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
    /// Null while they are being counted, and for callers who are not operators.
    pub session_count: Option<u64>,
    /// Null if there is no limit.
    pub max_sessions: Option<u64>,
    /// Memory of the store, not of the process. Null for callers who are not operators.
    pub heap_used_mb: Option<u64>,
    /// Null for callers who are not operators.
    pub heap_pressure_pct: Option<u64>,
    /// True if Redis is not used.
    pub redis_ok: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeapStoreHealth {
    /// `folder`, `s3` or `none`.
    pub backend: String,
    pub ok: bool,
    /// Number of damaged heaps. They are left as they are, for inspection; the log names them. Null for callers who are not operators.
    pub damaged: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EngineHealth {
    /// Whether code could be run just now.
    pub ok: bool,
    /// Running and queued executions: of all owners for operators, of the caller for others.
    pub running: u64,
    pub queued: u64,
    pub v8: String,
    /// Whether V8 optimises stateful code: `on`, `off` (`--stateful-jit`), or `unavailable` with the reason; then it is interpreted.
    pub stateful_jit: String,
}

/// Runs a check with a time limit. Returns the problem, if there is one.
async fn check<E: Display>(name: &str, check: impl Future<Output = Result<(), E>>) -> Option<String> {
    match tokio::time::timeout(CHECK_MAX, check).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("{name}: {error}")),
        Err(_) => Some(format!("{name}: no answer within {} s", CHECK_MAX.as_secs())),
    }
}

/// Runs some code, regardless of the queue. Callers share it, because it runs one at a time.
async fn check_engine(engine: &Engine, meter: &Meter) -> Option<String> {
    let limits = Limits { heap_mb: HEAP_MB_MIN, timeout_secs: CHECK_MAX.as_secs() as u32, ..Limits::default() };
    let job = Job { code: "1".into(), kind: Kind::Stateless, limits, headers: Vec::new(), replay: None, holder: BudgetHolder::default() };
    let run = async { ExecutionOutcome::from(engine.run_unqueued(job).await.1).error().map_or(Ok(()), Err) };
    meter.engine_check.result(check("engine", run)).await
}

impl Health {
    /// Of a stateless server.
    pub async fn stateless(engine: &Engine, meter: &Meter, caller: &Caller) -> Self {
        let running = EngineHealth::before(engine, caller);
        let problem = check_engine(engine, meter).await;
        let heap_store = HeapStoreHealth { backend: "none".into(), ok: true, damaged: Some(0) };
        let engine_health = EngineHealth { ok: problem.is_none(), ..running };
        Self::of(ContextHealth::none(), heap_store, (engine_health, LiveHealth::none()), problem.into_iter().collect()).shown_to(caller)
    }

    pub async fn engine_works(engine: &Engine, meter: &Meter) -> bool {
        check_engine(engine, meter).await.is_none()
    }

    /// Without what depends on other owners, unless the caller may watch them. Problems are reduced to the name of their component: the texts
    /// name paths and load.
    fn shown_to(self, caller: &Caller) -> Self {
        if check_may_watch(&caller.principal).is_ok() {
            return self;
        }
        let name = |problem: &String| problem.split(':').next().unwrap_or_default().to_owned();
        let unusable = self.problems.iter().map(name).filter(|name| name != CONTEXT_STORE && name != LIVE_SESSIONS);
        let problems = unusable.map(|name| format!("{name}: it does not work; the operator can see why")).collect();
        let context_store = ContextHealth { session_count: None, heap_used_mb: None, heap_pressure_pct: None, ..self.context_store };
        Self::of(context_store, HeapStoreHealth { damaged: None, ..self.heap_store }, (self.engine, self.live_sessions), problems)
    }

    fn of(
        context_store: ContextHealth,
        heap_store: HeapStoreHealth,
        (engine, live_sessions): (EngineHealth, LiveHealth),
        problems: Vec<String>,
    ) -> Self {
        let status = if problems.is_empty() { HealthStatus::Healthy } else { HealthStatus::Degraded };
        Self { status, context_store, heap_store, engine, live_sessions, problems, timestamp: iso_8601(Timestamp::now()) }
    }
}

impl EngineHealth {
    /// Counted before the engine is tried, which would count too.
    fn before(engine: &Engine, caller: &Caller) -> Self {
        let load = match check_may_watch(&caller.principal) {
            Ok(()) => engine.load(),
            Err(_) => engine.load_of(&caller.budget_holder()),
        };
        Self {
            ok: true,
            running: load.running as u64,
            queued: load.queued as u64,
            v8: engine.info().id.v8.clone(),
            stateful_jit: engine.stateful_jit().to_string(),
        }
    }
}

impl ContextHealth {
    fn none() -> Self {
        Self {
            backend: "none".into(),
            session_count: Some(0),
            max_sessions: None,
            heap_used_mb: Some(0),
            heap_pressure_pct: Some(0),
            redis_ok: true,
        }
    }
}

impl Service {
    pub async fn health(&self, caller: &Caller) -> Health {
        let before = EngineHealth::before(self.engine(), caller);
        let ([engine, heaps, records, outputs], (context_store, contexts), damaged) =
            tokio::join!(self.probe(), self.context_health(), self.runtime.heaps.damaged(CHECK_MAX));
        let engine_health = EngineHealth { ok: engine.is_none(), ..before };
        let heap_store =
            HeapStoreHealth { backend: self.stores.heaps.backend().into(), ok: heaps.is_none(), damaged: Some(damaged.len() as u64) };
        let (live_sessions, live) = self.live_health(caller);
        let problems = [engine, heaps, records, outputs, live].into_iter().flatten().chain(contexts).collect();
        Health::of(context_store, heap_store, (engine_health, live_sessions), problems).shown_to(caller)
    }

    /// Whether calls can be served. Contexts are not needed.
    pub async fn is_ready(&self) -> bool {
        self.probe().await.iter().all(Option::is_none)
    }

    /// Problems of engine, heap store, records and outputs.
    async fn probe(&self) -> [Option<String>; 4] {
        let (store, outputs) = (self.stores.heaps.clone(), self.stores.outputs.clone());
        tokio::join!(
            check_engine(self.engine(), &self.runtime.meter),
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
            heap_used_mb: Some(found.heap_used_mb),
            heap_pressure_pct: Some(found.heap_pressure_pct),
            redis_ok: found.redis_ok,
        };
        (shown, found.degraded.into_iter().map(|problem| format!("{CONTEXT_STORE}: {problem}")).collect())
    }
}
