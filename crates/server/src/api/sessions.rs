//! Sessions: what ran in which (`list_sessions`, `list_session_snapshots`), and those that have a head: opened, shown, forked, ended.

use super::executions::heap_key;
use super::operation::{Description, Done, FailureShape, Operation, Route};
use heapstead_service::{EntryField, LogRequest, NamesRequest, Service, SessionEntries, SessionEntry, SessionView};
use schemars::JsonSchema;
use serde::Deserialize;

/// What a caller without a session is told.
const NO_SESSION: &str = "no session ID available (send X-MCP-Session-Id header)";

#[derive(Deserialize, JsonSchema)]
struct ListSessions {
    /// At most this many; `next_cursor` in the answer leads to the rest. If omitted, all that fit in one answer.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
    /// Continues after the `next_cursor` of an earlier answer.
    #[schemars(schema_with = "heapstead_service::schema::session_name")]
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct ListSessionSnapshots {
    /// Fields of the entries, separated by commas: `index`, `input_heap`, `output_heap`, `code`, `timestamp`, `execution_id`. Absent: all but
    /// the last.
    #[schemars(regex(
        pattern = "^(index|input_heap|output_heap|code|timestamp|execution_id)(,(index|input_heap|output_heap|code|timestamp|execution_id))*$"
    ))]
    fields: Option<String>,
    /// The session: its handle or its name. Absent: the session of this connection.
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
    vec![
        list_sessions(service),
        list_session_snapshots(service),
        open_session(service),
        list_opened(service),
        show_session(service),
        fork_session(service),
        end_session(service),
    ]
}

fn list_sessions(service: &Service) -> Operation {
    let description = Description {
        name: "list_sessions",
        title: "List sessions",
        text: "All your sessions in which at least one run completed: logs by their name, sessions with a head (opened with an intent or as a session \
               of their own) by their session id. Pass either as `session` to `list_session_snapshots`; `run_js` goes on in a session with a head. \
               Sessions that have ended are not listed; without credentials only those of this connection are, and all logs. Asking creates none.",
        is_tool: true,
        read_only: true,
        route: Route { method: "GET", path: "/api/sessions" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, params: ListSessions| async move {
        service.sessions(&caller, NamesRequest { limit: params.limit, cursor: params.cursor }).await
    })
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
        let Some(session) = service.log_of(&caller, params.session.as_deref()).await? else {
            let entry = SessionEntry { error: Some(NO_SESSION.to_owned()), ..SessionEntry::default() };
            return Ok(SessionEntries { entries: vec![entry], next_cursor: None });
        };
        service.session_log(&caller, LogRequest { session, fields, limit: params.limit, cursor: params.cursor }).await
    })
}

#[derive(Deserialize, JsonSchema)]
struct OpenSession {}

#[derive(Deserialize, JsonSchema)]
struct ListOpened {
    /// At most this many; `next_cursor` in the answer leads to the rest. Absent: all.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
    /// Goes on where an earlier answer's `next_cursor` says.
    #[schemars(schema_with = "heapstead_service::schema::session_cursor")]
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct NamedSession {
    /// The session's handle: its id, or `s0` and the like from `session_context`.
    session: String,
}

#[derive(Deserialize, JsonSchema)]
struct ForkSession {
    /// The session to fork: its id, or `s0` and the like from `session_context`.
    session: String,
    /// The heap that the new session goes on from: the head, or any that a run in the session began from or left. Absent: the head.
    #[schemars(schema_with = "heapstead_service::schema::heap_key")]
    #[serde(default)]
    heap: Option<String>,
}

fn open_session(service: &Service) -> Operation {
    let description = Description {
        name: "open_session",
        title: "Open a session",
        text: "A new session with a head: each run in it goes on from what the run before left. It ends when nobody uses it for a while.",
        is_tool: false,
        read_only: false,
        route: Route { method: "POST", path: "/api/sessions" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, _: OpenSession| async move {
        service.open_session(&caller).await.map(SessionView::from)
    })
}

fn list_opened(service: &Service) -> Operation {
    let description = Description {
        name: "list_opened_sessions",
        title: "List open sessions",
        text: "Your sessions that have a head, in the order they were opened. Without credentials there is nothing to list: whoever holds a session's id has it.",
        is_tool: false,
        read_only: true,
        route: Route { method: "GET", path: "/api/sessions/opened" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, params: ListOpened| async move {
        service.opened_sessions(&caller, params.cursor.as_deref(), params.limit).await
    })
}

fn show_session(service: &Service) -> Operation {
    let description = Description {
        name: "show_session",
        title: "Show a session",
        text: "Head, age and end of a session.",
        is_tool: false,
        read_only: true,
        route: Route { method: "GET", path: "/api/sessions/{session}" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, params: NamedSession| async move {
        service.show_session(&caller, &params.session).await
    })
}

fn fork_session(service: &Service) -> Operation {
    let description = Description {
        name: "session_fork",
        title: "Fork a session",
        text: include_str!("descriptions/session_fork.md"),
        is_tool: true,
        read_only: false,
        route: Route { method: "POST", path: "/api/sessions/{session}/fork" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, params: ForkSession| async move {
        let heap = params.heap.as_deref().map(|heap| heap_key("heap", heap)).transpose()?;
        service.fork_session(&caller, &params.session, heap).await
    })
}

fn end_session(service: &Service) -> Operation {
    let description = Description {
        name: "end_session",
        title: "End a session",
        text: "Ends a session: what runs in it is cancelled, and nobody can go on in it. A session that was opened with an intent keeps its id and starts \
               afresh when it is used again. Heaps stay until they are collected.",
        is_tool: false,
        read_only: false,
        route: Route { method: "DELETE", path: "/api/sessions/{session}" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, params: NamedSession| async move {
        service.end_session(&caller, &params.session).await.map(|()| Done::OK)
    })
}
