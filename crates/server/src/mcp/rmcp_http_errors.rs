//! Stable error codes in the responses that rmcp itself makes over HTTP.

use super::error;
use crate::http::Problem;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::BodyExt;
use rmcp::ErrorData;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Adds `data.code` to a JSON-RPC error, and turns a plain-text error into a problem document. The status does not change. Other responses
/// and event streams pass unchanged: the errors in streams come from the handler and have a code.
pub async fn add_codes(response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_json = kind.starts_with("application/json");
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    let is_text_error = is_error && (kind.is_empty() || kind.starts_with("text/plain"));
    if !is_json && !is_text_error {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return Problem::unavailable("the connection ended before the response; connect again").into_response(),
    };
    if is_json {
        let Some(coded) = coded_message(&body) else { return Response::from_parts(parts, Body::from(body)) };
        parts.headers.remove(header::CONTENT_LENGTH);
        return Response::from_parts(parts, Body::from(coded));
    }
    let mut problem = Problem::new(parts.status, detail(parts.status, &body)).into_response();
    if let Some(methods) = parts.headers.remove(header::ALLOW) {
        problem.headers_mut().insert(header::ALLOW, methods);
    }
    problem
}

/// The text of an error without the reason phrase of its status, which a problem document has as its title.
fn detail(status: StatusCode, body: &Bytes) -> String {
    let text = String::from_utf8_lossy(body);
    let reason = status.canonical_reason().unwrap_or_default();
    text.strip_prefix(reason).and_then(|text| text.strip_prefix(": ")).unwrap_or(&text).to_owned()
}

/// The message with a code; `None` if it is not an error, or has a code.
fn coded_message(body: &[u8]) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    struct Message {
        error: ErrorData,
    }
    let Message { mut error } = serde_json::from_slice(body).ok()?;
    if !error::add_code(&mut error) {
        return None;
    }
    let mut message: Map<String, Value> = serde_json::from_slice(body).ok()?;
    message.insert("error".into(), serde_json::to_value(error).ok()?);
    serde_json::to_vec(&message).ok()
}
