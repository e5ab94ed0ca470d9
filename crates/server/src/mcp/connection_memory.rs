//! How much memory an MCP connection may hold while it is open, beside its requests in progress, whose bodies and number are bounded elsewhere.

use super::REPLAYED_MAX;
use crate::http::HEAD_BYTES_MAX;
use heapstead_service::CONNECTION_STATE_BYTES_MAX;

/// Buffers, tasks and tables of rmcp and of ours for one connection, and the name and version of its client.
const FIXED_BYTES_MAX: usize = 128 << 10;
/// The `X-MCP-*` headers of the request that opened it, as they are kept for its runs.
const HEADERS_BYTES_MAX: usize = 2 * HEAD_BYTES_MAX;
/// A log message has at most 16,000 characters (`service/src/events/hub/event.rs`).
const NOTIFICATION_BYTES_MAX: usize = 64 << 10;

/// After `initialize`, before anything else.
pub const OPENED_BYTES_MAX: usize = FIXED_BYTES_MAX + HEADERS_BYTES_MAX;
/// With everything that its requests can add: the names of logical sessions, and the notifications that rmcp keeps for a client that resumes
/// its stream. Answers to requests are not kept, and a cancelled call is not answered. Events and subscriptions count separately
/// (`service/src/events/hub/mod.rs`).
pub const CONNECTION_BYTES_MAX: usize = OPENED_BYTES_MAX + CONNECTION_STATE_BYTES_MAX + REPLAYED_MAX * NOTIFICATION_BYTES_MAX;
