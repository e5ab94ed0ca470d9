//! The older HTTP+SSE transport: `GET /sse` for messages to the client, `POST /message` for messages to the server.

use super::KEEP_ALIVE;
use super::dialect::Dialect;
use super::http::{is_json, refusal};
use super::json_rpc::{self, ChannelTransport, QUEUED_MAX, Received, Version};
use super::pending_place::PendingPlace;
use super::response_room::{Queued, ResponseRoom};
use super::session_handler::SessionHandler;
use crate::edge::Edge;
use crate::http::{self, BodyLimits, JSON_BYTES_MAX, PartRooms, Problem, Shutdown};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use futures_util::{StreamExt, stream};
use heapstead_service::{Budget, Exhausted, Portion};
use heapstead_types::{Principal, random_bytes};
use http_body_util::BodyExt;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, JsonRpcMessage};
use rmcp::service::serve_server_with_ct;
use serde::Deserialize;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio_util::sync::{CancellationToken, DropGuard};

pub fn router(edge: Arc<Edge>, shutdown: &Shutdown) -> Router {
    let bounded = middleware::from_fn_with_state(BodyLimits::new(&edge, JSON_BYTES_MAX), http::buffered);
    let places = Budget::new(edge.budgets.limits.mcp_connections_max());
    let state = Arc::new(Connections { edge, end: shutdown.streams_end(), open: Mutex::default(), places });
    Router::new().route("/sse", get(listen)).route("/message", post(receive).layer(bounded)).with_state(state)
}

struct Connections {
    edge: Arc<Edge>,
    end: CancellationToken,
    /// By connection id.
    open: Mutex<HashMap<String, Open>>,
    places: Arc<Budget>,
}

#[derive(Clone)]
struct Open {
    /// Messages from the client.
    incoming: mpsc::Sender<Received<ClientJsonRpcMessage>>,
    version: Arc<Version>,
    owner: Principal,
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes a connection when its stream is dropped.
struct OpenStream {
    connections: Arc<Connections>,
    id: String,
    _place: Portion,
    _serving: DropGuard,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.connections.open().remove(&self.id);
    }
}

async fn listen(State(connections): State<Arc<Connections>>, request: Request) -> Result<Response, Problem> {
    let owner = http::principal(request.extensions())?.clone();
    let holder = http::budget_holder(request.extensions())?;
    let place = connections.places.take(holder.clone(), 1).map_err(|exhausted| match exhausted {
        Exhausted::ByHolder => Problem::busy("you have as many open connections as are left for other owners: close some"),
        Exhausted::ByAll => Problem::unavailable(format!("the maximum of {} open connections is reached", connections.places.total())),
    })?;
    // Random, because a client that knows the id of a connection may send on it.
    let id = hex::encode(random_bytes::<16>());
    let (sender, incoming) = mpsc::channel(QUEUED_MAX);
    let (outgoing, answers) = mpsc::channel(QUEUED_MAX);
    let serving = connections.end.child_token();
    let version = Arc::new(Version::default());
    connections.open().insert(id.clone(), Open { incoming: sender, version: version.clone(), owner });
    let open_stream =
        OpenStream { connections: connections.clone(), id: id.clone(), _place: place, _serving: serving.clone().drop_guard() };
    let handler = SessionHandler::new(connections.edge.clone());
    let room = ResponseRoom::new(connections.edge.budgets.responses.clone(), holder);
    let transport = Dialect::new(ChannelTransport::new(incoming, outgoing, version).with_room(room));
    tokio::spawn(async move {
        // A failed `initialize` closes the connection too.
        if let Ok(running) = serve_server_with_ct(handler, transport, serving).await {
            drop(running.waiting().await);
        }
    });
    let endpoint = Event::default().event("endpoint").data(format!("/message?sessionId={id}"));
    let rooms = PartRooms::default();
    let messages = stream::unfold((answers, open_stream, rooms.clone()), |(mut answers, open_stream, rooms)| async move {
        let message = answers.recv().await?;
        let event = event(&message);
        rooms.put(message.into_rooms());
        Some((event, (answers, open_stream, rooms)))
    });
    let events = stream::once(async { endpoint }).chain(messages).map(Ok::<_, Infallible>);
    let events = events.take_until(connections.end.clone().cancelled_owned());
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    response.extensions_mut().insert(rooms);
    Ok(response)
}

fn event(queued: &Queued) -> Event {
    Event::default().event("message").data(serde_json::to_string(&queued.message).unwrap_or_default())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageQuery {
    session_id: String,
}

async fn receive(
    State(connections): State<Arc<Connections>>,
    query: Result<Query<MessageQuery>, QueryRejection>,
    request: Request,
) -> Result<Response, Response> {
    let problem = |problem: Problem| problem.into_response();
    let Ok(Query(MessageQuery { session_id })) = query else {
        return Err(problem(Problem::bad_input("`sessionId` is missing: post to the URL of the `endpoint` event on /sse")));
    };
    let (parts, body) = request.into_parts();
    if !is_json(&parts.headers) {
        return Err(problem(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "`Content-Type` must be application/json")));
    }
    let caller = http::caller(&connections.edge, &parts).map_err(problem)?;
    let body = body.collect().await.map_err(|error| problem(Problem::bad_input(format!("the body can't be read: {error}"))))?;
    let closed = || problem(Problem::new(StatusCode::NOT_FOUND, "this connection is not open: open one with GET /sse"));
    // A connection of another principal is treated as unknown.
    let connection = connections.open().get(&session_id).filter(|open| open.owner == caller.principal).cloned().ok_or_else(closed)?;
    let mut received = json_rpc::read(body.to_bytes(), connection.version.batches()).map_err(|error| refusal(&error))?.messages();
    let messages: &mut dyn Iterator<Item = _> = match &mut received {
        Received::Single(message) => &mut std::iter::once(message),
        Received::Batch(items) => &mut items.iter_mut().flatten(),
    };
    for message in messages {
        if let JsonRpcMessage::Request(request) = message {
            let place = PendingPlace::take(&connections.edge, caller.budget_holder()).map_err(|refused| problem(refused.into()))?;
            request.request.extensions_mut().insert(place);
            request.request.extensions_mut().insert(parts.clone());
        }
    }
    match connection.incoming.try_send(received) {
        Ok(()) => Ok((StatusCode::ACCEPTED, "Accepted").into_response()),
        Err(TrySendError::Full(_)) => Err(problem(Problem::busy("the queue of incoming messages on this connection is full"))),
        Err(TrySendError::Closed(_)) => Err(closed()),
    }
}
