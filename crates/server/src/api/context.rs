//! The conversation context: `context_get`, `context_set`, `context_record`, `context_check`, `context_clear`.

use super::operation::{Description, Done, NeedsSession, Operation, Pending};
use heapstead_context::{NewResource, ResourceType, limits};
use heapstead_service::{CheckRequest, NewFinding, Service, ServiceError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const CLEARED: &str = "Conversation context has been reset. Starting fresh.";

pub fn operations(service: &Service) -> Vec<Operation> {
    vec![get(service), set(service), record(service), check(service), clear(service)]
}

#[derive(Deserialize, JsonSchema)]
struct OfSession {
    /// The session: its handle, or over REST its name. If omitted, the session of this call or connection.
    #[schemars(schema_with = "heapstead_service::schema::session_name")]
    #[serde(default)]
    session: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Set {
    /// `output_format` (json, markdown or plain), `max_results` (1 to 10000) and `language` (a tag such as `en`). Null removes one.
    #[schemars(schema_with = "preferences")]
    #[serde(default)]
    user_preferences: Option<Map<String, Value>>,
    /// Custom values by name: any JSON, with numbers of up to 64 bits. Null removes one.
    #[schemars(schema_with = "custom")]
    #[serde(default)]
    custom: Option<Map<String, Value>>,
    /// The session: its handle, or over REST its name. If omitted, the session of this call or connection.
    #[schemars(schema_with = "heapstead_service::schema::session_name")]
    #[serde(default)]
    session: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct NewEntry {
    /// Id of the fetched resource, such as a path, a URL or a key. Either this or `query`.
    #[schemars(length(min = 1, max = limits::RESOURCE_ID_CHARS_MAX))]
    resource_id: Option<String>,
    /// Type of the resource. Default `document`.
    resource_type: Option<Kind>,
    /// Hash of its content, to detect a change later.
    #[schemars(length(max = limits::CONTENT_HASH_CHARS_MAX))]
    content_hash: Option<String>,
    /// Summary of its content in a sentence or two.
    #[schemars(length(max = limits::RESOURCE_SUMMARY_CHARS_MAX))]
    summary: Option<String>,
    /// Text of the search. Either this or `resource_id`.
    #[schemars(length(min = 1, max = limits::QUERY_CHARS_MAX))]
    query: Option<String>,
    /// Number of results of the search. Default 0.
    #[schemars(range(min = 0, max = 9_007_199_254_740_991u64))]
    results: Option<u64>,
    /// The session: its handle, or over REST its name. If omitted, the session of this call or connection.
    #[schemars(schema_with = "heapstead_service::schema::session_name")]
    #[serde(default)]
    session: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Check {
    /// Id of the resource to check. Either this or `query`.
    #[schemars(length(min = 1, max = limits::RESOURCE_ID_CHARS_MAX))]
    resource_id: Option<String>,
    /// Filter by type. If omitted, any type.
    resource_type: Option<Kind>,
    /// Hash of its current content: if it differs from the recorded one, the resource counts as changed.
    #[schemars(length(max = limits::CONTENT_HASH_CHARS_MAX))]
    content_hash: Option<String>,
    /// Text of the search to check; only its words are compared. Either this or `resource_id`.
    #[schemars(length(min = 1, max = limits::QUERY_CHARS_MAX))]
    query: Option<String>,
    /// The session: its handle, or over REST its name. If omitted, the session of this call or connection.
    #[schemars(schema_with = "heapstead_service::schema::session_name")]
    #[serde(default)]
    session: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Document,
    DatabaseRow,
    ApiResponse,
}

impl From<Kind> for ResourceType {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Document => Self::Document,
            Kind::DatabaseRow => Self::DatabaseRow,
            Kind::ApiResponse => Self::ApiResponse,
        }
    }
}

/// The context is empty now. The session's id stays valid.
#[derive(Debug, Serialize, JsonSchema)]
struct ClearedContext {
    /// `cleared`
    status: &'static str,
    /// Null if the connection names no session.
    session_id: Option<String>,
    message: &'static str,
}

fn preferences(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "output_format": {
                "description": "Format of answers. Null removes the preference.",
                "type": ["string", "null"],
                "enum": ["json", "markdown", "plain", null],
            },
            "max_results": {
                "description": "How many results to show. Null removes the preference.",
                "type": ["integer", "null"],
                "minimum": 1,
                "maximum": limits::MAX_RESULTS_MAX,
            },
            "language": {
                "description": "A language tag such as `en` or `pt-BR`. Null removes the preference.",
                "type": ["string", "null"],
                "pattern": format!("^[A-Za-z0-9-]{{1,{}}}$", limits::LANGUAGE_BYTES_MAX),
            },
        },
        "additionalProperties": false,
    })
}

fn custom(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": true })
}

fn description(
    name: &'static str,
    title: &'static str,
    text: &'static str,
    read_only: bool,
    route: (&'static str, &'static str),
) -> Description {
    let tool = Description::tool(name, title, text, route);
    Description { read_only, is_recorded: false, may_conflict: true, needs_session: NeedsSession::WithoutConnection, ..tool }
}

fn get(service: &Service) -> Operation {
    let text = "Returns what this conversation has already done: recent tool calls with a summary of each result, a summary of earlier calls, fetched \
                resources, searches, preferences and values. Use it to continue a conversation without repeating work.";
    let description = description("context_get", "Read the conversation context", text, true, ("GET", "/api/context"));
    Operation::with_output(service, description, context_schema(), |service, caller, params: OfSession| async move {
        let answer = service.contexts().get(&caller, params.session.as_deref()).await?;
        Ok(Pending { answer, pending: false })
    })
}

