//! Endpoints for monitoring: `/healthz` (alive), `/readyz` (can serve) and `/metrics`.

use super::Rest;
use crate::http::{self, Problem};
use crate::metrics;
use axum::Router;
use axum::extract::Request;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Readiness is cached for this long, because the check is expensive and the endpoint needs no authentication.
const READY_CACHE_TTL: Duration = Duration::from_secs(1);

pub fn router(rest: &Rest) -> Router {
    let (ready, measured) = (rest.clone(), rest.clone());
    let cached: Arc<Mutex<Option<(Instant, bool)>>> = Arc::default();
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(async move || is_ready(&ready, &cached).await))
        .route("/metrics", get(async move |request: Request| page(&measured, request).await))
}

async fn is_ready(rest: &Rest, cached: &Mutex<Option<(Instant, bool)>>) -> Result<&'static str, Problem> {
    // The lock is held during the check, so that concurrent requests share one check.
    let mut cached = cached.lock().await;
    let fresh = cached.filter(|(at, _)| at.elapsed() < READY_CACHE_TTL);
    let ready_now = match fresh {
        Some((_, ready_now)) => ready_now,
        None => {
            let ready_now = !rest.shutdown.requested.is_cancelled() && rest.edge.is_ready().await;
            *cached = Some((Instant::now(), ready_now));
            ready_now
        }
    };
    if ready_now { Ok("ready\n") } else { Err(Problem::unavailable("the server can't serve now: GET /api/health says why")) }
}

async fn page(rest: &Rest, request: Request) -> Result<Response, Problem> {
    let metrics = rest.edge.metrics(http::principal(request.extensions())?).await?;
    let page = metrics::page(metrics).map_err(|error| Problem::unavailable(format!("the metrics can't be rendered: {error}")))?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE), (header::CACHE_CONTROL, "no-store")], page).into_response())
}
