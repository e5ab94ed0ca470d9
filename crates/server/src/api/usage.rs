//! What the caller has stored. Not a tool: agents don't manage storage.

use super::operation::{Description, Operation};
use heapstead_service::Service;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct ShowUsage {}

pub fn show(service: &Service) -> Operation {
    let description = Description::endpoint(
        "storage_usage",
        "Show storage usage",
        "Returns how many bytes you have stored, and how many you may have. Deleting executions, sessions, heaps and tags makes room at once.",
        ("GET", "/api/usage"),
    )
    .read_only();
    Operation::new(service, description, |service, caller, _: ShowUsage| async move { service.stores().usage(&caller).await })
}
