//! Whether the server works: `health_check`.

use super::operation::{Description, FailureShape, Operation, Route};
use heapstead_service::{Service, Stateless};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct HealthCheck {}

fn description() -> Description {
    Description {
        name: "health_check",
        title: "Check health",
        text: "Whether the server and everything it stands on works now, found out by trying it: context store, heap store and engine. It is an error when \
               something does not.",
        is_tool: true,
        read_only: true,
        route: Route { method: "GET", path: "/api/health" },
        failure: FailureShape::Error,
    }
}

pub fn stateful(service: &Service) -> Operation {
    Operation::new(service, description(), |service, _, _: HealthCheck| async move { Ok(service.health().await) })
}

pub fn stateless(stateless: &Stateless) -> Operation {
    Operation::new(stateless, description(), |stateless, _, _: HealthCheck| async move { Ok(stateless.health().await) })
}
