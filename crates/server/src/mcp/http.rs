//! Streamable HTTP on `/mcp`, for every protocol version.

use super::connections::Connections;
use super::json_rpc::{self, Batches, ErrorMessage, Incoming, Received};
use super::listen_http::{self, Subscription};
use super::pending_place::PendingPlace;
use super::session_handler::SessionHandler;
use super::session_metadata::Era;
use super::{KEEP_ALIVE, error, listen, rmcp_http_errors};
use crate::edge::Edge;
use crate::http::{self, BodyLimits, JSON_BYTES_MAX, Problem, Shutdown};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Router, middleware};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use http_body_util::BodyExt;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetMeta, JsonObject, JsonRpcMessage, ProtocolVersion, RequestId};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use serde::Serialize;
use std::collections::HashSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The id of a connection, in versions before 2026-07-28.
const CONNECTION_HEADER: &str = "mcp-session-id";
/// No connection has this id.
const UNKNOWN_CONNECTION: &str = "unknown";
const VERSION_HEADER: &str = "mcp-protocol-version";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

pub fn router(edge: Arc<Edge>, shutdown: &Shutdown) -> Router {
    let bounded = middleware::from_fn_with_state(BodyLimits::new(&edge, JSON_BYTES_MAX), http::buffered);
    Router::new().route("/mcp", any(serve).layer(bounded)).with_state(Arc::new(Mcp::new(edge, shutdown.streams_end())))
}

/// What `Mcp-Session-Id` had, if it is not an open connection of the caller.
#[derive(Clone)]
struct UnknownConnection(HeaderValue);

struct Mcp {
    edge: Arc<Edge>,
    service: StreamableHttpService<SessionHandler, Connections>,
    /// For requests of earlier versions that name a session in `_meta` and have no connection.
    unconnected: StreamableHttpService<SessionHandler, NeverSessionManager>,
    connections: Arc<Connections>,
    streams_end: CancellationToken,
    pending: Arc<PendingRequests>,
}

impl Mcp {
    fn new(edge: Arc<Edge>, streams_end: CancellationToken) -> Self {
        // The HTTP layers have already checked the host, the origin and the size.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(JSON_BYTES_MAX)
            .with_sse_keep_alive(Some(KEEP_ALIVE))
            .with_sse_retry(None)
            .with_json_response(true)
            .with_cancellation_token(streams_end.clone());
        let connections_max = usize::try_from(edge.budgets.limits.mcp_connections_max()).unwrap_or(usize::MAX);
        let (handlers, connections) = (edge.clone(), Arc::new(Connections::at_most(connections_max)));
        let handler = move || Ok(SessionHandler::new(handlers.clone()));
        let unconnected = StreamableHttpService::new(handler.clone(), Arc::default(), config.clone().with_legacy_session_mode(false));
        let service = StreamableHttpService::new(handler, connections.clone(), config);
        Self { edge, service, unconnected, connections, streams_end, pending: Arc::default() }
    }

    /// Unless `Mcp-Session-Id` is an open connection of this caller, it is replaced by one that does not exist. So rmcp never decides whether a
    /// connection exists, and one of another principal can't be told from an unknown one.
    fn hide_unusable_connection(&self, request: &mut Request) -> Result<(), Problem> {
        let caller = http::principal(request.extensions())?;
        let Some(named) = request.headers().get(CONNECTION_HEADER) else { return Ok(()) };
        if named.to_str().is_ok_and(|id| self.connections.find(id, caller).is_some()) {
            return Ok(());
        }
        let named = UnknownConnection(named.clone());
        request.headers_mut().insert(CONNECTION_HEADER, HeaderValue::from_static(UNKNOWN_CONNECTION));
        request.extensions_mut().insert(named);
        Ok(())
    }

