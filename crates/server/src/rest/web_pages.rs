//! Web pages: the index at `/`, and the API documentation at `/docs`, which a script renders from the OpenAPI document.

use super::{JSON, openapi};
use crate::http;
use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use serde_json::json;

const PAGE: &str = include_str!("docs/docs.html");
const SCRIPT: &str = include_str!("docs/docs.js");
const STYLE: &str = include_str!("docs/docs.css");
/// The page loads only its own files.
const POLICY: &str =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'";

pub fn router() -> Router {
    Router::new()
        .route("/", get(index))
        .route("/docs", get(async || file("text/html; charset=utf-8", PAGE)))
        .route("/docs/docs.js", get(async || file("text/javascript; charset=utf-8", SCRIPT)))
        .route("/docs/docs.css", get(async || file("text/css; charset=utf-8", STYLE)))
}

fn file(media_type: &'static str, text: &'static str) -> Response {
    let headers = [(header::CONTENT_TYPE, media_type), (header::CONTENT_SECURITY_POLICY, POLICY), (header::CACHE_CONTROL, "no-cache")];
    (headers, text).into_response()
}

/// Redirects a browser to the documentation; returns the addresses of all endpoints to a program.
async fn index(headers: HeaderMap) -> Response {
    let is_browser = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).is_some_and(|accept| accept.contains("text/html"));
    if is_browser {
        return Redirect::to("/docs").into_response();
    }
    if let Err(problem) = http::require_accept(&headers, JSON) {
        return problem.into_response();
    }
    let body = json!({
        "name": "heapstead",
        "version": env!("CARGO_PKG_VERSION"),
        "documentation": "/docs",
        "openapi": openapi::PATH,
        "mcp": "/mcp",
        "health": "/api/health",
        "try": "curl -s HERE/api/exec --json '{\"code\": \"1 + 1\", \"wait_secs\": 10}'",
    });
    super::json(StatusCode::OK, format!("{body:#}\n"))
}
