//! MCP resources: the record, the output and the result of an execution, and the head of a session.

use super::error::{self, truncated_uri};
use super::execution_task;
use super::message_size::{BoundedBody, RESULT_BYTES_MAX};
use crate::api::to_json;
use crate::edge::Edge;
use crate::long_results;
use heapstead_service::{Caller, ListRequest, MESSAGE_BYTES_MAX, ResultRange, ServiceError, Topic};
use heapstead_store::outputs::{BYTE_LIMIT_MAX, PageRequest};
use heapstead_types::{ErrorCode, JsonMeasure};
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, ListResourceTemplatesResult, ListResourcesResult, MetaObject, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use serde::de::IgnoredAny;
use serde_json::Value;
use std::time::Duration;

const PREFIX: &str = "heapstead://executions/";
const SESSIONS_PREFIX: &str = "heapstead://sessions/";
const HEAD_SUFFIX: &str = "/head";
/// Executions on a page of the list.
const PAGE_MAX: u32 = 100;
/// How much output is read for one result. It is then truncated to the size that fits as JSON; the result has the URI of the rest.
const OUTPUT_BYTES_MAX: u64 = if (MESSAGE_BYTES_MAX as u64) < BYTE_LIMIT_MAX { MESSAGE_BYTES_MAX as u64 } else { BYTE_LIMIT_MAX };
/// The member of `_meta` with the URI of the rest.
const NEXT: &str = "heapstead/next";

/// The part of an execution that a URI names.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Record,
    Output { byte_offset: u64 },
    Result { byte_offset: u64 },
}

pub async fn list(edge: &Edge, caller: &Caller, cursor: Option<String>) -> Result<ListResourcesResult, ErrorData> {
    let service = execution_task::service(edge)?;
    let request = ListRequest { limit: Some(PAGE_MAX), cursor, ..ListRequest::default() };
    let page = service.executions().list(caller, request).await.map_err(error::from_service)?;
    let resources = page.executions.iter().map(|execution| {
        Resource::new(format!("{PREFIX}{}", execution.execution_id), execution.execution_id.as_str())
            .with_title(format!("Execution of {}", execution.started_at))
            .with_description(format!("{}. Console output: append /output. Result: append /result.", execution.status.as_str()))
            .with_mime_type("application/json")
    });
    let mut list = ListResourcesResult::with_all_items(resources.collect()).with_ttl_ms(0).with_cache_scope(CacheScope::Private);
    list.next_cursor = page.next_cursor;
    Ok(list)
}

pub fn templates() -> ListResourceTemplatesResult {
    let template = |path: &str, name: &str, title: &str, text: &str, kind: &str| {
        ResourceTemplate::new(format!("{PREFIX}{{execution_id}}{path}"), name).with_title(title).with_description(text).with_mime_type(kind)
    };
    ListResourceTemplatesResult::with_all_items(vec![
        template("", "execution", "Execution", "The record of an execution, as returned by get_execution.", "application/json"),
        template("/output{?byte_offset}", "output", "Console output", "The console output from a byte offset. If it exceeds one message, `_meta` has the URI of the rest.", "text/plain"),
        ResourceTemplate::new(format!("{PREFIX}{{execution_id}}/result{{?byte_offset}}"), "result").with_title("Result").with_description(
            "The completion value of a completed execution, from a byte offset: as JSON if possible, otherwise as readable text. If it exceeds one \
             message, `_meta` has the URI of the rest.",
        ),
        ResourceTemplate::new(format!("{SESSIONS_PREFIX}{{session_id}}{HEAD_SUFFIX}"), "head")
            .with_title("Session head")
            .with_description("The head of a session: the heap that its next run continues from.")
            .with_mime_type("application/json"),
    ])
}

pub async fn read(edge: &Edge, caller: &Caller, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let not_found = |why: String| error::resource_not_found(ErrorCode::NotFound, why, uri);
    if let Some(Topic::Head(id)) = topic(uri) {
        let view =
            execution_task::service(edge)?.sessions().show(caller, &id.to_string()).await.map_err(|error| service_error(uri, error))?;
        let text = serde_json::to_string(&view).unwrap_or_default();
        let contents = ResourceContents::text(text, uri).with_mime_type("application/json");
        return Ok(ReadResourceResult::new(vec![contents]).with_ttl_ms(0).with_cache_scope(CacheScope::Private));
    }
    let (id, part) = parse(uri).ok_or_else(|| {
        not_found(format!("there is no resource `{}`: the URIs of resources start with {PREFIX} or {SESSIONS_PREFIX}", truncated_uri(uri)))
    })?;
    let service = execution_task::service(edge)?;
    let contents = match part {
        Part::Record => {
            let record = service.execution(caller, id, Duration::ZERO).await.map_err(|error| service_error(uri, error))?.for_message();
            let record = to_json(&record);
            let long = edge.long_results.acquire(caller.budget_holder(), long_results::bytes_of(&record));
            let _long = long.await.map_err(|error| service_error(uri, error))?;
            let record = BoundedBody::new(record, edge.api.run_tool().and_then(|tool| tool.long_text));
            let record = record.shortened(JsonMeasure::NestedBytes, RESULT_BYTES_MAX);
            ResourceContents::text(record.body.to_string(), uri).with_mime_type("application/json")
        }
        Part::Output { byte_offset } => {
            let page = PageRequest::Bytes { offset: byte_offset, limit: OUTPUT_BYTES_MAX };
            let page = service.executions().output(caller, id, page, Duration::ZERO).await.map_err(|error| service_error(uri, error))?;
            TextPart::of(&page.data, page.start_byte, page.total_bytes).contents(uri, &format!("{PREFIX}{id}/output"))
        }
        Part::Result { byte_offset } => {
            let range = ResultRange { offset: byte_offset, limit: None };
            let record = service.execution_part(caller, id, Duration::ZERO, range).await.map_err(|error| service_error(uri, error))?;
            let (Some(result), Some(part)) = (&record.result, &record.part) else {
                return Err(not_found(format!("execution `{id}` has no result: it is {}", record.status.as_str())));
            };
            let long = edge.long_results.acquire(caller.budget_holder(), result.len());
            let _long = long.await.map_err(|error| service_error(uri, error))?;
            let shown = TextPart::of(result, part.result_offset, part.result_bytes);
            let is_json = shown.is_whole() && serde_json::from_str::<IgnoredAny>(shown.text).is_ok();
            shown.contents(uri, &format!("{PREFIX}{id}/result")).with_mime_type(if is_json { "application/json" } else { "text/plain" })
        }
    };
    Ok(ReadResourceResult::new(vec![contents]).with_ttl_ms(0).with_cache_scope(CacheScope::Private))
}

