//! The older transport: `GET /sse` for what the server says, `POST /message` for what the client says.

use crate::edge::Edge;
use axum::Router;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub fn router(_edge: Arc<Edge>, _shutdown: CancellationToken) -> Router {
    Router::new()
}
