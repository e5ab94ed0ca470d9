//! Tests with clients that name their sessions in `_meta`, and with listeners of those sessions.

#[path = "../server/fixture.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod fixture;
#[path = "../mcp/peer.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod peer;

mod client;
mod conformance;
mod data_layer;
mod database_accesses;
mod headers;
mod listening;
mod many;
mod owners;
mod run_logs;
mod states;
