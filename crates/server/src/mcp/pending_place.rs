//! JSON-RPC requests that are not answered yet, counted for their owner until their handlers end. Also when the client has left meanwhile: up to
//! MCP 2025-11-25 a lost HTTP connection cancels nothing, and over SSE the HTTP request ends before the answer.

use crate::edge::Edge;
use heapstead_service::{Exhausted, Portion, ServiceError};
use heapstead_types::{BudgetHolder, ErrorCode};
use std::sync::Arc;

/// The place of a request, in its extensions: it is released when the handler drops them.
#[derive(Debug, Clone)]
pub struct PendingPlace {
    _place: Arc<Portion>,
}

impl PendingPlace {
    pub fn take(edge: &Edge, holder: BudgetHolder) -> Result<Self, ServiceError> {
        let pending = &edge.budgets.pending;
        let refused = |exhausted| match exhausted {
            Exhausted::ByHolder => format!(
                "{} MCP requests of yours are pending, as many as are left for other owners: wait for their answers, or cancel some",
                pending.taken_by(&holder)
            ),
            Exhausted::ByAll => format!("{} MCP requests are pending, which is the maximum", pending.total()),
        };
        let place = pending.take(holder.clone(), 1).map_err(|exhausted| ServiceError::busy(ErrorCode::Busy, refused(exhausted)))?;
        Ok(Self { _place: Arc::new(place) })
    }
}
