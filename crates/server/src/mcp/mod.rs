//! MCP: the API's operations as tools, over stdio, Streamable HTTP and the older HTTP+SSE transport.
//!
//! ```text
//! stdio ───┐
//! /sse ────┼─► json_rpc (strict parsing) ─► rmcp (all protocol versions) ─► session_handler ─► handler ─► api
//! /mcp ────┘
//! ```

mod batch;
mod connection_memory;
mod connection_table;
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
mod pending_place;
mod progress;
pub mod resources;
mod response_room;
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

pub use connection_memory::CONNECTION_BYTES_MAX;
pub use json_rpc::{BATCH_MAX, Batches, Received, read as read_message};
pub use listen_http::EventId;
pub use session_metadata::{Era, SESSION_ID_CHARS_MAX};

use std::time::Duration;

/// The interval of keep-alive comments on an idle stream, so that proxies do not close it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Messages that rmcp keeps per stream of a connection, for a client that resumes it.
const REPLAYED_MAX: usize = 4;
