//! An execution as it goes, as server-sent events: its output as it is written, then its record, then the end of the stream.
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
//! The id is where the output goes on, so `Last-Event-ID` resumes there, on this server or a later one. Text is in JSON because the format of
//! events can't carry a carriage return. Output is read from its file, one page per event, when the reader has taken the one before: a slow
//! reader costs its own time and one page of memory.

use super::{Rest, arguments};
use crate::http::{self, Problem};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use futures_util::stream;
use heapstead_service::{Caller, OutputPage, Service, ServiceError};
use heapstead_store::outputs::PageRequest;
use heapstead_types::Status;
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;

pub const PATH: &str = "/api/executions/{execution_id}/events";
pub const MEDIA_TYPE: &str = "text/event-stream";
/// The id of the last event. Who comes back with it has everything.
const END: &str = "end";
const PAGE_BYTES: u64 = 64 << 10;
/// After this long without an event comes a comment, so that nobody in between takes the connection for dead.
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
    let headers = [(header::CONTENT_TYPE, MEDIA_TYPE), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(stream::unfold(Some(follower), Follower::next))).into_response())
}

/// Somebody who follows an execution, and how far they are.
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
        let Some(service) = rest.edge.service.clone() else {
            return Err(Problem::new(StatusCode::NOT_FOUND, "nothing is kept in stateless mode"));
        };
        Ok(Self { rest: rest.clone(), service, caller, execution_id, offset: 0 })
    }

    /// Goes on after the last event that was seen; none when that was the last of all.
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

    async fn page(&self, wait: Duration) -> Result<OutputPage, ServiceError> {
        self.service
            .executions()
            .output(&self.caller, &self.execution_id, PageRequest::Bytes { offset: self.offset, limit: PAGE_BYTES }, wait)
            .await
    }

    /// The next event, and who waits for the one after it.
    async fn next(follower: Option<Self>) -> Option<(Result<Bytes, Infallible>, Option<Self>)> {
        let mut follower = follower?;
        let rest = follower.rest.clone();
        let (text, goes_on) = match rest.in_time(follower.event()).await {
            Ok(Ok(event)) => event,
            // The reader comes back to where it was.
            Ok(Err(error)) => (format!(": {error}\n\n"), false),
            Err(_leaving) => (": the server is shutting down\n\n".to_owned(), false),
        };
        Some((Ok(text.into()), goes_on.then_some(follower)))
    }

    async fn event(&mut self) -> Result<(String, bool), ServiceError> {
        let page = self.page(KEEP_ALIVE).await?;
        if !page.data.is_empty() {
            self.offset = page.end_byte;
            let data = json!({ "data": page.data, "start_byte": page.start_byte, "end_byte": page.end_byte });
            return Ok((format!("event: output\nid: {}\ndata: {data}\n\n", self.offset), true));
        }
        if page.status == Status::Running {
            return Ok((": nothing new\n\n".to_owned(), true));
        }
        let record = self.service.execution(&self.caller, &self.execution_id, Duration::ZERO).await?;
        let record = serde_json::to_string(&record).unwrap_or_default();
        Ok((format!("event: record\nid: {END}\ndata: {record}\n\n"), false))
    }
}
