//! Streams an execution as server-sent events: its output as it is written, then its record, then the end of the stream.
//!
//! ```text
//! event: output
//! id: 6
//! data: {"data":"hello\n","start_byte":0,"end_byte":6}
//!
//! event: record
//! id: end
//! data: {"execution_id":"…","status":"completed",…}
//! ```
//! The id is the byte offset of the next output, so `Last-Event-ID` resumes there, also after a restart. Output is in JSON because an event
//! cannot contain a carriage return. Each event reads one page from the output file after the previous event was sent, so a slow reader costs
//! one page of memory.

use super::{Rest, arguments};
use crate::http::{self, Problem};
use axum::Router;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use heapstead_service::{Caller, ExecutionOutput, Service, ServiceError};
use heapstead_store::outputs::PageRequest;
use heapstead_types::Status;
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;

pub const PATH: &str = "/api/executions/{execution_id}/events";
pub const MEDIA_TYPE: &str = "text/event-stream";
/// The id of the last event. A client that resumes from it gets 204.
const END: &str = "end";
const PAGE_BYTES: u64 = 64 << 10;
/// A comment is sent after this long without an event, so that proxies do not close the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub fn router(rest: &Rest) -> Router {
    let rest = rest.clone();
    Router::new().route(PATH, get(move |request: Request| events(rest.clone(), request)))
}

async fn events(rest: Rest, request: Request) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    http::require_accept(&parts.headers, MEDIA_TYPE)?;
    arguments::no_query(&parts)?;
    let follower = Follower::new(&rest, &mut parts).await?;
    // An unknown execution is refused before the stream begins.
    follower.page(Duration::ZERO).await?;
    let Some(follower) = follower.resumed(&parts.headers)? else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let mut response = Sse::new(stream::unfold(Some(follower), Follower::next)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// A client that follows an execution, and the offset of the next output to send.
struct Follower {
    rest: Rest,
    service: Service,
    caller: Caller,
    execution_id: String,
    offset: u64,
}

impl Follower {
    async fn new(rest: &Rest, parts: &mut Parts) -> Result<Self, Problem> {
        let caller = http::caller(&rest.edge, parts)?;
        let execution_id = arguments::path(parts).await?.into_iter().map(|(_, id)| id).next().unwrap_or_default();
        let Some(service) = rest.edge.service().cloned() else {
            return Err(Problem::new(StatusCode::NOT_FOUND, "this server runs in stateless mode (`--stateless`) and stores no executions"));
        };
        Ok(Self { rest: rest.clone(), service, caller, execution_id, offset: 0 })
    }

    /// Continues after `Last-Event-ID`. `None` if that was the last event of the stream.
    fn resumed(self, headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        let Some(last) = headers.get("last-event-id") else { return Ok(Some(self)) };
        let last = last.to_str().unwrap_or("?");
        if last == END {
            return Ok(None);
        }
        let offset = last.parse().map_err(|_| {
            let shown: String = last.chars().take(80).collect();
            Problem::bad_input(format!("header `Last-Event-ID` is `{shown}`: expected the id of an event of this stream"))
        })?;
        Ok(Some(Self { offset, ..self }))
    }

    async fn page(&self, wait: Duration) -> Result<ExecutionOutput, ServiceError> {
        self.service
            .executions()
            .output(&self.caller, &self.execution_id, PageRequest::Bytes { offset: self.offset, limit: PAGE_BYTES }, wait)
            .await
    }

    /// The next event, and the follower if the stream continues after it.
    async fn next(follower: Option<Self>) -> Option<(Result<Event, Infallible>, Option<Self>)> {
        let mut follower = follower?;
        let rest = follower.rest.clone();
        let (event, continues) = match rest.in_time(follower.event()).await {
            Ok(Ok(event)) => event,
            // The client can resume from the last event it received.
            Ok(Err(error)) => (comment(&error.to_string()), false),
            Err(_leaving) => (comment("the server is shutting down"), false),
        };
        Some((Ok(event), continues.then_some(follower)))
    }

    async fn event(&mut self) -> Result<(Event, bool), ServiceError> {
        let page = self.page(KEEP_ALIVE).await?;
        if !page.data.is_empty() {
            self.offset = page.end_byte;
            let data = json!({ "data": page.data, "start_byte": page.start_byte, "end_byte": page.end_byte });
            return Ok((Event::default().event("output").id(self.offset.to_string()).data(data.to_string()), true));
        }
        if page.status == Status::Running {
            return Ok((comment("keep-alive"), true));
        }
        let record = self.service.execution(&self.caller, &self.execution_id, Duration::ZERO).await?;
        let record = serde_json::to_string(&record).unwrap_or_default();
        Ok((Event::default().event("record").id(END).data(record), false))
    }
}

/// A comment is one line.
fn comment(text: &str) -> Event {
    Event::default().comment(text.replace(['\r', '\n'], " "))
}
