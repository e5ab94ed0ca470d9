//! Streamable HTTP on `/mcp`, for every protocol version.

use super::connections::Connections;
use super::listen_http::{self, Subscription};
use super::session_meta::Era;
use super::sessioned::Sessioned;
use super::wire::{self, Batches, Incoming, Refusal, Said};
use super::{KEEP_ALIVE, error, http_errors, listen};
use crate::edge::Edge;
use crate::http::{self, JSON_BYTES_MAX, Problem, Shutdown};
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

/// Names the connection of a client that keeps one.
const CONNECTION_HEADER: &str = "mcp-session-id";
const VERSION_HEADER: &str = "mcp-protocol-version";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

pub fn router(edge: Arc<Edge>, shutdown: &Shutdown) -> Router {
    let bounded = middleware::from_fn_with_state(JSON_BYTES_MAX, http::buffered);
    Router::new().route("/mcp", any(serve).layer(bounded)).with_state(Arc::new(Mcp::new(edge, shutdown.streams_end())))
}

struct Mcp {
    edge: Arc<Edge>,
    service: StreamableHttpService<Sessioned, Connections>,
    /// For requests of earlier versions that name their session themselves, and so need no connection.
    unconnected: StreamableHttpService<Sessioned, NeverSessionManager>,
    connections: Arc<Connections>,
    streams_end: CancellationToken,
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
            .with_cancellation_token(streams_end.clone());
        let (handlers, connections) = (edge.clone(), Arc::new(Connections::new()));
        let handler = move || Ok(Sessioned::new(handlers.clone()));
        let unconnected = StreamableHttpService::new(handler.clone(), Arc::default(), config.clone().with_legacy_session_mode(false));
        let service = StreamableHttpService::new(handler, connections.clone(), config);
        Self { edge, service, unconnected, connections, streams_end, unanswered: Arc::default() }
    }

    /// Somebody else's connection is no connection: the request goes on with a name that none has, and is answered like any such.
    fn hide_foreign(&self, request: &mut Request) -> Result<(), Problem> {
        let caller = http::principal(request.extensions())?;
        let named = request.headers().get(CONNECTION_HEADER).and_then(|value| value.to_str().ok());
        let hidden =
            named.filter(|id| self.connections.is_foreign(id, caller)).map(|id| HeaderValue::from_str(&format!("{id}-of-another")));
        if let Some(Ok(hidden)) = hidden {
            request.headers_mut().insert(CONNECTION_HEADER, hidden);
        }
        Ok(())
    }

    async fn post(&self, parts: Parts, body: Bytes) -> Result<Response, Response> {
        if !is_json(&parts.headers) {
            let problem = Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "`Content-Type` must be application/json");
            return Err(problem.into_response());
        }
        http::caller(&self.edge, &parts).map_err(IntoResponse::into_response)?;
        match wire::read(body, self.batches(&parts.headers)).map_err(|refusal| refuse(&refusal))? {
            Said::One(incoming) => self.post_one(parts, incoming).await,
            Said::Several(items) => self.post_several(parts, items).await,
        }
    }

    /// Only on a connection that agreed on them, and not for a request that says it is of another version.
    fn batches(&self, headers: &HeaderMap) -> Batches {
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let of_another_version = text(VERSION_HEADER).is_some_and(|version| version != ProtocolVersion::V_2025_03_26.as_str());
        match text(CONNECTION_HEADER) {
            _ if of_another_version => Batches::Refused,
            Some(connection) => self.connections.batches(connection),
            None => Batches::Refused,
        }
    }

    /// Everything of a batch is answered on one stream, as it comes.
    async fn post_several(&self, parts: Parts, items: Vec<Result<Incoming, Refusal>>) -> Result<Response, Response> {
        let (mut streams, mut refusals) = (Vec::new(), Vec::new());
        for item in items {
            let answer = match item {
                Ok(incoming) => self.post_one(parts.clone(), incoming).await.unwrap_or_else(|refusal| refusal),
                Err(refusal) => {
                    refusals.push(refusal);
                    continue;
                }
            };
            match answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()) {
                _ if answer.status() == StatusCode::ACCEPTED => {}
                Some(EVENTS) => streams.push(StreamExt::boxed(answer.into_body().into_data_stream())),
                // A refusal of this one message.
                Some(JSON) => streams.push(as_event(answer.into_body()).boxed()),
                // One of the connection, and so of all of them.
                _ => return Err(answer),
            }
        }
        if streams.is_empty() {
            return Ok(if refusals.is_empty() { StatusCode::ACCEPTED.into_response() } else { refuse(&refusals) });
        }
        streams.extend(refusals.into_iter().map(|refusal| as_event(Body::from(to_json(&refusal))).boxed()));
        let headers = [(header::CONTENT_TYPE, EVENTS), (header::CACHE_CONTROL, "no-cache")];
        Ok((headers, Body::from_stream(stream::select_all(streams))).into_response())
    }

    /// Whether a message goes the way of those that have a connection, or ask for one, or speak of themselves. One of an earlier version that names
    /// its session needs none. It may name the session in the header too, where other clients name their connection.
    fn is_connected(&self, parts: &mut Parts, message: &ClientJsonRpcMessage) -> Result<bool, Box<Response>> {
        let era = if speaks_of_itself(message) { Era::Modern } else { Era::Legacy };
        let (meta, id, by_itself) = match message {
            JsonRpcMessage::Request(request) => {
                let by_itself = era == Era::Legacy && !matches!(request.request, ClientRequest::InitializeRequest(_));
                (request.request.get_meta().deref().deref(), Some(request.id.clone()), by_itself)
            }
            JsonRpcMessage::Notification(notification) => (notification.notification.get_meta().deref().deref(), None, true),
            _ => return Ok(true),
        };
        let Some(session) = era.claimed(meta) else { return Ok(true) };
        let Some(header) = parts.headers.get(CONNECTION_HEADER) else { return Ok(!by_itself) };
        let header = header.to_str().unwrap_or_default();
        let caller = http::principal(&parts.extensions).map_err(|problem| Box::new(problem.into_response()))?;
        if self.connections.connection(header, caller).is_some() {
            return Ok(true);
        }
        if session.is_some_and(|session| session != header) {
            let text = "`Mcp-Session-Id` is neither the session that `_meta` names nor a connection that is open: send one of these, or no such header";
            return Err(Box::new(refuse(&wire::refusal(error::invalid_request(text), id))));
        }
        // It names the session once more, or the message is refused for naming none.
        parts.headers.remove(CONNECTION_HEADER);
        Ok(!by_itself)
    }

    async fn post_one(&self, mut parts: Parts, Incoming { message, bytes }: Incoming) -> Result<Response, Response> {
        let is_connected = self.is_connected(&mut parts, &message).map_err(|refusal| *refusal)?;
        if let Some((id, meta)) = asks_to_listen(&message)
            && let Some(subscription) = self.subscription(&parts).map_err(IntoResponse::into_response)?
            && (subscription.caller.connection.is_some() || !is_connected)
        {
            return listen_http::listen(subscription, id, meta, &parts.headers).await;
        }
        if !is_connected {
            let response = self.unconnected.handle(Request::from_parts(parts, Body::from(bytes))).await;
            return Ok(http_errors::add_codes(response.map(Body::new)).await);
        }
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

    /// Who listens with this request; none where nothing is kept that could be heard.
    fn subscription(&self, parts: &Parts) -> Result<Option<Subscription<'_>>, Problem> {
        let Some(service) = &self.edge.service else { return Ok(None) };
        let mut caller = http::caller(&self.edge, parts)?;
        let header = parts.headers.get(CONNECTION_HEADER).and_then(|value| value.to_str().ok());
        caller.connection = header.and_then(|id| self.connections.connection(id, &caller.principal));
        Ok(Some(Subscription { service, caller, end: self.streams_end.clone() }))
    }

    /// Goes on with a stream of listening that was lost.
    async fn go_on_listening(&self, parts: &Parts) -> Result<Option<Response>, Response> {
        match self.subscription(parts).map_err(IntoResponse::into_response)? {
            Some(subscription) => listen_http::go_on(subscription, &parts.headers).await.map(Some),
            None => Ok(None),
        }
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
            _ => http_errors::add_codes(response).await,
        }
    }
}

