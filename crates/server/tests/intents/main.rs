//! Logical sessions, which a host names by intent, on the running server: one per task, across connections, processes and heaps.

#[path = "../server/fixture.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod fixture;
#[path = "../mcp/peer.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod peer;

mod catalogs;
mod continuity;
mod identity;
mod names;
mod owner;
mod previews;
mod quotas;
mod upgrade;
mod waves;
