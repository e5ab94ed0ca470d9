//! What all requests share and no owner may use up. What each one bounds: docs/limits.md, "Per owner".

use crate::rest::TRANSFERS_MAX;
use heapstead_service::Budget;
use std::sync::Arc;

/// What the operator allows all clients together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// TCP connections of a port.
    pub connections_max: u64,
    /// Request bodies in memory.
    pub body_bytes_max: u64,
    /// Responses in memory that have not been sent yet.
    pub response_bytes_max: u64,
}

impl ClientLimits {
    /// Requests in progress, event streams included. Less than the connections that one address may open, because all owners may come through
    /// one proxy.
    pub fn requests_max(&self) -> u64 {
        self.connections_max / 2
    }

    /// Open MCP connections of each transport.
    pub fn mcp_connections_max(&self) -> u64 {
        self.connections_max / 8
    }
}

pub struct Budgets {
    pub limits: ClientLimits,
    pub requests: Arc<Budget>,
    /// JSON-RPC requests whose handlers have not ended, over all transports.
    pub pending: Arc<Budget>,
    /// Bytes of request bodies in memory.
    pub bodies: Arc<Budget>,
    /// Bytes of responses that have not been sent.
    pub responses: Arc<Budget>,
    /// Heap files that are being sent or received.
    pub transfers: Arc<Budget>,
}

impl Budgets {
    pub fn new(limits: ClientLimits) -> Self {
        Self {
            limits,
            requests: Budget::new(limits.requests_max()),
            pending: Budget::new(limits.requests_max()),
            bodies: Budget::new(limits.body_bytes_max),
            responses: Budget::new(limits.response_bytes_max),
            transfers: Budget::new(TRANSFERS_MAX),
        }
    }
}
