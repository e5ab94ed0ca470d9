//! Whether everything that is needed works now, found out by trying it.

use crate::executions::blocking;
use crate::{End, Service};
use heapstead_engine::{Engine, Execution, Job, Kind, Lane, Refused};
use heapstead_types::{HeapKey, Limits};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Display;
use std::time::Duration;

/// What a component has to answer within.
const CHECK_MAX: Duration = Duration::from_secs(5);

/// The state of the server and of what it stands on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Health {
    /// `ok`, or `degraded` when a component is down.
    pub status: HealthStatus,
    pub components: Components,
    /// Heaps that were found damaged. They are left as they are, for inspection.
    #[schemars(with = "Vec<String>")]
    pub damaged_heaps: Vec<HeapKey>,
    /// Executions that run now, and that wait for their turn.
    pub running: usize,
    pub queued: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    Ok,
    Degraded,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Components {
    pub engine: Component,
    pub heaps: Component,
    pub metadata: Component,
    pub outputs: Component,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Component {
    pub ok: bool,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Component {
    /// What a check found, if it came to an end in time: who asks about health waits for nobody.
    async fn check<E: Display>(check: impl Future<Output = Result<(), E>>) -> Self {
        let error = match tokio::time::timeout(CHECK_MAX, check).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {} s", CHECK_MAX.as_secs())),
        };
        Self { ok: error.is_none(), error }
    }

    /// Whether code can be run: runs some. A queue that is full says nothing against it.
    pub async fn engine(engine: &Engine) -> Self {
        let limits = Limits { timeout_secs: CHECK_MAX.as_secs() as u32, ..Limits::default() };
        let job = Job { code: "1".into(), kind: Kind::Stateless, limits, headers: Vec::new(), lane: Lane(u64::MAX) };
        Self::check(async {
            match engine.submit(job).map(Execution::finish) {
                Err(Refused::QueueFull { .. }) => Ok(()),
                Err(refused) => Err(refused.to_string()),
                Ok(finished) => End::from(finished.await.1).error().map_or(Ok(()), Err),
            }
        })
        .await
    }
}

impl Service {
    pub async fn health(&self) -> Health {
        // Before the engine is tried, which counts too.
        let load = self.engine().load();
        let store = self.0.heaps.clone();
        let outputs = self.0.outputs.clone();
        let (engine, heaps, metadata, outputs) = tokio::join!(
            Component::engine(self.engine()),
            Component::check(blocking(move || Ok(store.check()?))),
            Component::check(self.0.metadata.check()),
            Component::check(blocking(move || Ok(outputs.check()?)))
        );
        let all_ok = [&engine, &heaps, &metadata, &outputs].iter().all(|component| component.ok);
        Health {
            status: if all_ok { HealthStatus::Ok } else { HealthStatus::Degraded },
            components: Components { engine, heaps, metadata, outputs },
            damaged_heaps: self.running.heaps.damaged().await,
            running: load.running,
            queued: load.queued,
        }
    }
}
