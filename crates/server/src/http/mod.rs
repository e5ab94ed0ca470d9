//! What every request over HTTP goes through, whichever protocol it speaks: who may ask, how much, how slowly, and how it is refused.
//!
//! ```text
//! listener (bound, timeouts) ─► panics ─► guard (Host, Origin) ─► authenticate (who) ─► routes ─► body (bound, pace, budget) ─► handler
//! ```

mod accept;
mod authenticate;
mod body;
mod caller;
mod guard;
mod json;
mod listener;
mod patience;
mod problem;
mod shutdown;

pub use accept::require as require_accept;
pub use body::{JSON_BYTES_MAX, buffered};
pub use caller::{caller, principal};
pub use json::{object as json_object, value as json_value};
pub use listener::serve;
pub use problem::Problem;
pub use shutdown::Shutdown;

use crate::edge::Edge;
use axum::http::{Method, StatusCode, Uri};
use axum::{Router, middleware};
use std::any::Any;
use std::sync::Arc;
use tower_http::catch_panic::CatchPanicLayer;

/// Routes as they are served: unknown paths and methods are told apart, and nobody gets in whom the operator did not let in.
pub fn guarded(routes: Router, edge: &Arc<Edge>) -> Router {
    routes
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method)
        .layer(middleware::from_fn_with_state(edge.clone(), authenticate::authenticate))
        .layer(middleware::from_fn_with_state(edge.clone(), guard::guard))
        .layer(CatchPanicLayer::custom(panicked))
}

async fn unknown_path(uri: Uri) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there is nothing at {}: /docs tells what there is", uri.path()))
}

async fn unknown_method(method: Method, uri: Uri) -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("{method} is not possible on {}: `Allow` tells what is", uri.path()))
}

/// This is a bug; whoever asked gets an answer all the same, and everybody else goes on.
fn panicked(panic: Box<dyn Any + Send>) -> axum::response::Response {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(panic = text.unwrap_or("?"), "a request panicked");
    let problem = Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the server made a mistake, which it has logged");
    axum::response::IntoResponse::into_response(problem)
}
