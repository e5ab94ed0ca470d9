//! `messages/listen` over HTTP: the response is an event stream. A client that lost the stream resumes it from the id of the last event, with
//! `GET` or by sending the request again.
//!
//! ```text
//! listen.<session id, or - for the connection>.<buffer>.<number of the event>.<the request id as JSON, in hex>
//! ```

use super::error;
use super::listen::{self, Notification};
use super::session_metadata::Era;
use super::session_methods::{self as methods, Refresh};
use super::{KEEP_ALIVE, json_rpc};
use crate::http::{self, Problem};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use heapstead_service::{Caller, Delivery, EnteredSession, Position, Scope, Service, Subscriber};
use heapstead_types::SessionId;
use rmcp::ErrorData;
use rmcp::model::{JsonObject, RequestId};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use tokio_util::sync::CancellationToken;

const LAST_EVENT_HEADER: &str = "last-event-id";
const PREFIX: &str = "listen.";
const EVENTS: &str = "text/event-stream";

/// The caller of `messages/listen` and the services it needs.
pub struct Subscription<'a> {
    pub service: &'a Service,
    pub caller: Caller,
    /// Cancelled when the server ends its streams.
    pub end: CancellationToken,
}

/// The id of an event: its stream and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct EventId {
    session: Option<SessionId>,
    position: Position,
    request: RequestId,
}

/// Whether `Last-Event-ID` is of a `messages/listen` stream.
pub fn is_resumption(headers: &HeaderMap) -> bool {
    last_event(headers).is_some_and(|id| id.starts_with(PREFIX))
}

fn last_event(headers: &HeaderMap) -> Option<&str> {
    headers.get(LAST_EVENT_HEADER).and_then(|value| value.to_str().ok())
}

/// Handles `messages/listen`. Without session metadata the scope is the caller's connection, which must be open.
pub async fn listen(subscription: Subscription<'_>, id: RequestId, meta: &JsonObject, headers: &HeaderMap) -> Result<Response, Response> {
    let refuse = |error: ErrorData| {
        let body = serde_json::to_string(&json_rpc::error_message(error, Some(id.clone()))).unwrap_or_default();
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    };
    http::require_accept(headers, EVENTS).map_err(IntoResponse::into_response)?;
    let session = match Era::Legacy.read(meta).map_err(refuse)? {
        None => None,
        Some(named) => {
            let session =
                methods::find(subscription.service, &subscription.caller, &named.id, Era::Legacy, Refresh::Now).await.map_err(refuse)?;
            if let Some(state) = &named.state {
                subscription
                    .service
                    .sessions()
                    .open_state(session.id(), state)
                    .await
                    .map_err(|error| refuse(error::from_service(error)))?;
            }
            Some(session)
        }
    };
    let scope_id = session.as_ref().map(EnteredSession::id);
    // A position is only valid in the buffer of the same scope.
    let after = last_event(headers).and_then(|id| id.parse::<EventId>().ok()).filter(|id| id.session == scope_id).map(|id| id.position);
    let subscribed = match &session {
        Some(session) => subscription.service.events().of_session(&subscription.caller, session.session(), after),
        None => subscription.service.events().receive(
            &subscription.caller,
            connection_scope(&subscription.caller).ok_or_else(no_connection)?,
            after,
        ),
    };
    let (subscriber, missed) = subscribed.map_err(|error| refuse(error::from_service(error)))?;
    Ok(subscription.stream(EventStream::new(subscriber, scope_id, id), missed, vec![(listen::STARTED, json!({}))]))
}

/// Resumes a stream.
pub async fn resume(subscription: Subscription<'_>, headers: &HeaderMap) -> Result<Response, Response> {
    http::require_accept(headers, EVENTS).map_err(IntoResponse::into_response)?;
    let last = last_event(headers).and_then(|id| id.parse::<EventId>().ok());
    let last = last.ok_or_else(|| Problem::bad_input("`Last-Event-ID` is not a valid event id").into_response())?;
    let subscribed = match last.session {
        None => subscription.service.events().receive(
            &subscription.caller,
            connection_scope(&subscription.caller).ok_or_else(no_connection)?,
            Some(last.position),
        ),
        Some(id) => match methods::find(subscription.service, &subscription.caller, &id.to_string(), Era::Legacy, Refresh::Now).await {
            Ok(session) => subscription.service.events().of_session(&subscription.caller, session.session(), Some(last.position)),
            Err(_) => match subscription.service.events().of_ended_session(&subscription.caller, id, last.position).await {
                Ok(Some(subscriber)) => Ok((subscriber, false)),
                Err(error) => Err(error),
                // The session never was the caller's, or only the response is left to send.
                Ok(None) => return Ok(Sse::new(stream::iter([Ok::<_, Infallible>(response(&last.request))])).into_response()),
            },
        },
    };
    let (subscriber, missed) = subscribed.map_err(|error| Problem::from(error).into_response())?;
    Ok(subscription.stream(EventStream::new(subscriber, last.session, last.request), missed, Vec::new()))
}

