//! The HTTP layer that every request passes, whatever its protocol: access, limits, timeouts and error responses.
//!
//! ```text
//! listener (connections per address, timeouts, reading rate) ─► catch panics ─► guard (Host, Origin) ─► authenticate (requests per owner)
//! ─► routes ─► body (size, rate, memory per owner) ─► handler
//! ```

mod accept;
mod authenticate;
mod body;
mod budgets;
mod caller;
mod connection_place;
mod guard;
mod json;
mod listener;
mod pace;
mod problem;
mod sent_body;
mod shutdown;
mod write_stall_timeout;

pub use accept::require as require_accept;
pub use body::{BodyLimits, IncomingBody, JSON_BYTES_MAX, buffered};
pub use budgets::{Budgets, ClientLimits};
pub use caller::{budget_holder, caller, principal};
pub use guard::check as check_access;
pub use json::{DEPTH_MAX as JSON_DEPTH_MAX, VALUES_MAX as JSON_VALUES_MAX, aside, object as json_object, value as json_value};
pub use listener::{HEAD_BYTES_MAX, serve};
pub use pace::SEND_PACE;
pub use problem::{Problem, TYPE_PREFIX as PROBLEM_TYPE_PREFIX};
pub use sent_body::{PartRooms, SHORT_RESPONSE_BYTES, no_room};
pub use shutdown::Shutdown;

use crate::edge::Edge;
use axum::http::{Method, StatusCode, Uri};
use axum::{Router, middleware};
use std::any::Any;
use std::sync::Arc;
use tower_http::catch_panic::CatchPanicLayer;

/// The routes with all middleware: unknown paths and methods have distinct errors, and requests that are not allowed are refused.
pub fn guarded(routes: Router, edge: &Arc<Edge>) -> Router {
    routes
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method)
        .layer(middleware::from_fn_with_state(edge.clone(), authenticate::authenticate))
        .layer(middleware::from_fn_with_state(edge.clone(), guard::guard))
        .layer(CatchPanicLayer::custom(panicked))
}

async fn unknown_path(uri: Uri) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there is no endpoint at {}: see /docs", uri.path()))
}

async fn unknown_method(method: Method, uri: Uri) -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("{method} is not allowed on {}: see the `Allow` header", uri.path()))
}

/// A panic is a bug. The client still gets a response, and other requests are not affected.
fn panicked(panic: Box<dyn Any + Send>) -> axum::response::Response {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(panic = text.unwrap_or("?"), "a request panicked");
    let problem = Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal server error: see the server's log");
    axum::response::IntoResponse::into_response(problem)
}
