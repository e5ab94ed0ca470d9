//! REST: one endpoint per operation, generated from the table of operations, and a few that do not exchange JSON.

mod arguments;
mod events;
mod heap_files;
mod monitoring;
mod openapi;
mod web_pages;

pub use arguments::from_query;
pub use heap_files::{ENGINE_HEADER, TRANSFER_BYTES_MAX, TRANSFERS_MAX};

use crate::api::{Operation, Success};
use crate::edge::Edge;
use crate::http::{self, BodyLimits, JSON_BYTES_MAX, Problem, Shutdown};
use crate::long_results;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Router, middleware};
use heapstead_service::Caller;
use heapstead_types::BudgetHolder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

const JSON: &str = "application/json";

/// State of all endpoints.
#[derive(Clone)]
struct Rest {
    edge: Arc<Edge>,
    shutdown: Shutdown,
}

pub fn router(edge: Arc<Edge>, shutdown: Shutdown) -> Router {
    let rest = Rest { edge, shutdown };
    let mut endpoints: BTreeMap<&'static str, MethodRouter> = BTreeMap::new();
    for operation in rest.edge.api.operations() {
        let endpoint = endpoint(&rest, operation);
        let existing = endpoints.remove(operation.route.path).unwrap_or_default();
        endpoints.insert(operation.route.path, existing.merge(endpoint));
    }
    let mut routes = endpoints.into_iter().fold(Router::new(), |routes, (path, endpoint)| routes.route(path, endpoint));
    routes = routes.layer(middleware::from_fn_with_state(BodyLimits::new(&rest.edge, JSON_BYTES_MAX), http::buffered));
    if rest.edge.service().is_some() {
        routes = routes.merge(events::router(&rest)).merge(heap_files::router(&rest));
    }
    routes.merge(openapi::router(&rest)).merge(monitoring::router(&rest)).merge(web_pages::router())
}

fn endpoint(rest: &Rest, operation: &Arc<Operation>) -> MethodRouter {
    let (rest, operation) = (rest.clone(), operation.clone());
    let method = match operation.route.method {
        "POST" => MethodFilter::POST,
        "PUT" => MethodFilter::PUT,
        "DELETE" => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    };
    on(method, move |request: Request| answer(rest.clone(), operation.clone(), request))
}

async fn answer(rest: Rest, operation: Arc<Operation>, request: Request) -> Result<Response, Problem> {
    let shape = operation.failure;
    try_answer(rest, operation, request).await.map_err(|problem| problem.in_shape(shape))
}

async fn try_answer(rest: Rest, operation: Arc<Operation>, request: Request) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    http::require_accept(&parts.headers, JSON)?;
    let caller = Caller { names_sessions: true, ..http::caller(&rest.edge, &parts)? };
    let holder = caller.budget_holder();
    let arguments = arguments::collect(&operation, &mut parts, body).await?;
    let Success { body, pending, stream } = rest.in_time(operation.call(caller, arguments)).await??;
    let body = match stream {
        Some(stream) => Body::from_stream(stream.into_stream()),
        None => rest.in_json(holder, body).await?,
    };
    Ok(json(if pending { StatusCode::ACCEPTED } else { StatusCode::OK }, body))
}

impl Rest {
    /// The body of a response. A long one counts from now on, before it is in JSON, and is refused if there is no room for it.
    async fn in_json(&self, holder: BudgetHolder, answer: Value) -> Result<Body, Problem> {
        let bytes = long_results::bytes_of(&answer);
        let _long = self.edge.long_results.acquire(holder, bytes).await?;
        Ok(Body::from(http::aside(bytes, || answer.to_string())))
    }

    /// Completes the work in time, or fails if the server shuts down first.
    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, Problem> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.shutdown.last_call() => Err(Problem::unavailable("the server is shutting down")),
        }
    }
}

fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = (status, body.into()).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
