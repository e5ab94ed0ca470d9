//! Whether everything that is needed works now, found out by trying it.

use crate::Service;
use crate::executions::blocking;
use schemars::JsonSchema;
use serde::Serialize;

/// The state of the server and of what it stands on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Health {
    /// `ok`, or `degraded` when a component is down.
    pub status: HealthStatus,
    pub components: Components,
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
    pub fn from_check<E: std::fmt::Display>(check: Result<(), E>) -> Self {
        match check {
            Ok(()) => Self { ok: true, error: None },
            Err(error) => Self { ok: false, error: Some(error.to_string()) },
        }
    }
}

impl Service {
    pub async fn health(&self) -> Health {
        let store = self.0.heaps.clone();
        let outputs = self.0.outputs.clone();
        let (heaps, metadata, outputs) = tokio::join!(
            blocking(move || Ok(store.check()?)),
            self.0.metadata.check(),
            blocking(move || Ok(outputs.check()?))
        );
        let load = self.running.engine.load();
        let components = Components {
            engine: Component::from_check(Ok::<(), String>(())),
            heaps: Component::from_check(heaps),
            metadata: Component::from_check(metadata),
            outputs: Component::from_check(outputs),
        };
        let all_ok = [&components.engine, &components.heaps, &components.metadata, &components.outputs].iter().all(|component| component.ok);
        let status = if all_ok { HealthStatus::Ok } else { HealthStatus::Degraded };
        Health { status, components, running: load.running, queued: load.queued }
    }
}
