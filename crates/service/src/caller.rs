//! Who calls: on whose behalf, in which session, over which connection.

use heapstead_engine::Lane;
use heapstead_types::{Principal, SessionName};

#[derive(Debug, Clone, Default)]
pub struct Caller {
    pub principal: Principal,
    /// The session that the connection names.
    pub session: Option<SessionName>,
    /// `X-MCP-*` headers of the connection, which code reads as `mcp.headers`.
    pub headers: Vec<(String, String)>,
    /// Callers of different lanes take turns when the queue is long.
    pub lane: Lane,
}