    async fn post(&self, parts: Parts, body: Bytes) -> Result<Response, Response> {
        if !is_json(&parts.headers) {
            let problem = Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "`Content-Type` must be application/json");
            return Err(problem.into_response());
        }
        http::caller(&self.edge, &parts).map_err(IntoResponse::into_response)?;
        match json_rpc::read(body, self.batches(&parts)).map_err(|error| refusal(&error))? {
            Received::Single(incoming) => self.post_one(parts, incoming).await,
            Received::Batch(items) => self.post_batch(parts, items).await,
        }
    }

    /// Batches are accepted on connections that negotiated 2025-03-26, unless the request names another version.
    fn batches(&self, parts: &Parts) -> Batches {
        let text = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let is_other_version = text(VERSION_HEADER).is_some_and(|version| version != ProtocolVersion::V_2025_03_26.as_str());
        let caller = http::principal(&parts.extensions).ok();
        let open = text(CONNECTION_HEADER).zip(caller).and_then(|(id, caller)| self.connections.find(id, caller));
        open.filter(|_| !is_other_version).map_or(Batches::Refused, |open| open.batches)
    }

    /// Sends the responses to a batch on one stream, in the order in which they are ready.
    async fn post_batch(&self, parts: Parts, items: Vec<Result<Incoming, ErrorMessage>>) -> Result<Response, Response> {
        let (mut streams, mut errors) = (Vec::new(), Vec::new());
        for item in items {
            let answer = match item {
                Ok(incoming) => self.post_one(parts.clone(), incoming).await.unwrap_or_else(|error| error),
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            };
            match answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()) {
                _ if answer.status() == StatusCode::ACCEPTED => {}
                Some(EVENTS) => streams.push(StreamExt::boxed(answer.into_body().into_data_stream())),
                // The error of this message.
                Some(JSON) => streams.push(as_event(answer.into_body()).boxed()),
                // An error of the connection, and so of the whole batch.
                _ => return Err(answer),
            }
        }
        if streams.is_empty() {
            return Ok(if errors.is_empty() { StatusCode::ACCEPTED.into_response() } else { bad_request(&errors) });
        }
        streams.extend(errors.into_iter().map(|error| as_event(Body::from(to_json(&error))).boxed()));
        let headers = [(header::CONTENT_TYPE, EVENTS), (header::CACHE_CONTROL, "no-cache")];
        Ok((headers, Body::from_stream(stream::select_all(streams))).into_response())
    }

    async fn post_one(&self, mut parts: Parts, Incoming { message, bytes }: Incoming) -> Result<Response, Response> {
        let is_connected = is_connected(&mut parts, &message).map_err(|error| *error)?;
        if let Some((id, meta)) = listen_request(&message)
            && let Some(subscription) = self.subscription(&parts).map_err(IntoResponse::into_response)?
            && (subscription.caller.connection.is_some() || !is_connected)
        {
            return listen_http::listen(subscription, id, meta, &parts.headers).await;
        }
        if let JsonRpcMessage::Request(request) = &message {
            let holder = http::budget_holder(&parts.extensions).map_err(IntoResponse::into_response)?;
            // rmcp hands the parts to the handler.
            parts.extensions.insert(PendingPlace::take(&self.edge, holder).map_err(|refused| {
                let error = json_rpc::error_message(error::from_service(refused), Some(request.id.clone()));
                json_response(StatusCode::TOO_MANY_REQUESTS, &error)
            })?);
        }
        if !is_connected {
            let response = self.unconnected.handle(Request::from_parts(parts, Body::from(bytes))).await;
            return Ok(rmcp_http_errors::add_codes(response.map(Body::new)).await);
        }
        let pending_request = match &message {
            JsonRpcMessage::Request(request)
                if request.request.get_meta().protocol_version().is_none() && parts.extensions.get::<UnknownConnection>().is_none() =>
            {
                let connection = parts.headers.get(CONNECTION_HEADER).and_then(|value| value.to_str().ok());
                connection.map(|connection| (connection.to_owned(), request.id.clone()))
            }
            _ => None,
        };
        let pending_request = match pending_request {
            Some(key) => Some(PendingRequests::reserve(&self.pending, key).map_err(|(_, id)| bad_request(&json_rpc::duplicate_id(&id)))?),
            None => None,
        };
        let response = self.forward(Request::from_parts(parts, Body::from(bytes))).await;
        // The id stays pending until the body is sent or dropped.
        Ok(response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let _ = &pending_request;
                frame
            }))
        }))
    }

    /// The subscription of this request. `None` on a stateless server.
    fn subscription(&self, parts: &Parts) -> Result<Option<Subscription<'_>>, Problem> {
        let Some(service) = self.edge.service() else { return Ok(None) };
        let mut caller = http::caller(&self.edge, parts)?;
        let header = parts.headers.get(CONNECTION_HEADER).and_then(|value| value.to_str().ok());
        caller.connection = header.and_then(|id| self.connections.find(id, &caller.principal)).map(|open| open.connection);
        Ok(Some(Subscription { service, caller, end: self.streams_end.clone() }))
    }

    /// Resumes a `messages/listen` stream.
    async fn resume_listening(&self, parts: &Parts) -> Result<Option<Response>, Response> {
        match self.subscription(parts).map_err(IntoResponse::into_response)? {
            Some(subscription) => listen_http::resume(subscription, &parts.headers).await.map(Some),
            None => Ok(None),
        }
    }

    async fn forward(&self, request: Request) -> Response {
        let is_delete = request.method() == Method::DELETE;
        let response = self.service.handle(request).await.map(Body::new);
        match response.status() {
            // Some clients treat 202 as a failure here.
            StatusCode::ACCEPTED if is_delete => StatusCode::NO_CONTENT.into_response(),
            // The connection was closed during the request, or the server is shutting down.
            StatusCode::INTERNAL_SERVER_ERROR => {
                Problem::unavailable("the connection ended before the response; connect again").into_response()
            }
            _ => rmcp_http_errors::add_codes(response).await,
        }
    }
}

