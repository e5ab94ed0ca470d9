//! Authentication on the running server: every accepted kind of credentials, and every reason for a refusal.

#[path = "../common/mod.rs"]
mod common;
#[path = "../server/fixture.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod fixture;
#[path = "../mcp/peer.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod peer;

mod commands;
mod connections;
mod exposure;
mod issuer;
mod jwt;
mod logs;
mod pending;
mod rotation;
mod routes;
mod run_shares;
mod shares;
mod tokens;