/// The part of a text that fits into one message.
struct TextPart<'a> {
    text: &'a str,
    start: u64,
    end: u64,
    total: u64,
}

impl<'a> TextPart<'a> {
    fn of(text: &'a str, start: u64, total: u64) -> Self {
        let text = JsonMeasure::Bytes.prefix(text, RESULT_BYTES_MAX);
        Self { text, start, end: start + text.len() as u64, total }
    }

    fn is_whole(&self) -> bool {
        self.start == 0 && self.end >= self.total
    }

    fn contents(&self, uri: &str, address: &str) -> ResourceContents {
        let contents = ResourceContents::text(self.text, uri);
        if self.end < self.total { contents.with_meta(next(format!("{address}?byte_offset={}", self.end))) } else { contents }
    }
}

/// A resource of another owner is reported as not found.
pub fn service_error(uri: &str, error: ServiceError) -> ErrorData {
    match error {
        ServiceError::NotFound { .. } => error::resource_not_found(error.code(), error.to_string(), uri),
        other => error::from_service(other),
    }
}

/// The topic for subscriptions to a URI. `None` if it can't be subscribed to.
pub fn topic(uri: &str) -> Option<Topic> {
    if let Some(session) = uri.strip_prefix(SESSIONS_PREFIX) {
        return session.strip_suffix(HEAD_SUFFIX)?.parse().ok().map(Topic::Head);
    }
    let (id, part) = parse(uri)?;
    match part {
        Part::Record => id.parse().ok().map(Topic::Execution),
        Part::Output { .. } if uri.ends_with("/output") => id.parse().ok().map(Topic::Output),
        Part::Output { .. } | Part::Result { .. } => None,
    }
}

pub fn uri(topic: &Topic) -> String {
    match topic {
        Topic::Execution(id) => format!("{PREFIX}{id}"),
        Topic::Output(id) => format!("{PREFIX}{id}/output"),
        Topic::Head(id) => format!("{SESSIONS_PREFIX}{id}{HEAD_SUFFIX}"),
    }
}

fn next(uri: String) -> MetaObject {
    let mut meta = MetaObject::new();
    meta.insert(NEXT.into(), Value::String(uri));
    meta
}

fn parse(uri: &str) -> Option<(&str, Part)> {
    let path = uri.strip_prefix(PREFIX)?;
    let Some((id, part)) = path.split_once('/') else { return Some((path, Part::Record)) };
    let (part, byte_offset) = match part.split_once('?') {
        None => (part, 0),
        Some((part, query)) => (part, query.strip_prefix("byte_offset=")?.parse().ok()?),
    };
    let part = match part {
        "output" => Part::Output { byte_offset },
        "result" => Part::Result { byte_offset },
        _ => return None,
    };
    Some((id, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_outputs_and_heads_can_be_subscribed_to() {
        let (id, session) = ("0f".repeat(16), "0f".repeat(32));
        for watched in [format!("{PREFIX}{id}"), format!("{PREFIX}{id}/output"), format!("{SESSIONS_PREFIX}{session}/head")] {
            assert_eq!(topic(&watched).map(|topic| uri(&topic)), Some(watched));
        }
        for other in [
            format!("{PREFIX}{id}/result"),
            format!("{PREFIX}{id}/output?byte_offset=0"),
            format!("{SESSIONS_PREFIX}s0/head"),
            format!("{PREFIX}x"),
        ] {
            assert_eq!(topic(&other), None, "{other}");
        }
    }

    #[test]
    fn uris_are_parsed() {
        for (uri, meant) in [
            ("heapstead://executions/a", Some(("a", Part::Record))),
            ("heapstead://executions/a/output", Some(("a", Part::Output { byte_offset: 0 }))),
            ("heapstead://executions/a/output?byte_offset=12", Some(("a", Part::Output { byte_offset: 12 }))),
            ("heapstead://executions/a/result", Some(("a", Part::Result { byte_offset: 0 }))),
            ("heapstead://executions/a/result?byte_offset=3", Some(("a", Part::Result { byte_offset: 3 }))),
            ("heapstead://executions/a/result?byte_offset=x", None),
            ("heapstead://executions/a/heap?byte_offset=0", None),
            ("heapstead://executions/a/output?byte_offset=-1", None),
            ("heapstead://executions/a/output?line=1", None),
            ("heapstead://executions/a/heap", None),
            ("heapstead://heaps/a", None),
            ("file:///etc/passwd", None),
        ] {
            assert_eq!(parse(uri), meant, "{uri}");
        }
    }
}
