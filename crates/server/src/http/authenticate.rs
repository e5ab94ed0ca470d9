//! Authenticates every request before it is handled, and attaches the principal to it.

use super::Problem;
use crate::auth::Refusal;
use crate::edge::Edge;
use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Paths without authentication: the same on every server, or only showing that the server is up. All other paths need it, including
/// unknown ones.
pub const OPEN: [&str; 7] = ["/", "/docs", "/docs/docs.js", "/docs/docs.css", "/api-doc/openapi.json", "/healthz", "/readyz"];

pub async fn authenticate(State(edge): State<Arc<Edge>>, mut request: Request, next: Next) -> Response {
    if OPEN.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    match edge.authenticator.principal(request.headers()).await {
        Ok(principal) => {
            // Removed, so that no later code can return or log it.
            request.headers_mut().remove(header::AUTHORIZATION);
            request.extensions_mut().insert(principal);
            next.run(request).await
        }
        Err(refusal) => {
            if let Refusal::Invalid(reason) = &refusal {
                tracing::debug!(%reason, path = request.uri().path(), "a request was refused");
            }
            let problem = Problem::from(refusal);
            if request.body().is_end_stream() { problem } else { problem.closing() }.into_response()
        }
    }
}
