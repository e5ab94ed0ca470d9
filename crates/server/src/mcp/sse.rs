//! The older transport: `GET /sse` for what the server says, `POST /message` for what the client says.

use super::batch::Answer;
use super::dialect::Dialect;
use super::http::{is_json, refuse};
use super::sessioned::Sessioned;
use super::wire::{self, Connection, QUEUED_MAX, Said, Version};
use super::{CONNECTIONS_MAX, KEEP_ALIVE};
use crate::edge::Edge;
use crate::http::{self, JSON_BYTES_MAX, Problem, Shutdown};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use futures_util::{StreamExt, stream};
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
    let bounded = middleware::from_fn_with_state(JSON_BYTES_MAX, http::buffered);
    let state = Arc::new(Connections { edge, end: shutdown.streams_end(), open: Mutex::default() });
    Router::new().route("/sse", get(listen)).route("/message", post(take).layer(bounded)).with_state(state)
}

struct Connections {
    edge: Arc<Edge>,
    end: CancellationToken,
    /// Where to put what the client of a connection says.
    open: Mutex<HashMap<String, Open>>,
}

#[derive(Clone)]
struct Open {
    said: mpsc::Sender<Said<ClientJsonRpcMessage>>,
    version: Arc<Version>,
    owner: Principal,
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes a connection when nobody listens to it any more.
struct Listener {
    connections: Arc<Connections>,
    name: String,
    _serving: DropGuard,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.connections.open().remove(&self.name);
    }
}

async fn listen(State(connections): State<Arc<Connections>>, request: Request) -> Result<Response, Problem> {
    let owner = http::principal(request.extensions())?.clone();
    if connections.open().len() >= CONNECTIONS_MAX {
        return Err(Problem::unavailable(format!("{CONNECTIONS_MAX} connections are open, which is as many as are taken")));
    }
    // Random, because a client that knows the id of a connection may send on it.
    let name = hex::encode(random_bytes::<16>());
    let (said, incoming) = mpsc::channel(QUEUED_MAX);
    let (outgoing, answers) = mpsc::channel(QUEUED_MAX);
    let serving = connections.end.child_token();
    let version = Arc::new(Version::default());
    connections.open().insert(name.clone(), Open { said, version: version.clone(), owner });
    let listener = Listener { connections: connections.clone(), name: name.clone(), _serving: serving.clone().drop_guard() };
    let handler = Sessioned::new(connections.edge.clone());
    tokio::spawn(async move {
        // A client that never sends `initialize` is closed like one that leaves.
        if let Ok(running) = serve_server_with_ct(handler, Dialect::new(Connection::new(incoming, outgoing, version)), serving).await {
            drop(running.waiting().await);
        }
    });
    let endpoint = Event::default().event("endpoint").data(format!("/message?sessionId={name}"));
    let messages = stream::unfold((answers, listener), |(mut answers, listener)| async move {
        let message = answers.recv().await?;
        Some((event(&message), (answers, listener)))
    });
    let events = stream::once(async { endpoint }).chain(messages).map(Ok::<_, Infallible>);
    let events = events.take_until(connections.end.clone().cancelled_owned());
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

fn event(message: &Answer) -> Event {
    Event::default().event("message").data(serde_json::to_string(message).unwrap_or_default())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Addressed {
    session_id: String,
}

async fn take(
    State(connections): State<Arc<Connections>>,
    query: Result<Query<Addressed>, QueryRejection>,
    request: Request,
) -> Result<Response, Response> {
    let problem = |problem: Problem| problem.into_response();
    let Ok(Query(Addressed { session_id })) = query else {
        return Err(problem(Problem::bad_input("`sessionId` is missing: the `endpoint` event on /sse tells where to send messages")));
    };
    let (parts, body) = request.into_parts();
    if !is_json(&parts.headers) {
        return Err(problem(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "`Content-Type` must be application/json")));
    }
    let caller = http::caller(&connections.edge, &parts).map_err(problem)?;
    let body = body.collect().await.map_err(|error| problem(Problem::bad_input(format!("the body can't be read: {error}"))))?;
    let closed = || problem(Problem::new(StatusCode::NOT_FOUND, "this connection is not open: open one with GET /sse"));
    // Somebody else's is no connection.
    let connection = connections.open().get(&session_id).filter(|open| open.owner == caller.principal).cloned().ok_or_else(closed)?;
    let mut said = wire::read(body.to_bytes(), connection.version.batches()).map_err(|refusal| refuse(&refusal))?.messages();
    let messages: &mut dyn Iterator<Item = _> = match &mut said {
        Said::One(message) => &mut std::iter::once(message),
        Said::Several(items) => &mut items.iter_mut().flatten(),
    };
    for message in messages {
        if let JsonRpcMessage::Request(request) = message {
            request.request.extensions_mut().insert(parts.clone());
        }
    }
    match connection.said.try_send(said) {
        Ok(()) => Ok((StatusCode::ACCEPTED, "Accepted").into_response()),
        Err(TrySendError::Full(_)) => Err(problem(Problem::busy("more is sent than is read"))),
        Err(TrySendError::Closed(_)) => Err(closed()),
    }
}
