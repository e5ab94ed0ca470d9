//! The table of ways to name an object. Operations of the API are tested over REST and as MCP tools; other requests have their own rows.
//! `rows` is long because it is a table.

use crate::owned_objects::ObjectKind::{self, *};
use serde_json::{Value, json};

/// One way to name an object.
pub struct Row {
    pub kind: ObjectKind,
    pub ask: fn(&str) -> Ask,
    pub control: Control,
}

/// How the owner's own response proves that a row distinguishes existing from missing objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// It differs from the response for a missing object.
    Differs,
    /// It is the same, because any name is valid here or nothing is returned.
    Same,
    /// It changes or ends the object, as the owner sees in its inventory.
    Changes,
    /// Not tested, because it waits, has its effect later or on the connection that it is sent over, or needs a flag.
    Waits,
}

#[derive(Debug, Clone)]
pub enum Ask {
    /// An operation of the API with these arguments.
    Operation(&'static str, Value),
    /// The same, with additional headers.
    Headed(&'static str, Value, Vec<(&'static str, String)>),
    /// A plain HTTP request.
    Route { method: &'static str, path: String, headers: Vec<(&'static str, String)>, body: Option<Value> },
    /// An MCP method.
    Method(&'static str, Value),
    /// An MCP method in a session that `_meta` names.
    In(String, &'static str, Value),
}

/// Operations that take no name of an owned object. Their lists are tested in `lists.rs`.
pub const NAMELESS: [&str; 7] =
    ["catalog_search", "collect_heaps", "health_check", "import_heap", "list_sessions", "open_session", "storage_usage"];

const fn row(kind: ObjectKind, control: Control, ask: fn(&str) -> Ask) -> Row {
    Row { kind, ask, control }
}

pub fn rows() -> Vec<Row> {
    use Control::{Changes, Differs, Same, Waits};
    let mut rows = Vec::new();
    for kind in [Execution, Running] {
        // One that has ended can't be cancelled, which is an answer of its own.
        let stops = if kind == Running { Changes } else { Differs };
        rows.extend([
            row(kind, Differs, |id| Ask::Operation("get_execution", json!({ "execution_id": id }))),
            row(kind, Differs, |id| Ask::Operation("get_execution_output", json!({ "execution_id": id }))),
            row(kind, Differs, |id| Ask::Operation("get_execution_output", json!({ "execution_id": id, "byte_offset": 3 }))),
            row(kind, Differs, |id| Ask::Operation("replay_execution", json!({ "execution_id": id }))),
            row(kind, stops, |id| Ask::Operation("cancel_execution", json!({ "execution_id": id }))),
            row(kind, Differs, |id| Ask::Operation("list_executions", json!({ "cursor": id, "limit": 10 }))),
            row(kind, Waits, |id| get(format!("/api/executions/{id}/events"), "text/event-stream")),
            row(kind, Differs, |id| Ask::Method("resources/list", json!({ "cursor": id }))),
            row(kind, Differs, |id| Ask::Method("resources/read", json!({ "uri": format!("heapstead://executions/{id}") }))),
            row(kind, Differs, |id| Ask::Method("resources/read", json!({ "uri": format!("heapstead://executions/{id}/output") }))),
            row(kind, Differs, |id| Ask::Method("resources/read", json!({ "uri": format!("heapstead://executions/{id}/result") }))),
            row(kind, Differs, |id| Ask::Method("resources/subscribe", json!({ "uri": format!("heapstead://executions/{id}") }))),
            row(kind, Differs, |id| Ask::Method("resources/subscribe", json!({ "uri": format!("heapstead://executions/{id}/output") }))),
            row(kind, Waits, |id| Ask::Method("resources/unsubscribe", json!({ "uri": format!("heapstead://executions/{id}") }))),
            row(kind, Differs, |id| Ask::Method("tasks/get", json!({ "taskId": id }))),
            row(kind, stops, |id| Ask::Method("tasks/cancel", json!({ "taskId": id }))),
            row(kind, Waits, |id| Ask::Method("tasks/result", json!({ "taskId": id }))),
            row(kind, Waits, |id| Ask::Method("tasks/update", json!({ "taskId": id, "inputResponses": {} }))),
            row(kind, Differs, |id| Ask::Method("tasks/list", json!({ "cursor": id }))),
        ]);
    }
    rows.extend([
        row(Execution, Changes, |id| Ask::Operation("delete_execution", json!({ "execution_id": id }))),
        row(Running, Differs, |id| Ask::Operation("delete_execution", json!({ "execution_id": id }))),
        row(Heap, Differs, |key| Ask::Operation("run_js", json!({ "code": "typeof secret", "heap": key, "wait_secs": 60 }))),
        row(Heap, Differs, |key| Ask::Operation("run_js", json!({ "code": "1", "heap": key, "wait_secs": 60, "on_missing_heap": "fail" }))),
        row(Heap, Differs, |key| Ask::Operation("get_heap_tags", json!({ "heap": key }))),
        row(TagValue, Differs, |value| Ask::Operation("query_heaps_by_tags", json!({ "tags": { "mine": value } }))),
        row(Heap, Changes, |key| Ask::Operation("set_heap_tags", json!({ "heap": key, "tags": { "theirs": "x" } }))),
        row(Heap, Changes, |key| Ask::Operation("delete_heap_tags", json!({ "heap": key }))),
        row(Heap, Changes, |key| Ask::Operation("delete_heap_tags", json!({ "heap": key, "keys": "mine, theirs" }))),
        row(Heap, Same, |key| Ask::Operation("query_heaps_by_tags", json!({ "tags": {}, "cursor": key }))),
        row(Heap, Same, |key| Ask::Operation("list_heaps", json!({ "cursor": key }))),
        row(Heap, Differs, |key| Ask::Operation("show_heap", json!({ "heap": key }))),
        row(Heap, Differs, |key| Ask::Operation("upgrade_heap", json!({ "heap": key }))),
        row(Heap, Differs, |key| get(format!("/api/heaps/{key}/file"), "application/octet-stream")),
        row(Heap, Changes, |key| Ask::Operation("delete_heap", json!({ "heap": key }))),
        row(Head, Differs, |key| Ask::Operation("delete_heap", json!({ "heap": key }))),
    ]);
    for kind in [Session, LogicalSession, Logical, Ref] {
        rows.extend([
            row(kind, Changes, |id| Ask::Operation("run_js", json!({ "code": "1", "session": id, "wait_secs": 60 }))),
            row(kind, Changes, |id| Ask::Operation("run_js", json!({ "code": "1", "session": id, "wait_secs": 60, "on_stale": "fail" }))),
            row(kind, Differs, |id| Ask::Operation("list_executions", json!({ "session": id }))),
            row(kind, Differs, |id| Ask::Operation("list_session_snapshots", json!({ "session": id }))),
            row(kind, Differs, |id| Ask::Operation("list_session_snapshots", json!({ "session": id, "limit": 1, "cursor": "0" }))),
            row(kind, Differs, |id| Ask::Operation("show_session", json!({ "session": id }))),
            row(kind, Differs, |id| Ask::Operation("session_fork", json!({ "session": id }))),
            row(kind, Changes, |id| Ask::Operation("session_undo", json!({ "session": id }))),
            row(kind, Differs, |id| Ask::Operation("replay_session", json!({ "session": id }))),
            row(kind, Differs, |id| Ask::Operation("context_get", json!({ "session": id }))),
            row(kind, Differs, |id| Ask::Operation("context_check", json!({ "session": id, "query": "x" }))),
            row(kind, Changes, |id| Ask::Operation("context_set", json!({ "session": id, "custom": { "theirs": 1 } }))),
            row(kind, Changes, |id| Ask::Operation("context_record", json!({ "session": id, "query": "x" }))),
            row(kind, Changes, |id| Ask::Operation("context_clear", json!({ "session": id }))),
            row(kind, Waits, |id| {
                Ask::Method("tools/call", json!({ "name": "plasm_run", "arguments": { "logical_session_ref": id, "program": "1" } }))
            }),
            row(kind, Waits, |id| {
                Ask::Method("tools/call", json!({ "name": "run_js", "arguments": { "code": "1", "session": id }, "task": {} }))
            }),
        ]);
    }
    rows.extend([
        row(EndedSession, Differs, |id| Ask::Operation("run_js", json!({ "code": "1", "session": id, "wait_secs": 60 }))),
        row(EndedSession, Differs, |id| Ask::Operation("list_executions", json!({ "session": id }))),
        row(EndedSession, Differs, |id| Ask::Operation("list_session_snapshots", json!({ "session": id }))),
        row(EndedSession, Differs, |id| Ask::Operation("context_get", json!({ "session": id }))),
        row(EndedSession, Differs, |id| Ask::Operation("context_set", json!({ "session": id, "custom": { "theirs": 1 } }))),
        row(EndedSession, Differs, |id| Ask::Headed("run_js", json!({ "code": "1", "wait_secs": 60 }), named(id))),
        row(EndedSession, Same, |id| Ask::Operation("show_session", json!({ "session": id }))),
        row(EndedSession, Same, |id| Ask::Operation("session_fork", json!({ "session": id }))),
        row(EndedSession, Same, |id| Ask::Operation("session_undo", json!({ "session": id }))),
        row(EndedSession, Same, |id| Ask::Method("sessions/resume", json!({ "sessionId": id }))),
        row(EndedSession, Same, |id| Ask::In(id.into(), "tools/list", json!({}))),
    ]);
    for kind in [Session, LogicalSession] {
        rows.extend([
            row(kind, Differs, |id| Ask::Operation("list_opened_sessions", json!({ "cursor": id }))),
            row(kind, Differs, |id| Ask::Method("sessions/list", json!({ "cursor": id }))),
            row(kind, Differs, |id| Ask::Method("sessions/resume", json!({ "sessionId": id }))),
            row(kind, Differs, |id| Ask::Method("resources/read", json!({ "uri": format!("heapstead://sessions/{id}/head") }))),
            row(kind, Differs, |id| Ask::Method("resources/subscribe", json!({ "uri": format!("heapstead://sessions/{id}/head") }))),
            row(kind, Waits, |id| Ask::Method("resources/unsubscribe", json!({ "uri": format!("heapstead://sessions/{id}/head") }))),
            row(kind, Differs, |id| Ask::In(id.into(), "ping", json!({}))),
            row(kind, Differs, |id| Ask::In(id.into(), "tools/list", json!({}))),
            row(kind, Differs, |id| Ask::In(id.into(), "resources/list", json!({}))),
            row(kind, Differs, |id| Ask::In(id.into(), "resources/templates/list", json!({}))),
            row(kind, Differs, |id| Ask::In(id.into(), "tasks/list", json!({}))),
            row(kind, Differs, |id| Ask::In(id.into(), "sessions/list", json!({}))),
            row(kind, Differs, |id| Ask::In(id.into(), "logging/setLevel", json!({ "level": "error" }))),
            row(kind, Differs, |id| Ask::In(id.into(), "tools/call", json!({ "name": "list_session_snapshots", "arguments": {} }))),
            row(kind, Changes, |id| {
                Ask::In(id.into(), "tools/call", json!({ "name": "run_js", "arguments": { "code": "1", "wait_secs": 60 } }))
            }),
            row(kind, Waits, |id| Ask::In(id.into(), "messages/listen", json!({}))),
            row(kind, Waits, |id| Ask::In(id.into(), "subscriptions/listen", json!({ "notifications": {} }))),
            row(kind, Changes, |id| Ask::In(id.into(), "sessions/delete", json!({}))),
            row(kind, Waits, |id| get_headed("/mcp", "text/event-stream", "last-event-id", format!("listen.{id}.0.0.37"))),
            row(kind, Changes, |id| Ask::Headed("run_js", json!({ "code": "1", "wait_secs": 60 }), named(id))),
        ]);
    }
    rows.extend([
        row(Logical, Differs, |id| Ask::Operation("session_context", json!({ "intent": "whatever", "logical_session_id": id }))),
        row(Log, Changes, |name| Ask::Operation("run_js", json!({ "code": "1", "session": name, "wait_secs": 60 }))),
        row(Log, Changes, |name| Ask::Headed("run_js", json!({ "code": "1", "wait_secs": 60 }), named(name))),
        row(Log, Differs, |name| Ask::Headed("list_session_snapshots", json!({ "fields": "code" }), named(name))),
        row(Log, Differs, |name| Ask::Operation("list_session_snapshots", json!({ "session": name, "fields": "code" }))),
        row(Log, Differs, |name| Ask::Operation("list_executions", json!({ "session": name }))),
        row(Log, Same, |name| Ask::Operation("context_check", json!({ "session": name, "query": "x" }))),
        row(Log, Changes, |name| Ask::Headed("context_set", json!({ "custom": { "theirs": 1 } }), named(name))),
        row(Log, Same, |name| Ask::Operation("show_session", json!({ "session": name }))),
        row(Log, Same, |name| Ask::Operation("session_fork", json!({ "session": name }))),
        row(Log, Same, |name| Ask::Operation("session_undo", json!({ "session": name }))),
    ]);
    for kind in [Connection, Session] {
        // The id of a session does not name a connection.
        let (ends, uses) = if kind == Connection { (Changes, Differs) } else { (Same, Same) };
        rows.extend([
            row(kind, Waits, |id| get_headed("/mcp", "text/event-stream", "mcp-session-id", id.into())),
            row(kind, ends, |id| on_connection("DELETE", id, None)),
            row(kind, uses, |id| on_connection("POST", id, Some(json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list" })))),
            row(kind, Waits, |id| on_connection("POST", id, Some(json!({ "jsonrpc": "2.0", "id": 7, "method": "messages/listen" })))),
            row(kind, uses, |id| on_connection("POST", id, Some(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })))),
        ]);
    }
    // Named twice, like clients that mirror the id into the header.
    rows.push(row(Session, Differs, |id| {
        let meta = json!({ "io.modelcontextprotocol/session": { "sessionId": id } });
        on_connection("POST", id, Some(json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": { "_meta": meta } })))
    }));
    rows.push(row(SseConnection, Differs, |id| Ask::Route {
        method: "POST",
        path: format!("/message?sessionId={id}"),
        headers: Vec::new(),
        body: Some(json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" })),
    }));
    // Last, because over REST other rows create named sessions with these names, and this deletes them with their contexts.
    for kind in [Session, LogicalSession, Logical, Ref] {
        rows.push(row(kind, Changes, |id| Ask::Operation("end_session", json!({ "session": id }))));
    }
    rows.push(row(EndedSession, Differs, |id| Ask::Operation("end_session", json!({ "session": id }))));
    for kind in [Logical, Log] {
        rows.push(row(kind, Changes, |id| Ask::Operation("end_session", json!({ "session": id, "forget": true }))));
    }
    rows
}

fn named(id: &str) -> Vec<(&'static str, String)> {
    vec![("x-mcp-session-id", id.to_owned())]
}

fn get(path: String, accept: &str) -> Ask {
    Ask::Route { method: "GET", path, headers: vec![("accept", accept.to_owned())], body: None }
}

fn get_headed(path: &str, accept: &str, header: &'static str, value: String) -> Ask {
    Ask::Route { method: "GET", path: path.to_owned(), headers: vec![("accept", accept.to_owned()), (header, value)], body: None }
}

fn on_connection(method: &'static str, id: &str, body: Option<Value>) -> Ask {
    let accept = ("accept", "application/json, text/event-stream".to_owned());
    let version = ("mcp-protocol-version", "2025-11-25".to_owned());
    Ask::Route { method, path: "/mcp".into(), headers: vec![accept, version, ("mcp-session-id", id.to_owned())], body }
}