async fn serve(State(mcp): State<Arc<Mcp>>, mut request: Request) -> Response {
    if let Err(problem) = mcp.hide_unusable_connection(&mut request) {
        return problem.into_response();
    }
    if request.method() == Method::GET && listen_http::is_resumption(request.headers()) {
        let (parts, _) = request.into_parts();
        return match mcp.resume_listening(&parts).await {
            Ok(Some(response)) | Err(response) => response,
            Ok(None) => mcp.forward(Request::from_parts(parts, Body::empty())).await,
        };
    }
    if request.method() != Method::POST {
        return mcp.forward(request).await;
    }
    let (parts, body) = request.into_parts();
    match body.collect().await {
        Ok(body) => mcp.post(parts, body.to_bytes()).await.unwrap_or_else(|error| error),
        Err(error) => Problem::bad_input(format!("the body can't be read: {error}")).into_response(),
    }
}

/// Whether a message needs the service with connections. A message of an earlier version that names its session in `_meta` does not. It may
/// repeat the session in `Mcp-Session-Id`, which otherwise has the id of a connection.
fn is_connected(parts: &mut Parts, message: &ClientJsonRpcMessage) -> Result<bool, Box<Response>> {
    let era = if is_modern(message) { Era::Modern } else { Era::Legacy };
    let (meta, id, may_be_unconnected) = match message {
        JsonRpcMessage::Request(request) => {
            let may_be_unconnected = era == Era::Legacy && !matches!(request.request, ClientRequest::InitializeRequest(_));
            (request.request.get_meta().deref().deref(), Some(request.id.clone()), may_be_unconnected)
        }
        JsonRpcMessage::Notification(notification) => (notification.notification.get_meta().deref().deref(), None, true),
        _ => return Ok(true),
    };
    let Some(session) = era.session_in(meta) else { return Ok(true) };
    if !parts.headers.contains_key(CONNECTION_HEADER) {
        return Ok(!may_be_unconnected);
    }
    // Without an unknown connection it is an open one of this caller.
    let Some(UnknownConnection(header)) = parts.extensions.get() else { return Ok(true) };
    let header = header.to_str().unwrap_or_default();
    if session.is_some_and(|session| session != header) {
        let text = "`Mcp-Session-Id` is neither the session in `_meta` nor an open connection: send one of them, or omit the header";
        return Err(Box::new(bad_request(&json_rpc::error_message(error::invalid_request(text), id))));
    }
    // The header repeats the session. If `_meta` has no valid session id, the handler refuses the message.
    parts.headers.remove(CONNECTION_HEADER);
    Ok(!may_be_unconnected)
}

/// Whether a message is of a version without connections.
fn is_modern(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(request) if request.request.get_meta().protocol_version().is_some())
}

/// The id and the `_meta` of a `messages/listen` request.
fn listen_request(message: &ClientJsonRpcMessage) -> Option<(RequestId, &JsonObject)> {
    match message {
        JsonRpcMessage::Request(request) if !is_modern(message) => match &request.request {
            ClientRequest::CustomRequest(custom) if custom.method == listen::METHOD => {
                Some((request.id.clone(), request.request.get_meta().deref().deref()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether `Content-Type` is JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// The response to a message that could not be read.
pub fn refusal(error: &ErrorMessage) -> Response {
    let mut response = bad_request(error);
    if error::is_too_large(error) {
        *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    }
    response
}

/// A response with status 400 and a JSON-RPC error, or a batch of them.
pub fn bad_request(message: &impl Serialize) -> Response {
    json_response(StatusCode::BAD_REQUEST, message)
}

fn json_response(status: StatusCode, message: &impl Serialize) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], to_json(message)).into_response()
}

fn to_json(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

/// A one-line JSON body as a server-sent event.
fn as_event(json: Body) -> impl Stream<Item = Result<Bytes, axum::Error>> {
    stream::once(async move { json.collect().await }).map_ok(|json| [b"data: ", json.to_bytes().as_ref(), b"\n\n"].concat().into())
}

/// The ids of pending requests per connection. A second request with the same id could receive the response of the first.
#[derive(Default)]
struct PendingRequests(Mutex<HashSet<(String, RequestId)>>);

/// Reserves an id until dropped.
struct PendingRequest {
    all: Arc<PendingRequests>,
    key: (String, RequestId),
}

impl PendingRequests {
    fn reserve(all: &Arc<Self>, key: (String, RequestId)) -> Result<PendingRequest, (String, RequestId)> {
        let is_new = all.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        if is_new { Ok(PendingRequest { all: all.clone(), key }) } else { Err(key) }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}
