//! MCP: the API's operations as tools, over stdio, Streamable HTTP and the older HTTP+SSE transport.
//!
//! ```text
//! stdio ───┐
//! /sse ────┼─► json_rpc (strict parsing) ─► rmcp (all protocol versions) ─► session_handler ─► handler ─► api
//! /mcp ────┘
//! ```

mod batch;
mod connections;
mod dialect;
mod error;
mod execution_task;
mod handler;
pub mod http;
mod initialize;
mod json_rpc;
mod legacy_tasks;
mod listen;
mod listen_http;
mod message_size;
mod progress;
mod resources;
mod result_metadata;
mod rmcp_http_errors;
mod run_log;
mod session_handler;
mod session_metadata;
mod session_methods;
pub mod sse;
pub mod stdio;
mod tool_result;
mod tools;

use std::time::Duration;

/// The interval of keep-alive comments on an idle stream, so that proxies do not close it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Open connections per transport.
const CONNECTIONS_MAX: usize = 2_000;
