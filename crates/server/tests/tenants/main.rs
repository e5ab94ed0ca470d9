//! Two well-behaved tenants and an abusive one on one server: whatever the third does, nothing of the others fails, their requests take about
//! as long as without it, and the server's memory stays within the bound that its flags give.

#[path = "../server/fixture.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod fixture;
#[path = "../mcp/peer.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod peer;

mod abuse;
mod abuses;
mod latency;
mod load;
mod memory_bound;
mod neighbour;
mod place;
