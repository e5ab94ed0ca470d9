//! Tests of the command line: flags from every source, commands on a server and on the stores, and the printed instructions.

#[path = "../common/mod.rs"]
mod common;
#[path = "../server/fixture.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod fixture;
#[path = "../../../store/tests/contract/s3_server.rs"]
#[allow(dead_code, reason = "the store has its own uses for it")]
mod s3_server;
#[path = "../common/terminal.rs"]
mod terminal;

mod config;
mod executions;
mod flags;
mod heaps;
mod peers;
mod reference;
mod repl;
mod s3;
mod sessions;
mod start;
mod tour;
