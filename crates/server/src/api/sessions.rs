//! What ran in which session: `list_sessions`, `list_session_snapshots`.

use super::executions::session_name;
use super::operation::{Description, FailureShape, Operation, Route};
use heapstead_service::{EntryField, LogRequest, Service, SessionEntries, SessionEntry};
use schemars::JsonSchema;
use serde::Deserialize;

/// What a caller without a session is told.
const NO_SESSION: &str = "no session ID available (send X-MCP-Session-Id header)";

#[derive(Deserialize, JsonSchema)]
struct ListSessions {}

#[derive(Deserialize, JsonSchema)]
struct ListSessionSnapshots {
    /// Fields of the entries, separated by commas: `index`, `input_heap`, `output_heap`, `code`, `timestamp`, `execution_id`. Absent: all but
    /// the last.
    #[schemars(regex(
        pattern = "^(index|input_heap|output_heap|code|timestamp|execution_id)(,(index|input_heap|output_heap|code|timestamp|execution_id))*$"
    ))]
    fields: Option<String>,
    /// Name of the session. Absent: the session of this connection.
    #[schemars(schema_with = "heapstead_service::schema::session_name")]
    #[serde(default)]
    session: Option<String>,
    /// At most this many; `next_cursor` in the answer leads to the rest. Absent: all.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
    /// Goes on where an earlier answer's `next_cursor` says.
    #[schemars(schema_with = "heapstead_service::schema::cursor")]
    #[serde(default)]
    cursor: Option<String>,
}

pub fn operations(service: &Service) -> Vec<Operation> {
    vec![list_sessions(service), list_session_snapshots(service)]
}

fn list_sessions(service: &Service) -> Operation {
    let description = Description {
        name: "list_sessions",
        title: "List sessions",
        text: "The names of all sessions in which at least one run completed. Asking creates none.",
        is_tool: true,
        read_only: true,
        route: Route { method: "GET", path: "/api/sessions" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, _: ListSessions| async move { service.sessions(&caller).await })
}

fn list_session_snapshots(service: &Service) -> Operation {
    let description = Description {
        name: "list_session_snapshots",
        title: "Read a session's log",
        text: include_str!("descriptions/list_session_snapshots.md"),
        is_tool: true,
        read_only: true,
        route: Route { method: "GET", path: "/api/session-snapshots" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, params: ListSessionSnapshots| async move {
        let fields = params.fields.as_deref().map_or_else(|| Ok(EntryField::DEFAULT.to_vec()), EntryField::parse_list)?;
        let session = match &params.session {
            Some(name) => Some(session_name(name)?),
            None => caller.session.clone(),
        };
        let Some(session) = session else {
            let entry = SessionEntry { error: Some(NO_SESSION.to_owned()), ..SessionEntry::default() };
            return Ok(SessionEntries { entries: vec![entry], next_cursor: None });
        };
        service.session_log(&caller, LogRequest { session, fields, limit: params.limit, cursor: params.cursor }).await
    })
}
