//! Sessions: their logs (`list_sessions`, `list_session_snapshots`), and opened sessions: open, list, show, fork, undo, end.

use super::answer_stream::Paged;
use super::operation::{Description, Done, Operation};
use heapstead_service::{
    EndLogical, EntryField, LogRequest, NamesRequest, Service, SessionEntries, SessionEntry, SessionView, TurnRange, parse_heap_key,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The error for a caller without a session.
const NO_SESSION: &str = "no session ID available (send X-MCP-Session-Id header)";

#[derive(Clone, Deserialize, JsonSchema)]
struct ListSessions {
    /// At most this many; `next_cursor` in the answer leads to the rest. If omitted, as many as fit in one answer.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
    /// Continues after `next_cursor` of an earlier answer.
    #[schemars(schema_with = "heapstead_service::schema::session_name")]
    #[serde(default)]
    cursor: Option<String>,
}

impl Paged for ListSessions {
    fn limit(&self) -> Option<u32> {
        self.limit
    }

    fn set_page(&mut self, cursor: String, limit: Option<u32>) {
        (self.cursor, self.limit) = (Some(cursor), limit);
    }
}

#[derive(Clone, Deserialize, JsonSchema)]
struct ListSessionSnapshots {
    /// Fields of the entries, separated by commas: `index`, `input_heap`, `output_heap`, `code`, `timestamp`, `execution_id`, `undone`. If omitted, all but
    /// `execution_id`, and `code` that is longer than 64 KiB is cut and marked with `truncated`. `code` in `fields` returns all of it.
    #[schemars(regex(pattern = heapstead_service::schema::FIELDS_PATTERN))]
    fields: Option<String>,
    /// The session: its handle or its name. If omitted, the session of this connection.
    #[schemars(schema_with = "heapstead_service::schema::session_name")]
    #[serde(default)]
    session: Option<String>,
    /// At most this many; `next_cursor` in the answer leads to the rest. If omitted, all.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
    /// Continues after `next_cursor` of an earlier answer.
    #[schemars(schema_with = "heapstead_service::schema::cursor")]
    #[serde(default)]
    cursor: Option<String>,
    /// If true, heaps that are not stored yet are stored first, so that every entry has its `output_heap`.
    materialize: Option<bool>,
}

impl Paged for ListSessionSnapshots {
    fn limit(&self) -> Option<u32> {
        self.limit
    }

    fn set_page(&mut self, cursor: String, limit: Option<u32>) {
        (self.cursor, self.limit) = (Some(cursor), limit);
    }
}

pub fn operations(service: &Service) -> Vec<Operation> {
    vec![
        list_sessions(service),
        list_session_snapshots(service),
        open_session(service),
        list_opened(service),
        show_session(service),
        replay_session(service),
        fork_session(service),
        undo_session(service),
        end_session(service),
    ]
}

fn list_sessions(service: &Service) -> Operation {
    let description = Description::tool("list_sessions", "List sessions", "Lists your sessions with at least one completed run: named sessions by name, opened sessions by session id. Pass either as `session` \
         to `list_session_snapshots`; `run_js` continues opened sessions. Ended sessions are not listed. Without credentials, only the opened \
         sessions of this connection are listed, and all named ones.", ("GET", "/api/sessions")).read_only();
    Operation::list(service, description, |service, caller, params: ListSessions| async move {
        service.sessions().list_names(&caller, NamesRequest { limit: params.limit, cursor: params.cursor }).await
    })
}

fn list_session_snapshots(service: &Service) -> Operation {
    let description = Description::tool(
        "list_session_snapshots",
        "Read a session's log",
        include_str!("descriptions/list_session_snapshots.md"),
        ("GET", "/api/session-snapshots"),
    )
    .read_only();
    Operation::list(service, description, |service, caller, params: ListSessionSnapshots| async move {
        let fields = params.fields.as_deref().map(EntryField::parse_list).transpose()?;
        let Some(session) = service.sessions().log_name(&caller, params.session.as_deref()).await? else {
            let entry = SessionEntry { error: Some(NO_SESSION.to_owned()), ..SessionEntry::default() };
            return Ok(SessionEntries { entries: vec![entry], next_cursor: None });
        };
        let request = LogRequest { session, fields, limit: params.limit, cursor: params.cursor };
        match params.materialize {
            Some(true) => service.materialized_log(&caller, request).await,
            _ => service.sessions().log(&caller, request).await,
        }
    })
}

#[derive(Deserialize, JsonSchema)]
struct OpenSession {}

#[derive(Clone, Deserialize, JsonSchema)]
struct ListOpened {
    /// At most this many; `next_cursor` in the answer leads to the rest. If omitted, all.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
    /// Continues after `next_cursor` of an earlier answer.
    #[schemars(schema_with = "heapstead_service::schema::session_cursor")]
    #[serde(default)]
    cursor: Option<String>,
}

impl Paged for ListOpened {
    fn limit(&self) -> Option<u32> {
        self.limit
    }

    fn set_page(&mut self, cursor: String, limit: Option<u32>) {
        (self.cursor, self.limit) = (Some(cursor), limit);
    }
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
    /// The heap that the new session continues from: the head, or any heap that a run in the session started from or produced. If omitted, the
    /// head.
    #[schemars(schema_with = "heapstead_service::schema::heap_key")]
    #[serde(default)]
    heap: Option<String>,
}

fn open_session(service: &Service) -> Operation {
    let description = Description::endpoint(
        "open_session",
        "Open a session",
        "Opens a session: each run in it continues from the heap of the run before. It expires when it is not used for a while.",
        ("POST", "/api/sessions"),
    );
    Operation::new(service, description, |service, caller, _: OpenSession| async move {
        service.sessions().open(&caller).await.map(SessionView::from)
    })
}

fn list_opened(service: &Service) -> Operation {
    let description = Description::endpoint(
        "list_opened_sessions",
        "List open sessions",
        "Lists your opened sessions, oldest first. Without credentials the list is empty: only the holder of a session's id can use it.",
        ("GET", "/api/sessions/opened"),
    )
    .read_only();
    Operation::list(service, description, |service, caller, params: ListOpened| async move {
        service.sessions().list_opened(&caller, params.cursor.as_deref(), params.limit).await
    })
}

fn show_session(service: &Service) -> Operation {
    let description = Description::endpoint(
        "show_session",
        "Show a session",
        "Returns head, age and expiry of a session.",
        ("GET", "/api/sessions/{session}"),
    )
    .read_only();
    Operation::new(service, description, |service, caller, params: NamedSession| async move {
        service.sessions().show(&caller, &params.session).await
    })
}

fn fork_session(service: &Service) -> Operation {
    let description = Description::tool(
        "session_fork",
        "Fork a session",
        include_str!("descriptions/session_fork.md"),
        ("POST", "/api/sessions/{session}/fork"),
    );
    Operation::new(service, description, |service, caller, params: ForkSession| async move {
        let heap = params.heap.as_deref().map(|heap| parse_heap_key("heap", heap)).transpose()?;
        service.fork_session(&caller, &params.session, heap).await
    })
}

#[derive(Deserialize, JsonSchema)]
struct UndoSession {
    /// The session: its id, or `s0` and the like from `session_context`.
    session: String,
    /// How many turns to undo. If omitted, 1.
    #[schemars(range(min = 1, max = 1_000))]
    #[serde(default)]
    turns: Option<u32>,
}

fn undo_session(service: &Service) -> Operation {
    let description = Description {
        may_conflict: true,
        ..Description::tool(
            "session_undo",
            "Undo turns of a session",
            include_str!("descriptions/session_undo.md"),
            ("POST", "/api/sessions/{session}/undo"),
        )
    };
    Operation::new(service, description, |service, caller, params: UndoSession| async move {
        service.undo_session(&caller, &params.session, params.turns.unwrap_or(1)).await
    })
}

#[derive(Deserialize, JsonSchema)]
struct ReplaySession {
    /// The session: its id, its name, or `s0` and the like from `session_context`.
    #[schemars(schema_with = "heapstead_service::schema::session_name")]
    session: String,
    /// The first turn to repeat. If omitted, 0.
    #[serde(default)]
    from: Option<u64>,
    /// The last turn to repeat. If omitted, the last one of the session, but at most 1000 turns: `next_from` in the answer leads to the rest.
    #[serde(default)]
    to: Option<u64>,
}

fn replay_session(service: &Service) -> Operation {
    let description = Description {
        may_conflict: true,
        ..Description::endpoint(
            "replay_session",
            "Repeat the turns of a session and compare",
            "Runs the code of each turn again, with the same clock readings and random numbers, on the heap of the turn before, and compares \
             result, output and status. Nothing is stored. A turn of which not everything was recorded is not repeated, and the answer says why.",
            ("POST", "/api/sessions/{session}/replay"),
        )
    };
    Operation::new(service, description, |service, caller, params: ReplaySession| async move {
        service.replay_session(&caller, &params.session, TurnRange { from: params.from, to: params.to }).await
    })
}

#[derive(Deserialize, JsonSchema)]
struct EndSession {
    /// The session: its id, its name, or `s0` and the like from `session_context`.
    session: String,
    /// For a session that was opened with an intent: delete it with its log, so that the intent opens a new session. Default false: it loses
    /// its state and keeps its id and its log.
    forget: Option<bool>,
}

fn end_session(service: &Service) -> Operation {
    let description = Description::endpoint(
        "end_session",
        "End a session",
        "Ends a session and deletes its log: its executions are cancelled, and it can't be continued. A named session is deleted, and its name \
         is free again. A session that was opened with an intent keeps its id and its log and starts with a fresh heap when it is used again, \
         unless `forget` is true. Heaps stay until they are deleted or collected.",
        ("DELETE", "/api/sessions/{session}"),
    );
    Operation::new(service, description, |service, caller, params: EndSession| async move {
        let of_logical = if params.forget.unwrap_or_default() { EndLogical::Forget } else { EndLogical::ClearState };
        service.sessions().end(&caller, &params.session, of_logical).await.map(|()| Done::OK)
    })
}
