//! Tests of MCP on the running server: with a hand-written client on every transport and version, and with third-party clients.

mod abuse;
mod batches;
mod caller;
mod clients;
mod conformance;
mod error_codes;
#[path = "../server/fixture.rs"]
#[allow(dead_code, reason = "the tests of REST use the rest")]
mod fixture;
mod lifecycle;
mod memory;
mod messages;
mod peer;
mod progress;
mod resources;
mod shutdown;
mod tasks;
mod tools;
