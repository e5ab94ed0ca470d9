//! Runs code, and reads, cancels and lists executions: `run_js`, `get_execution`, `get_execution_output`, `cancel_execution`, `list_executions`.

use super::answer_stream::Paged;
use super::operation::{Arguments, Description, Done, FailureShape, LongText, NeedsSession, Operation, Pending, Shown};
use super::{alias, schema};
use heapstead_service::{
    Caller, Durability, ExecutionOutput, ExecutionRecord, ListRequest, LongAnswer, OnMissingHeap, OnStale, ResultPart, ResultRange,
    RunParameters, Service, TextRest,
};
use heapstead_store::Tags;
use heapstead_store::outputs::{BYTE_LIMIT_DEFAULT, BYTE_LIMIT_MAX, LINE_LIMIT_DEFAULT, LINE_LIMIT_MAX, PageRequest};
use heapstead_types::{LimitMaxima, Status, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Deserialize, JsonSchema)]
struct RunJs {
    /// JavaScript or TypeScript; types are stripped before it runs. The value of the last expression is the result. Top-level `await`,
    /// `let`, `const`, `class` and `function` work, and their values stay in the heap.
    #[schemars(regex(pattern = heapstead_service::schema::NOT_EMPTY))]
    code: String,
    /// Key of the heap to continue from (64 lowercase hex digits, from an earlier run's record). If empty, a fresh heap. If omitted, the
    /// session's head if the run is in an opened session, else a fresh heap.
    #[schemars(regex(pattern = "^([0-9a-f]{64})?$"))]
    heap: Option<String>,
    /// Memory cap of this run in MB.
    #[schemars(range(min = limits::HEAP_MB_MIN, max = limits::HEAP_MB_MAX))]
    heap_memory_max_mb: Option<i64>,
    /// Time limit of the code, in seconds.
    #[schemars(range(min = limits::TIMEOUT_SECS_MIN, max = limits::TIMEOUT_SECS_MAX))]
    execution_timeout_secs: Option<i64>,
    /// Tags to set on the heap that the run produces; they replace all tags of that heap.
    #[schemars(schema_with = "heapstead_service::schema::tags")]
    #[serde(default)]
    tags: Option<Tags>,
    /// The session to run in: `s0` or the like from `session_context`, or a session's id. The run continues from the session's head, unless
    /// `heap` is given. If omitted, the session of the connection, if it has one. Over REST any other name is a log that the run is added to.
    #[schemars(schema_with = "heapstead_service::schema::session_name")]
    #[serde(default)]
    session: Option<String>,
    /// If `heap` is not found: `fresh` starts with a fresh heap and a warning, `fail` refuses to run.
    on_missing_heap: Option<Missing>,
    /// If the state of the session was lost: `recover` starts with fresh state and reports it, `fail` refuses to run. Default `recover`.
    on_stale: Option<Stale>,
    /// In an opened session, what the answer waits for: `snapshot`, until the heap is stored, or `journal`, until the run can be repeated after a
    /// crash; its heap is stored later. If omitted, as the server is configured.
    durability: Option<DurabilityParam>,
    /// Waits for the end of the run, at most this many seconds, and returns the record. If omitted, returns the id immediately.
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

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Durability")]
enum DurabilityParam {
    Journal,
    Snapshot,
}

#[derive(Deserialize, JsonSchema)]
struct GetExecution {
    /// As returned by `run_js`.
    execution_id: String,
    /// If it still runs, waits for its end, at most this many seconds.
    #[schemars(range(min = 0, max = 300))]
    wait_secs: Option<f64>,
    /// Returns the part of the result that begins at this byte: 0, or `next_result_offset` of an earlier answer.
    #[schemars(range(min = 0, max = 9_007_199_254_740_991u64))]
    result_offset: Option<u64>,
    /// At most this many bytes of the result. If omitted, as much as fits in one answer.
    #[schemars(range(min = 1, max = limits::RESULT_BYTES_MAX))]
    result_limit: Option<u64>,
    /// If its heap is not stored yet, or was skipped, stores it first.
    materialize: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
struct GetExecutionOutput {
    /// As returned by `run_js`.
    execution_id: String,
    /// First line of the page, counted from 1. Ignored if `byte_offset` is given. Default 1.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991u64))]
    line_offset: Option<u64>,
    /// Lines on the page. Ignored if `byte_offset` is given. Default 100.
    #[schemars(range(min = 1, max = LINE_LIMIT_MAX))]
    line_limit: Option<u64>,
    /// First byte of the page; makes it a page of bytes instead of lines. Inside of a character, the page starts with that character.
    #[schemars(range(min = 0, max = 9_007_199_254_740_991u64))]
    byte_offset: Option<u64>,
    /// Bytes on the page, only with `byte_offset`. Characters are never split. Default 4096.
    #[schemars(range(min = 1, max = BYTE_LIMIT_MAX))]
    byte_limit: Option<u64>,
    /// If there is no output at the offset yet, waits for it or for the end, at most this many seconds. Default 0.
    #[schemars(range(min = 0, max = 300))]
    wait_secs: Option<f64>,
}

#[derive(Deserialize, JsonSchema)]
struct OneExecution {
    /// As returned by `run_js`.
    execution_id: String,
}

#[derive(Clone, Deserialize, JsonSchema)]
struct ListExecutions {
    /// Filter by status.
    #[schemars(schema_with = "heapstead_service::schema::status")]
    #[serde(default)]
    status: Option<Status>,
    /// Filter by session.
    #[schemars(schema_with = "heapstead_service::schema::session_name")]
    #[serde(default)]
    session: Option<String>,
    /// At most this many; `next_cursor` in the answer leads to the rest.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
    /// Continues after `next_cursor` of an earlier answer.
    #[schemars(schema_with = "heapstead_service::schema::execution_cursor")]
    #[serde(default)]
    cursor: Option<String>,
}

impl Paged for ListExecutions {
    fn limit(&self) -> Option<u32> {
        self.limit
    }

