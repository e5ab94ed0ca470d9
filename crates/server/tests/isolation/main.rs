//! Another owner's objects appear not to exist: every resource, verb and transport, driven by one table.

#[path = "../sessions/client.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod client;
#[path = "../server/fixture.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod fixture;
#[path = "../mcp/peer.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod peer;

mod caller;
mod lists;
mod matrix;
mod owned_objects;
mod owners;
mod pairs;
mod rows;
mod same_heap;
mod same_heap_timing;
mod sharing;
mod subscriptions;
mod timing;