fn set(service: &Service) -> Operation {
    let text = "Sets preferences and custom values in the conversation's context, to be read with `context_get`. Null removes one; others stay. Store \
                summaries and ids, not contents: sizes are limited, and values over a limit are refused.";
    let description = description("context_set", "Set values in the context", text, false, ("POST", "/api/context"));
    Operation::new(service, description, |service, caller, params: Set| async move {
        if params.user_preferences.is_none() && params.custom.is_none() {
            return Err(ServiceError::BadInput("`user_preferences` and `custom` are both missing: give at least one".into()));
        }
        service.contexts().set(&caller, params.session.as_deref(), params.user_preferences, params.custom).await.map(|()| Done::OK)
    })
}

fn record(service: &Service) -> Operation {
    let text = "Records in the conversation's context that a resource was fetched (`resource_id`) or a search was made (`query`), for `context_check`. \
                The same resource or search replaces its earlier entry. The server records tool calls itself.";
    let description = description("context_record", "Record a resource or a search", text, false, ("POST", "/api/context/record"));
    Operation::new(service, description, |service, caller, params: NewEntry| async move {
        let new = match one_of(params.resource_id, params.query)? {
            OneOf::Resource(resource_id) => NewFinding::Resource(NewResource {
                resource_id,
                resource_type: params.resource_type.map_or(ResourceType::Document, Into::into),
                content_hash: params.content_hash.unwrap_or_default(),
                summary: params.summary.unwrap_or_default(),
            }),
            OneOf::Query(query) => NewFinding::Search { query, results: params.results.unwrap_or_default() },
        };
        service.contexts().add(&caller, params.session.as_deref(), new).await.map(|()| Done::OK)
    })
}

fn check(service: &Service) -> Operation {
    let text = "Checks whether a resource was fetched or a search was made in this conversation before, when, and with what result. Call it before \
                fetching or searching again. A resource with another `content_hash` counts as changed.";
    let description = description("context_check", "Check a resource or a search", text, true, ("GET", "/api/context/check"));
    Operation::with_output(service, description, note_schema(), |service, caller, params: Check| async move {
        let asked = match one_of(params.resource_id, params.query)? {
            OneOf::Resource(id) => {
                CheckRequest::Resource { id, kind: params.resource_type.map(Into::into), content_hash: params.content_hash }
            }
            OneOf::Query(query) => CheckRequest::Search { query },
        };
        let answer = service.contexts().check(&caller, params.session.as_deref(), asked).await?;
        Ok(Pending { answer, pending: false })
    })
}

fn clear(service: &Service) -> Operation {
    let text =
        "Deletes the conversation's context: calls, resources, searches, preferences and values. The session, its id and its heaps stay.";
    let description = description("context_clear", "Clear the context", text, false, ("DELETE", "/api/context"));
    Operation::new(service, description, |service, caller, params: OfSession| async move {
        let cleared = service.contexts().clear(&caller, params.session.as_deref()).await?;
        Ok(ClearedContext { status: "cleared", session_id: cleared.session_id, message: CLEARED })
    })
}

enum OneOf {
    Resource(String),
    Query(String),
}

fn one_of(resource_id: Option<String>, query: Option<String>) -> Result<OneOf, ServiceError> {
    match (resource_id, query) {
        (Some(id), None) => Ok(OneOf::Resource(id)),
        (None, Some(query)) => Ok(OneOf::Query(query)),
        (None, None) => Err(ServiceError::BadInput("`resource_id` and `query` are both missing: give one of them".into())),
        (Some(_), Some(_)) => Err(ServiceError::BadInput("`resource_id` and `query` are both given: give one of them".into())),
    }
}

/// The record as it is stored.
fn context_schema() -> Value {
    let text = json!({ "type": "string" });
    let list = |properties: Value| {
        let required: Vec<String> = properties.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        json!({ "type": "array", "items": { "type": "object", "properties": properties, "required": required } })
    };
    json!({
        "type": "object",
        "description": "Record of the conversation. In every list, the newest entry is last.",
        "properties": {
            "schema_version": { "type": "integer" },
            "session_id": { "type": ["string", "null"], "description": "Null if the connection names no session." },
            "created_at": text, "last_updated_at": text,
            "user_preferences": { "type": "object", "properties": { "output_format": text, "max_results": { "type": "integer" }, "language": text } },
            "recent_tool_calls": list(json!({ "tool": text, "args": { "type": "object" }, "called_at": text, "result_summary": text })),
            "fetched_resources": list(json!({ "resource_id": text, "resource_type": text, "fetched_at": text, "content_hash": text, "summary": text })),
            "searches": list(json!({ "query_hash": text, "query": text, "searched_at": text, "results": { "type": "integer" } })),
            "custom": { "type": "object" },
            "summary_before_window": { "type": "string", "description": "Summary of the calls before `recent_tool_calls`. Absent if there are none." },
            "window_start_index": { "type": "integer", "description": "Number of calls that the summary covers." },
        },
        "required": ["schema_version", "session_id", "created_at", "last_updated_at", "user_preferences", "recent_tool_calls", "fetched_resources", "searches", "custom"],
    })
}

fn note_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "note": { "type": "string", "description": "`document_already_fetched_this_session`, `document_not_fetched_this_session`, `document_changed_since_fetched_this_session` (or `database_row_…`, `api_response_…`); `already tried, returned N results` or `not tried yet`." },
            "document_id": { "type": "string" }, "database_row_id": { "type": "string" }, "api_response_id": { "type": "string" },
            "fetched_at": { "type": "string" },
            "summary": { "type": "string" },
            "query": { "type": "string" },
            "searched_at": { "type": "string" },
            "results": { "type": "integer" },
        },
        "required": ["note"],
    })
}
