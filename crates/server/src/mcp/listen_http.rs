//! `messages/listen` over HTTP: the answer is the stream. Every event has an id, from which a client that lost the stream goes on, with `GET` or by
//! asking again.
//!
//! ```text
//! listen.<session, or - for the connection>.<row>.<events heard>.<the request's id as JSON, in hex>
//! ```

use super::error;
use super::listen::{self, Notification};
use super::session_meta::Era;
use super::session_methods as methods;
use super::{KEEP_ALIVE, wire};
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

/// Who listens, and on what.
pub struct Subscription<'a> {
    pub service: &'a Service,
    pub caller: Caller,
    /// The server's streams end then.
    pub end: CancellationToken,
}

/// The id of an event: where in which stream it is.
#[derive(Debug, Clone, PartialEq)]
struct EventId {
    session: Option<SessionId>,
    position: Position,
    request: RequestId,
}

/// Where a client was, if it comes back to a stream of this kind.
pub fn is_return(headers: &HeaderMap) -> bool {
    last_event(headers).is_some_and(|id| id.starts_with(PREFIX))
}

fn last_event(headers: &HeaderMap) -> Option<&str> {
    headers.get(LAST_EVENT_HEADER).and_then(|value| value.to_str().ok())
}

/// Answers `messages/listen`. Without session metadata the scope is the caller's connection, which then has to be there.
pub async fn listen(subscription: Subscription<'_>, id: RequestId, meta: &JsonObject, headers: &HeaderMap) -> Result<Response, Response> {
    let refuse = |error: ErrorData| {
        let body = serde_json::to_string(&wire::refusal(error, Some(id.clone()))).unwrap_or_default();
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    };
    http::require_accept(headers, EVENTS).map_err(IntoResponse::into_response)?;
    let session = match Era::Legacy.read(meta).map_err(refuse)? {
        None => None,
        Some(named) => {
            let session = methods::find(subscription.service, &subscription.caller, &named.id, Era::Legacy).await.map_err(refuse)?;
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
    // Only the place in a row of the same scope means anything here.
    let after = last_event(headers).and_then(|id| id.parse::<EventId>().ok()).filter(|id| id.session == scope_id).map(|id| id.position);
    let heard = match &session {
        Some(session) => subscription.service.events().of_session(session.session(), after),
        None => subscription.service.events().receive(connection_scope(&subscription.caller).ok_or_else(no_connection)?, after),
    };
    let (listener, missed) = heard.map_err(|error| refuse(error::from_service(error)))?;
    Ok(subscription.stream(EventStream::new(listener, scope_id, id), missed, vec![(listen::BEGUN, json!({}))]))
}

/// Goes on with a stream that its client lost.
pub async fn go_on(subscription: Subscription<'_>, headers: &HeaderMap) -> Result<Response, Response> {
    http::require_accept(headers, EVENTS).map_err(IntoResponse::into_response)?;
    let last = last_event(headers).and_then(|id| id.parse::<EventId>().ok());
    let last = last.ok_or_else(|| Problem::bad_input("`Last-Event-ID` is not the id of an event").into_response())?;
    let heard = match last.session {
        None => {
            subscription.service.events().receive(connection_scope(&subscription.caller).ok_or_else(no_connection)?, Some(last.position))
        }
        Some(id) => match methods::find(subscription.service, &subscription.caller, &id.to_string(), Era::Legacy).await {
            Ok(session) => subscription.service.events().of_session(session.session(), Some(last.position)),
            Err(_) => match subscription.service.events().of_ended_session(&subscription.caller, id, last.position).await {
                Ok(Some(listener)) => Ok((listener, false)),
                Err(error) => Err(error),
                // It never was one of the caller's, or all that is left to hear is the answer.
                Ok(None) => return Ok(Sse::new(stream::iter([Ok::<_, Infallible>(answer(&last.request))])).into_response()),
            },
        },
    };
    let (listener, missed) = heard.map_err(|error| Problem::from(error).into_response())?;
    Ok(subscription.stream(EventStream::new(listener, last.session, last.request), missed, Vec::new()))
}

fn connection_scope(caller: &Caller) -> Option<Scope> {
    caller.connection.as_ref().map(|connection| Scope::Connection(connection.id.clone()))
}

fn no_connection() -> Response {
    Problem::new(StatusCode::NOT_FOUND, "this connection is not open").into_response()
}

/// One stream.
struct EventStream {
    listener: Subscriber,
    session: Option<SessionId>,
    request: RequestId,
    /// Notifications to send first.
    first: VecDeque<Notification>,
    connection: Option<String>,
    over: bool,
}

impl EventStream {
    fn new(listener: Subscriber, session: Option<SessionId>, request: RequestId) -> Self {
        Self { listener, session, request, first: VecDeque::new(), connection: None, over: false }
    }

    async fn next(&mut self) -> Option<SseEvent> {
        if self.over {
            return None;
        }
        if let Some(told) = self.first.pop_front() {
            return Some(self.event(self.listener.position(), told));
        }
        loop {
            match self.listener.next().await {
                Delivery::Event(_, event) if listen::was_told(&event, self.connection.as_deref()) => {}
                Delivery::Event(position, event) => return Some(self.event(position, listen::told(event))),
                Delivery::Ended => {
                    self.over = true;
                    return Some(answer(&self.request));
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

/// The session is over, so the request is answered.
fn answer(request: &RequestId) -> SseEvent {
    SseEvent::default().data(json!({ "jsonrpc": "2.0", "id": request, "result": {} }).to_string())
}

impl Subscription<'_> {
    fn stream(self, mut stream_of_events: EventStream, missed: bool, first: Vec<Notification>) -> Response {
        stream_of_events.first.extend(first);
        let scope = match stream_of_events.session {
            Some(id) => Some(Scope::Session(id)),
            None => connection_scope(&self.caller),
        };
        if let (true, Some(scope)) = (missed, scope) {
            stream_of_events.first.extend(listen::everything_changed(self.service, &scope));
        }
        stream_of_events.connection = self.caller.connection.as_ref().map(|connection| connection.id.clone());
        let events = events(stream_of_events).take_until(self.end.cancelled_owned());
        Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
    }
}

fn events(stream_of_events: EventStream) -> impl Stream<Item = Result<SseEvent, Infallible>> {
    stream::unfold(stream_of_events, |mut stream_of_events| async move {
        stream_of_events.next().await.map(|event| (Ok(event), stream_of_events))
    })
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = self.session.map_or_else(|| "-".to_owned(), |id| id.to_string());
        let request = serde_json::to_string(&self.request).unwrap_or_default();
        write!(f, "{PREFIX}{session}.{:x}.{}.{}", self.position.buffer, self.position.event, hex::encode(request))
    }
}

/// Not the id of an event of ours.
#[derive(Debug, PartialEq, Eq)]
struct NoEventId;

impl FromStr for EventId {
    type Err = NoEventId;

    fn from_str(text: &str) -> Result<Self, NoEventId> {
        let parts: Vec<_> = text.strip_prefix(PREFIX).ok_or(NoEventId)?.split('.').collect();
        let [session, row, event, request] = parts.as_slice() else { return Err(NoEventId) };
        let session = match *session {
            "-" => None,
            id => Some(id.parse().map_err(|_| NoEventId)?),
        };
        let position =
            Position { buffer: u64::from_str_radix(row, 16).map_err(|_| NoEventId)?, event: event.parse().map_err(|_| NoEventId)? };
        let request: Value = serde_json::from_slice(&hex::decode(request).map_err(|_| NoEventId)?).map_err(|_| NoEventId)?;
        Ok(Self { session, position, request: serde_json::from_value(request).map_err(|_| NoEventId)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_event_is_read_as_it_is_written_and_nothing_else_is_one() {
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
            assert_eq!(wrong.parse::<EventId>(), Err(NoEventId), "{wrong}");
        }
    }
}
