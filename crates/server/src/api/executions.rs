//! Running code, and what became of it: `run_js`, `get_execution`, `get_execution_output`, `cancel_execution`, `list_executions`.

use super::operation::{Arguments, Description, Done, FailureShape, LongText, Operation, Pending, Route, Shown};
use super::schema;
use heapstead_service::{
    Caller, ExecutionRecord, ListRequest, OnMissingHeap, OnStale, Origin, ResultPart, ResultRange, RunRequest, Service, ServiceError,
    StartsFrom, Target, check_tags,
};
use heapstead_store::Tags;
use heapstead_store::outputs::{BYTE_LIMIT_DEFAULT, BYTE_LIMIT_MAX, LINE_LIMIT_DEFAULT, LINE_LIMIT_MAX, PageRequest};
use heapstead_types::{HeapKey, Limits, Status, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Deserialize, JsonSchema)]
struct RunJs {
    /// JavaScript or TypeScript; types are stripped before it runs. The value of the last expression is the result. Top-level `await`,
    /// `let`, `const`, `class` and `function` work, and live on in the heap.
    #[schemars(length(min = 1))]
    code: String,
    /// Key of the heap to go on from (64 lowercase hex digits, from an earlier run's record). Empty: a fresh heap. Absent: what the session's run
    /// before left, if the run is in an opened session; else a fresh heap.
    #[schemars(regex(pattern = "^([0-9a-f]{64})?$"))]
    heap: Option<String>,
    /// Memory cap of this run in MB.
    #[schemars(range(min = limits::HEAP_MB_MIN, max = limits::HEAP_MB_MAX))]
    heap_memory_max_mb: Option<i64>,
    /// How long the code may run, in seconds.
    #[schemars(range(min = limits::TIMEOUT_SECS_MIN, max = limits::TIMEOUT_SECS_MAX))]
    execution_timeout_secs: Option<i64>,
    /// Tags to set on the heap that the run leaves; they replace whatever tags that heap had.
    #[schemars(schema_with = "heapstead_service::schema::tags")]
    #[serde(default)]
    tags: Option<Tags>,
    /// The session that the run goes on in: `s0` or the like from `session_context`, or a session's id. It begins with what the run before left,
    /// unless `heap` says otherwise. Absent: the session of the connection, if it has one. Over REST any other name is a log that the run goes into.
    #[schemars(schema_with = "heapstead_service::schema::session_name")]
    #[serde(default)]
    session: Option<String>,
    /// What to do when `heap` is not found: begin with a fresh heap and a warning, or refuse to run.
    on_missing_heap: Option<Missing>,
    /// What to do when the state of the session is gone: begin anew and say so, or refuse. Default `recover`.
    on_stale: Option<Stale>,
    /// Answer when the run ends or this many seconds have passed, whichever is first, with the whole record. Absent: answer at once.
    #[schemars(range(min = 0, max = 300))]
    wait_secs: Option<f64>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Missing {
    Fresh,
    Fail,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Stale {
    Recover,
    Fail,
}

#[derive(Deserialize, JsonSchema)]
struct GetExecution {
    /// As `run_js` answered it.
    execution_id: String,
    /// If it still runs, wait for its end, but at most this many seconds.
    #[schemars(range(min = 0, max = 300))]
    wait_secs: Option<f64>,
    /// Returns the part of the result that begins at this byte: 0, or `next_result_offset` of an earlier answer.
    #[schemars(range(min = 0, max = 9_007_199_254_740_991u64))]
    result_offset: Option<u64>,
    /// At most this many bytes of the result. If omitted, as much as fits in one answer.
    #[schemars(range(min = 1, max = limits::RESULT_BYTES_MAX))]
    result_limit: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
struct GetExecutionOutput {
    /// As `run_js` answered it.
    execution_id: String,
    /// First line of the page; the first of all is 1. Ignored when `byte_offset` is given. Default 1.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991u64))]
    line_offset: Option<u64>,
    /// Lines on the page. Ignored when `byte_offset` is given. Default 100.
    #[schemars(range(min = 1, max = LINE_LIMIT_MAX))]
    line_limit: Option<u64>,
    /// First byte of the page; makes it a page of bytes instead of lines. One in the middle of a character goes back to its start.
    #[schemars(range(min = 0, max = 9_007_199_254_740_991u64))]
    byte_offset: Option<u64>,
    /// Bytes on the page, only with `byte_offset`. Characters are never split. Default 4096.
    #[schemars(range(min = 1, max = BYTE_LIMIT_MAX))]
    byte_limit: Option<u64>,
    /// If there is nothing at the cursor yet, wait for it or for the end, but at most this many seconds. Default 0.
    #[schemars(range(min = 0, max = 300))]
    wait_secs: Option<f64>,
}

#[derive(Deserialize, JsonSchema)]
struct CancelExecution {
    /// As `run_js` answered it.
    execution_id: String,
}

#[derive(Deserialize, JsonSchema)]
struct ListExecutions {
    /// Only those that stand like this.
    #[schemars(schema_with = "heapstead_service::schema::status")]
    #[serde(default)]
    status: Option<Status>,
    /// Only those of this session.
    #[schemars(schema_with = "heapstead_service::schema::session_name")]
    #[serde(default)]
    session: Option<String>,
    /// At most this many; `next_cursor` in the answer leads to the rest.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
    /// Goes on where an earlier answer's `next_cursor` says.
    #[schemars(schema_with = "heapstead_service::schema::execution_cursor")]
    #[serde(default)]
    cursor: Option<String>,
}

/// Only the id, or the whole record when somebody waited for it.
#[derive(Serialize)]
#[serde(untagged)]
enum RunAnswer {
    Id { execution_id: String },
    Record(Box<ExecutionRecord>),
}

pub fn operations(service: &Service) -> Vec<Operation> {
    vec![run_js(service), get_execution(service), get_execution_output(service), cancel_execution(service), list_executions(service)]
}

fn run_js(service: &Service) -> Operation {
    let description = Description {
        name: "run_js",
        title: "Run JavaScript",
        text: include_str!("descriptions/run_js.md"),
        is_tool: true,
        read_only: false,
        route: Route { method: "POST", path: "/api/exec" },
        failure: FailureShape::Error,
    };
    Operation::with_output(service, description, run_js_output(), |service, caller, params: RunJs| async move {
        let wait_secs = params.wait_secs;
        let request = run_request(&service, &caller, params).await?;
        let live = service.run(&caller, request).await?;
        let Some(wait_secs) = wait_secs else {
            return Ok(Pending { answer: RunAnswer::Id { execution_id: live.id().to_string() }, pending: true });
        };
        let record = live.record_after(seconds(Some(wait_secs))).await;
        service.tell(&record).await;
        Ok(Pending { pending: !record.status.is_terminal(), answer: RunAnswer::Record(Box::new(record)) })
    })
    .with_long_text(RESULT)
}

/// A result that is shown in part, and where the rest of it is.
const RESULT: LongText = LongText { member: "result", part: result_part, shown: Shown::Preview };

fn result_part(record: &Value, shown_bytes: usize) -> Arguments {
    let text = |member: &str| record[member].as_str().unwrap_or_default();
    let part = ResultPart::new(text("execution_id"), 0..shown_bytes, text("result").len());
    serde_json::to_value(part).ok().and_then(|part| part.as_object().cloned()).unwrap_or_default()
}

/// The record, of which only the id is there when nobody waited.
fn run_js_output() -> Value {
    let mut schema = schema::output::<ExecutionRecord>();
    schema["required"] = json!(["execution_id"]);
    schema
}

async fn run_request(service: &Service, caller: &Caller, params: RunJs) -> Result<RunRequest, ServiceError> {
    limits::code(&params.code)?;
    let policy = service.policy();
    let on_missing = match params.on_missing_heap {
        None => policy.on_missing_heap,
        Some(Missing::Fresh) => OnMissingHeap::Fresh,
        Some(Missing::Fail) => OnMissingHeap::Fail,
    };
    let session = service.session_of(caller, params.session.as_deref()).await?;
    if policy.require_session && session == Target::Alone {
        return Err(ServiceError::SessionRequired("this server runs code in sessions only: open one, and name it in the call".into()));
    }
    let from = match params.heap.as_deref() {
        None if matches!(session, Target::Opened(_)) => StartsFrom::Head { on_missing },
        None | Some("") => StartsFrom::Given(Origin::Fresh),
        Some(text) => StartsFrom::Given(Origin::Heap { key: heap_key("heap", text)?, on_missing }),
    };
    if let Some(tags) = &params.tags {
        check_tags(tags)?;
    }
    let session = service.in_session(session);
    let on_stale = match params.on_stale {
        None | Some(Stale::Recover) => OnStale::Recover,
        Some(Stale::Fail) => OnStale::Fail,
    };
    let limits = run_limits(policy.limits, params.heap_memory_max_mb, params.execution_timeout_secs)?;
    Ok(RunRequest { code: params.code, from, limits, tags: params.tags, session, on_stale })
}

/// The server's defaults, with what the caller asks for instead.
pub fn run_limits(defaults: Limits, heap_mb: Option<i64>, timeout_secs: Option<i64>) -> Result<Limits, ServiceError> {
    Ok(Limits {
        heap_mb: heap_mb.map_or(Ok(defaults.heap_mb), |mb| limits::heap_mb("heap_memory_max_mb", mb))?,
        timeout_secs: timeout_secs.map_or(Ok(defaults.timeout_secs), |secs| limits::timeout_secs("execution_timeout_secs", secs))?,
        ..defaults
    })
}

pub fn heap_key(parameter: &str, text: &str) -> Result<HeapKey, ServiceError> {
    text.parse()
        .map_err(|_| ServiceError::bad_value(parameter, format!("`{text}`"), "expected a heap key, which is 64 lowercase hex digits"))
}

fn seconds(secs: Option<f64>) -> Duration {
    Duration::try_from_secs_f64(secs.unwrap_or_default()).unwrap_or_default()
}

fn get_execution(service: &Service) -> Operation {
    let description = Description {
        name: "get_execution",
        title: "Get an execution",
        text: include_str!("descriptions/get_execution.md"),
        is_tool: true,
        read_only: true,
        route: Route { method: "GET", path: "/api/executions/{execution_id}" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, params: GetExecution| async move {
        let record = service.execution(&caller, &params.execution_id, seconds(params.wait_secs)).await?;
        service.tell(&record).await;
        Ok(match (params.result_offset, params.result_limit) {
            (None, None) => record,
            (offset, limit) => record.with_part(ResultRange { offset: offset.unwrap_or(0), limit }, caller.room),
        })
    })
    .with_long_text(RESULT)
}

fn get_execution_output(service: &Service) -> Operation {
    let description = Description {
        name: "get_execution_output",
        title: "Read console output",
        text: include_str!("descriptions/get_execution_output.md"),
        is_tool: true,
        read_only: true,
        route: Route { method: "GET", path: "/api/executions/{execution_id}/output" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, params: GetExecutionOutput| async move {
        let page = match params.byte_offset {
            Some(offset) => PageRequest::Bytes { offset, limit: params.byte_limit.unwrap_or(BYTE_LIMIT_DEFAULT) },
            None => PageRequest::lines(params.line_offset.unwrap_or(1), params.line_limit.unwrap_or(LINE_LIMIT_DEFAULT)),
        };
        service.output(&caller, &params.execution_id, page, seconds(params.wait_secs)).await
    })
}

fn cancel_execution(service: &Service) -> Operation {
    let description = Description {
        name: "cancel_execution",
        title: "Cancel an execution",
        text: include_str!("descriptions/cancel_execution.md"),
        is_tool: true,
        read_only: false,
        route: Route { method: "POST", path: "/api/executions/{execution_id}/cancel" },
        failure: FailureShape::Ok,
    };
    Operation::new(service, description, |service, caller, params: CancelExecution| async move {
        service.cancel(&caller, &params.execution_id).await.map(|()| Done::OK)
    })
}

fn list_executions(service: &Service) -> Operation {
    let description = Description {
        name: "list_executions",
        title: "List executions",
        text: include_str!("descriptions/list_executions.md"),
        is_tool: true,
        read_only: true,
        route: Route { method: "GET", path: "/api/executions" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, params: ListExecutions| async move {
        let session = match params.session.as_deref() {
            None => None,
            named => service.log_of(&caller, named).await?,
        };
        let request = ListRequest { status: params.status, session, limit: params.limit, cursor: params.cursor };
        service.executions(&caller, request).await
    })
}
