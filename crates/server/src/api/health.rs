//! Health of the server: `health_check`.

use super::operation::{Description, Operation};
use heapstead_service::{Service, Stateless};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct HealthCheck {}

fn description() -> Description {
    let text = "Checks whether the server can run code and use its stores, by trying each of them. The result is an error if something does not work.";
    Description {
        is_recorded: false,
        reports_failure: |answer| answer["status"] == "degraded",
        ..Description::tool("health_check", "Check health", text, ("GET", "/api/health")).read_only()
    }
}

pub fn stateful(service: &Service) -> Operation {
    Operation::new(service, description(), |service, caller, _: HealthCheck| async move { Ok(service.health(&caller).await) })
}

pub fn stateless(stateless: &Stateless) -> Operation {
    Operation::new(stateless, description(), |stateless, caller, _: HealthCheck| async move { Ok(stateless.health(&caller).await) })
}