fn connection_scope(caller: &Caller) -> Option<Scope> {
    caller.connection.as_ref().map(|connection| Scope::Connection(connection.id.clone()))
}

fn no_connection() -> Response {
    Problem::new(StatusCode::NOT_FOUND, "this connection is not open").into_response()
}

/// One `messages/listen` stream.
struct EventStream {
    subscriber: Subscriber,
    session: Option<SessionId>,
    request: RequestId,
    /// Notifications to send first.
    first: VecDeque<Notification>,
    connection: Option<String>,
    is_over: bool,
}

impl EventStream {
    fn new(subscriber: Subscriber, session: Option<SessionId>, request: RequestId) -> Self {
        Self { subscriber, session, request, first: VecDeque::new(), connection: None, is_over: false }
    }

    async fn next(&mut self) -> Option<SseEvent> {
        if self.is_over {
            return None;
        }
        if let Some(notification) = self.first.pop_front() {
            return Some(self.event(self.subscriber.position(), notification));
        }
        loop {
            match self.subscriber.next().await {
                Delivery::Event(_, event) if listen::was_sent_to(&event, self.connection.as_deref()) => {}
                Delivery::Event(position, event) => return Some(self.event(position, listen::notification(event))),
                Delivery::Ended => {
                    self.is_over = true;
                    return Some(response(&self.request));
                }
                // The client resumes from its last event, and learns that events were lost.
                Delivery::Lagged => return None,
            }
        }
    }

    fn event(&self, position: Position, (method, params): Notification) -> SseEvent {
        let id = EventId { session: self.session, position, request: self.request.clone() };
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        SseEvent::default().id(id.to_string()).data(message.to_string())
    }
}

/// The response to the request, at the end of the session.
fn response(request: &RequestId) -> SseEvent {
    SseEvent::default().data(json!({ "jsonrpc": "2.0", "id": request, "result": {} }).to_string())
}

impl Subscription<'_> {
    fn stream(self, mut event_stream: EventStream, missed: bool, first: Vec<Notification>) -> Response {
        event_stream.first.extend(first);
        let scope = match event_stream.session {
            Some(id) => Some(Scope::Session(id)),
            None => connection_scope(&self.caller),
        };
        if let (true, Some(scope)) = (missed, scope) {
            event_stream.first.extend(listen::update_all(self.service, &scope));
        }
        event_stream.connection = self.caller.connection.as_ref().map(|connection| connection.id.clone());
        let events = events(event_stream).take_until(self.end.cancelled_owned());
        Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
    }
}

fn events(event_stream: EventStream) -> impl Stream<Item = Result<SseEvent, Infallible>> {
    stream::unfold(event_stream, |mut event_stream| async move { event_stream.next().await.map(|event| (Ok(event), event_stream)) })
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = self.session.map_or_else(|| "-".to_owned(), |id| id.to_string());
        let request = serde_json::to_string(&self.request).unwrap_or_default();
        write!(f, "{PREFIX}{session}.{:x}.{}.{}", self.position.buffer, self.position.event, hex::encode(request))
    }
}

/// Not a valid event id.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidEventId;

impl FromStr for EventId {
    type Err = InvalidEventId;

    fn from_str(text: &str) -> Result<Self, InvalidEventId> {
        let parts: Vec<_> = text.strip_prefix(PREFIX).ok_or(InvalidEventId)?.split('.').collect();
        let [session, buffer, event, request] = parts.as_slice() else { return Err(InvalidEventId) };
        let session = match *session {
            "-" => None,
            id => Some(id.parse().map_err(|_| InvalidEventId)?),
        };
        let position = Position {
            buffer: u64::from_str_radix(buffer, 16).map_err(|_| InvalidEventId)?,
            event: event.parse().map_err(|_| InvalidEventId)?,
        };
        let request: Value = serde_json::from_slice(&hex::decode(request).map_err(|_| InvalidEventId)?).map_err(|_| InvalidEventId)?;
        Ok(Self { session, position, request: serde_json::from_value(request).map_err(|_| InvalidEventId)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_ids_round_trip_and_invalid_ids_are_refused() {
        for session in [None, Some(SessionId::from_random([7; 32]))] {
            for request in [RequestId::Number(7), RequestId::String("a.b\n".into())] {
                let id = EventId { session, position: Position { buffer: u64::MAX, event: 12 }, request };
                let written = id.to_string();
                assert!(written.bytes().all(|byte| byte.is_ascii_graphic()));
                assert_eq!(written.parse(), Ok(id));
                for length in 0..written.len() - 4 {
                    assert_ne!(written[..length].parse::<EventId>().map(|id| id.to_string()), Ok(written.clone()));
                }
            }
        }
        for wrong in ["", "listen.", "0", "listen.-.x.1.31", "listen.x.1.1.31", "listen.-.1.1.zz", "listen.-.1.1.31.1"] {
            assert_eq!(wrong.parse::<EventId>(), Err(InvalidEventId), "{wrong}");
        }
    }
}
