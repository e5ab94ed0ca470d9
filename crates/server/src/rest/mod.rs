//! REST: one endpoint per operation of the API, made from its table.

use crate::edge::Edge;
use axum::Router;
use std::sync::Arc;

pub fn router(_edge: Arc<Edge>) -> Router {
    Router::new()
}