    fn set_page(&mut self, cursor: String, limit: Option<u32>) {
        (self.cursor, self.limit) = (Some(cursor), limit);
    }
}

/// Only the id, or the record if the caller waited for it.
#[derive(Serialize)]
#[serde(untagged)]
enum RunAnswer {
    Id { execution_id: String },
    Record(Box<ExecutionRecord>),
}

impl LongAnswer for RunAnswer {
    fn rest(&self) -> Option<&TextRest> {
        match self {
            Self::Id { .. } => None,
            Self::Record(record) => record.rest(),
        }
    }
}

pub fn operations(service: &Service) -> Vec<Operation> {
    vec![
        run_js(service),
        get_execution(service),
        get_execution_output(service),
        cancel_execution(service),
        delete_execution(service),
        replay_execution(service),
        list_executions(service),
    ]
}

fn run_js(service: &Service) -> Operation {
    let description = Description {
        runs_code: true,
        may_conflict: true,
        needs_session: NeedsSession::IfRequired,
        // If the code failed, the tool call is reported as failed.
        reports_failure: |answer| answer.get("error").is_some_and(|error| !error.is_null()),
        long_text: Some(RESULT),
        execution_links: &[("record", "get_execution"), ("output", "get_execution_output"), ("cancel", "cancel_execution")],
        aliases: &alias::RUN_JS,
        maxima: run_maxima(service.policy().maxima),
        ..Description::tool("run_js", "Run JavaScript", include_str!("descriptions/run_js.md"), ("POST", "/api/exec"))
    };
    Operation::long(service, description, run_js_output(), |service, caller, params: RunJs| async move {
        let wait_secs = params.wait_secs;
        let execution = service.run(&caller, params.into()).await?;
        let Some(wait_secs) = wait_secs else {
            return Ok(Pending { answer: RunAnswer::Id { execution_id: execution.id().to_string() }, pending: true });
        };
        let record = service.wait_for_run(&caller, &execution, seconds(Some(wait_secs))).await;
        let pending = !record.status.is_terminal();
        Ok(Pending { answer: RunAnswer::Record(Box::new(for_answer(record, &caller))), pending })
    })
}

/// As the schema of `run_js` states them.
pub fn run_maxima(maxima: LimitMaxima) -> Vec<(&'static str, u32)> {
    vec![("heap_memory_max_mb", maxima.heap_mb), ("execution_timeout_secs", maxima.timeout_secs)]
}

/// `result` may be truncated.
const RESULT: LongText = LongText { member: "result", part: result_part, whole_bytes: "result_bytes", shown: Shown::Preview };

fn result_part(record: &Value, shown_bytes: usize, whole_bytes: usize) -> Arguments {
    let part = ResultPart::new(record["execution_id"].as_str().unwrap_or_default(), 0..shown_bytes, whole_bytes);
    serde_json::to_value(part).ok().and_then(|part| part.as_object().cloned()).unwrap_or_default()
}

/// The record; only the id if the caller did not wait.
fn run_js_output() -> Value {
    let mut schema = schema::output::<ExecutionRecord>();
    schema["required"] = json!(["execution_id"]);
    schema
}

impl From<RunJs> for RunParameters {
    fn from(params: RunJs) -> Self {
        Self {
            code: params.code,
            heap: params.heap,
            heap_memory_max_mb: params.heap_memory_max_mb,
            execution_timeout_secs: params.execution_timeout_secs,
            tags: params.tags,
            session: params.session,
            on_missing_heap: params.on_missing_heap.map(|missing| match missing {
                Missing::Fresh => OnMissingHeap::Fresh,
                Missing::Fail => OnMissingHeap::Fail,
            }),
            on_stale: match params.on_stale {
                None | Some(Stale::Recover) => OnStale::Recover,
                Some(Stale::Fail) => OnStale::Fail,
            },
            durability: params.durability.map(|durability| match durability {
                DurabilityParam::Journal => Durability::Journal,
                DurabilityParam::Snapshot => Durability::Snapshot,
            }),
        }
    }
}

fn seconds(secs: Option<f64>) -> Duration {
    Duration::try_from_secs_f64(secs.unwrap_or_default()).unwrap_or_default()
}

/// With as much of the result as one answer holds; what is streamed is read later.
fn for_answer(record: ExecutionRecord, caller: &Caller) -> ExecutionRecord {
    match caller.room {
        None => record,
        Some(room) if room.is_streamed() => record.streamed(),
        Some(_) => record.for_message(),
    }
}

fn get_execution(service: &Service) -> Operation {
    let description = Description {
        follows_execution: true,
        is_recorded: false,
        long_text: Some(RESULT),
        ..Description::tool(
            "get_execution",
            "Get an execution",
            include_str!("descriptions/get_execution.md"),
            ("GET", "/api/executions/{execution_id}"),
        )
        .read_only()
    };
    let output = schema::output::<ExecutionRecord>();
    Operation::long(service, description, output, |service, caller, params: GetExecution| async move {
        let (id, wait) = (&params.execution_id, seconds(params.wait_secs));
        if params.materialize == Some(true) {
            service.materialize_execution(&caller, id, wait).await?;
        }
        let record = match (params.result_offset, params.result_limit) {
            (None, None) => service.execution(&caller, id, wait).await?,
            (offset, limit) => service.execution_part(&caller, id, wait, ResultRange { offset: offset.unwrap_or(0), limit }).await?,
        };
        Ok(Pending { answer: for_answer(record, &caller), pending: false })
    })
}

fn get_execution_output(service: &Service) -> Operation {
    let description = Description {
        follows_execution: true,
        is_recorded: false,
        ..Description::tool(
            "get_execution_output",
            "Read console output",
            include_str!("descriptions/get_execution_output.md"),
            ("GET", "/api/executions/{execution_id}/output"),
        )
        .read_only()
    };
    let output = schema::output::<ExecutionOutput>();
    Operation::long(service, description, output, |service, caller, params: GetExecutionOutput| async move {
        let page = match params.byte_offset {
            Some(offset) => PageRequest::Bytes { offset, limit: params.byte_limit.unwrap_or(BYTE_LIMIT_DEFAULT) },
            None => PageRequest::lines(params.line_offset.unwrap_or(1), params.line_limit.unwrap_or(LINE_LIMIT_DEFAULT)),
        };
        let answer = service.executions().output(&caller, &params.execution_id, page, seconds(params.wait_secs)).await?;
        Ok(Pending { answer, pending: false })
    })
}

fn cancel_execution(service: &Service) -> Operation {
    let description = Description {
        failure: FailureShape::Ok,
        destructive: true,
        may_conflict: true,
        ..Description::tool(
            "cancel_execution",
            "Cancel an execution",
            include_str!("descriptions/cancel_execution.md"),
            ("POST", "/api/executions/{execution_id}/cancel"),
        )
    };
    Operation::new(service, description, |service, caller, params: OneExecution| async move {
        service.executions().cancel(&caller, &params.execution_id).await.map(|()| Done::OK)
    })
}

fn delete_execution(service: &Service) -> Operation {
    let description = Description {
        failure: FailureShape::Ok,
        may_conflict: true,
        ..Description::endpoint(
            "delete_execution",
            "Delete an execution",
            "Deletes the record and the console output of an execution that has ended. Its heap stays until it is deleted or collected, and its \
             log entry as long as its session.",
            ("DELETE", "/api/executions/{execution_id}"),
        )
    };
    Operation::new(service, description, |service, caller, params: OneExecution| async move {
        service.executions().delete(&caller, &params.execution_id).await.map(|()| Done::OK)
    })
}

fn replay_execution(service: &Service) -> Operation {
    let description = Description {
        may_conflict: true,
        ..Description::endpoint(
            "replay_execution",
            "Repeat a run and compare",
            "Runs the code of an execution again, on the heap that it started from and with the same clock readings and random numbers, and \
             compares result, output and status. Nothing is stored. Refused if not everything that the run read was recorded.",
            ("POST", "/api/executions/{execution_id}/replay"),
        )
    };
    Operation::new(service, description, |service, caller, params: OneExecution| async move {
        service.replay_execution(&caller, &params.execution_id).await
    })
}

fn list_executions(service: &Service) -> Operation {
    let description = Description::tool(
        "list_executions",
        "List executions",
        include_str!("descriptions/list_executions.md"),
        ("GET", "/api/executions"),
    )
    .read_only();
    Operation::list(service, description, |service, caller, params: ListExecutions| async move {
        let session = match params.session.as_deref() {
            None => None,
            named => service.sessions().log_name(&caller, named).await?,
        };
        let request = ListRequest { status: params.status, session, limit: params.limit, cursor: params.cursor };
        service.executions().list(&caller, request).await
    })
}
