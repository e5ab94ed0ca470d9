//! Streamable HTTP on `/mcp`, for every protocol version.

use super::KEEP_ALIVE;
use super::handler::Handler;
use super::sessions::Sessions;
use super::wire::{self, Incoming};
use crate::edge::Edge;
use crate::http::{self, JSON_BYTES_MAX, Problem, Shutdown};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Router, middleware};
use bytes::Bytes;
use http_body_util::BodyExt;
use rmcp::model::{GetMeta, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Names the connection of a client that keeps one.
const CONNECTION_HEADER: &str = "mcp-session-id";

pub fn router(edge: Arc<Edge>, shutdown: &Shutdown) -> Router {
    let bounded = middleware::from_fn_with_state(JSON_BYTES_MAX, http::buffered);
    Router::new().route("/mcp", any(serve).layer(bounded)).with_state(Arc::new(Mcp::new(edge, shutdown.streams_end())))
}

struct Mcp {
    edge: Arc<Edge>,
    service: StreamableHttpService<Handler, Sessions>,
    unanswered: Arc<Unanswered>,
}

impl Mcp {
    fn new(edge: Arc<Edge>, streams_end: CancellationToken) -> Self {
        // Who may ask, and how much, has been looked at before.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(JSON_BYTES_MAX)
            .with_sse_keep_alive(Some(KEEP_ALIVE))
            .with_sse_retry(None)
            .with_json_response(true)
            .with_cancellation_token(streams_end);
        let handlers = edge.clone();
        let service = StreamableHttpService::new(move || Ok(Handler::new(handlers.clone())), Arc::new(Sessions::new()), config);
        Self { edge, service, unanswered: Arc::default() }
    }

    async fn post(&self, parts: Parts, body: Bytes) -> Result<Response, Response> {
        if !is_json(&parts.headers) {
            let problem = Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "`Content-Type` must be application/json");
            return Err(problem.into_response());
        }
        http::caller(&self.edge, &parts).map_err(IntoResponse::into_response)?;
        let Incoming { message, bytes } = wire::read(body).map_err(|refusal| refuse(&refusal))?;
        let asked = match &message {
            JsonRpcMessage::Request(request) if request.request.get_meta().protocol_version().is_none() => {
                let connection = parts.headers.get(CONNECTION_HEADER).and_then(|value| value.to_str().ok());
                connection.map(|connection| (connection.to_owned(), request.id.clone()))
            }
            _ => None,
        };
        let asked = match asked {
            Some(key) => Some(Unanswered::ask(&self.unanswered, key).map_err(|(_, id)| refuse(&wire::already_asked(&id)))?),
            None => None,
        };
        let response = self.pass(Request::from_parts(parts, Body::from(bytes))).await;
        // Answered when the last byte has been sent, or can't be.
        Ok(response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let _ = &asked;
                frame
            }))
        }))
    }

    async fn pass(&self, request: Request) -> Response {
        let ends = request.method() == Method::DELETE;
        let response = self.service.handle(request).await.map(Body::new);
        match response.status() {
            // Some clients take it for a failure that what they asked for is only accepted.
            StatusCode::ACCEPTED if ends => StatusCode::NO_CONTENT.into_response(),
            // A connection that ended under the request, or a server that does.
            StatusCode::INTERNAL_SERVER_ERROR => {
                Problem::unavailable("the connection ended before the answer; connect again").into_response()
            }
            _ => response,
        }
    }
}

async fn serve(State(mcp): State<Arc<Mcp>>, request: Request) -> Response {
    if request.method() != Method::POST {
        return mcp.pass(request).await;
    }
    let (parts, body) = request.into_parts();
    match body.collect().await {
        Ok(body) => mcp.post(parts, body.to_bytes()).await.unwrap_or_else(|refusal| refusal),
        Err(error) => Problem::bad_input(format!("the body can't be read: {error}")).into_response(),
    }
}

/// Whether the body is said to be JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// A refusal that comes before there is a connection.
pub fn refuse(refusal: &ServerJsonRpcMessage) -> Response {
    let body = serde_json::to_string(refusal).unwrap_or_default();
    (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Requests of kept connections that have no answer yet: two with one id would get each other's.
#[derive(Default)]
struct Unanswered(Mutex<HashSet<(String, RequestId)>>);

/// Keeps an id taken until it is dropped.
struct Asked {
    all: Arc<Unanswered>,
    key: (String, RequestId),
}

impl Unanswered {
    fn ask(all: &Arc<Self>, key: (String, RequestId)) -> Result<Asked, (String, RequestId)> {
        let is_new = all.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        if is_new { Ok(Asked { all: all.clone(), key }) } else { Err(key) }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}
