//! Authenticates every request before it is handled, attaches its identity to it, and counts it for its owner until its response is sent.

use super::connection_place::ConnectionPlace;
use super::sent_body::SentBody;
use super::{Problem, budget_holder};
use crate::auth::Refusal;
use crate::edge::Edge;
use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use heapstead_service::{Exhausted, Portion};
use std::sync::Arc;

/// Paths without authentication: the same on every server, or only showing that the server is up. All other paths need it, including
/// unknown ones.
pub const OPEN: [&str; 7] = ["/", "/docs", "/docs/docs.js", "/docs/docs.css", "/api-doc/openapi.json", "/healthz", "/readyz"];

/// Keeps the place of a request. A type of its own: the memory of its body is kept in the same way.
#[derive(Clone)]
struct RequestPlace {
    _held: Arc<Portion>,
}

pub async fn authenticate(State(edge): State<Arc<Edge>>, mut request: Request, next: Next) -> Response {
    if OPEN.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let has_body = !request.body().is_end_stream();
    let refuse = |problem: Problem| if has_body { problem.closing() } else { problem }.into_response();
    match edge.authenticator.identity(request.headers()).await {
        Ok(identity) => {
            // Removed, so that no later code can return or log it.
            request.headers_mut().remove(header::AUTHORIZATION);
            request.extensions_mut().insert(identity.principal);
            request.extensions_mut().insert(identity.permissions);
            match place(&edge, &request) {
                Ok((place, room)) => {
                    // Also held by the request, because rmcp may go on with one whose client has left.
                    request.extensions_mut().insert(RequestPlace { _held: place.clone() });
                    SentBody::of(next.run(request).await, place, room)
                }
                Err(problem) => refuse(problem),
            }
        }
        Err(refusal) => {
            if let Refusal::Invalid(reason) = &refusal {
                tracing::debug!(%reason, path = request.uri().path(), "a request was refused");
            }
            refuse(Problem::from(refusal))
        }
    }
}

/// A place among the requests in progress, and empty room for the response. Long polls and event streams hold them as long as they last.
fn place(edge: &Edge, request: &Request) -> Result<(Arc<Portion>, Portion), Problem> {
    let holder = budget_holder(request.extensions())?;
    if let Some(connection) = request.extensions().get::<ConnectionPlace>() {
        connection.count_for(&holder)?;
    }
    let room = edge.budgets.responses.portion(holder.clone());
    let place = edge.budgets.requests.take(holder.clone(), 1).map_err(|exhausted| {
        Problem::busy(match exhausted {
            Exhausted::ByHolder => format!(
                "{} requests and event streams of yours are in progress, as many as are left for other owners: close some, or retry later",
                edge.budgets.requests.taken_by(&holder)
            ),
            Exhausted::ByAll => {
                format!("{} requests and event streams are in progress, which is the maximum", edge.budgets.requests.total())
            }
        })
    })?;
    Ok((Arc::new(place), room))
}
