//! MCP: the API's operations as tools, over stdio, Streamable HTTP and the older HTTP with server-sent events.
//!
//! ```text
//! stdio ───┐
//! /sse ────┼─► wire (JSON messages, strictly read) ─► rmcp (lifecycles of all versions) ─► handler ─► api
//! /mcp ────┘
//! ```

mod answer;
mod batch;
mod carries;
mod connections;
mod dialect;
mod error;
mod execution_task;
mod handler;
pub mod http;
mod http_errors;
mod introduction;
mod legacy_tasks;
mod listen;
mod listen_http;
mod message_size;
mod progress;
mod resources;
mod run_log;
mod session_meta;
mod session_methods;
mod sessioned;
pub mod sse;
pub mod stdio;
mod tools;
mod wire;

use std::time::Duration;

/// Between two signs of life on a stream that has nothing to say, so that nothing between us and the client takes it for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Connections that are open at once, on each transport; more are asked to come back later.
const CONNECTIONS_MAX: usize = 2_000;
