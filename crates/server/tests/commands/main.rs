//! The command line around the server: flags from every source, commands against a server and against the stores, and what people are told to type.

#[path = "../common/mod.rs"]
mod common;
#[path = "../server/fixture.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod fixture;

mod config;
mod executions;
mod flags;
mod heaps;
mod neighbours;
mod reference;
mod start;
mod tour;
