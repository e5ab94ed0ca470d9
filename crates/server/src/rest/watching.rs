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

/// Anybody may ask whether the server is ready, and to find out costs something: an answer stays true for this long.
const READY_FOR: Duration = Duration::from_secs(1);

pub fn router(rest: &Rest) -> Router {
    let (ready, measured) = (rest.clone(), rest.clone());
    let known: Arc<Mutex<Option<(Instant, bool)>>> = Arc::default();
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(async move || is_ready(&ready, &known).await))
        .route("/metrics", get(async move |request: Request| page(&measured, request).await))
}

async fn is_ready(rest: &Rest, known: &Mutex<Option<(Instant, bool)>>) -> Result<&'static str, Problem> {
    // Held while somebody finds out, so that the others wait for the same answer.
    let mut known = known.lock().await;
    let fresh = known.filter(|(at, _)| at.elapsed() < READY_FOR);
    let yes = match fresh {
        Some((_, yes)) => yes,
        None => {
            let yes = !rest.shutdown.asked.is_cancelled() && rest.edge.is_ready().await;
            *known = Some((Instant::now(), yes));
            yes
        }
    };
    if yes { Ok("ready\n") } else { Err(Problem::unavailable("the server can't serve now: GET /api/health says why")) }
}

async fn page(rest: &Rest, request: Request) -> Result<Response, Problem> {
    let metrics = rest.edge.metrics(http::principal(request.extensions())?).await?;
    let page = metrics::page(metrics).map_err(|error| Problem::unavailable(format!("the metrics can't be rendered: {error}")))?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE), (header::CACHE_CONTROL, "no-store")], page).into_response())
}
