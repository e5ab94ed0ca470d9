//! Streamable HTTP on `/mcp`, for every protocol version.

use crate::edge::Edge;
use axum::Router;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub fn router(_edge: Arc<Edge>, _shutdown: CancellationToken) -> Router {
    Router::new()
}