async fn serve(State(mcp): State<Arc<Mcp>>, mut request: Request) -> Response {
    if let Err(problem) = mcp.hide_foreign(&mut request) {
        return problem.into_response();
    }
    if request.method() == Method::GET && listen_http::is_return(request.headers()) {
        let (parts, _) = request.into_parts();
        return match mcp.go_on_listening(&parts).await {
            Ok(Some(response)) | Err(response) => response,
            Ok(None) => mcp.pass(Request::from_parts(parts, Body::empty())).await,
        };
    }
    if request.method() != Method::POST {
        return mcp.pass(request).await;
    }
    let (parts, body) = request.into_parts();
    match body.collect().await {
        Ok(body) => mcp.post(parts, body.to_bytes()).await.unwrap_or_else(|refusal| refusal),
        Err(error) => Problem::bad_input(format!("the body can't be read: {error}")).into_response(),
    }
}

/// Whether a message is of a version without connections.
fn speaks_of_itself(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(request) if request.request.get_meta().protocol_version().is_some())
}

/// The id and the `_meta` of a request to listen, of the versions that have one.
fn asks_to_listen(message: &ClientJsonRpcMessage) -> Option<(RequestId, &JsonObject)> {
    match message {
        JsonRpcMessage::Request(request) if !speaks_of_itself(message) => match &request.request {
            ClientRequest::CustomRequest(custom) if custom.method == listen::METHOD => {
                Some((request.id.clone(), request.request.get_meta().deref().deref()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether the body is said to be JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// A refusal that comes before there is a connection.
pub fn refuse(refusal: &impl Serialize) -> Response {
    (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, JSON)], to_json(refusal)).into_response()
}

fn to_json(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

/// A body of JSON on one line, as an event of a stream.
fn as_event(json: Body) -> impl Stream<Item = Result<Bytes, axum::Error>> {
    stream::once(async move { json.collect().await }).map_ok(|json| [b"data: ", json.to_bytes().as_ref(), b"\n\n"].concat().into())
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
