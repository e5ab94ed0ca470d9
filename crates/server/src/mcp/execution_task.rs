//! An execution as a task of MCP's tasks extension (2026-07-28). The task's id is the execution's, so it outlives connections and servers.

use super::error::{self, from_service};
use super::tool_result::{self, ClientFormat};
use crate::api::{Arguments, Operation, Success};
use crate::edge::Edge;
use crate::long_results;
use heapstead_service::{Caller, ExecutionRecord, Service, ServiceError};
use heapstead_types::Status;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, CreateTaskResult, DetailedTask, GetTaskResult, JsonObject, Task, TaskPayload, TaskStatus};
use serde_json::Value;
use std::time::Duration;

/// The recommended polling interval.
pub const POLL_INTERVAL_MS: u64 = 500;

/// Whether a call may return a task. A call with `wait_secs` expects its result within that time.
pub fn may_be_task(operation: &Operation, arguments: &Arguments) -> bool {
    operation.runs_code && arguments.get("wait_secs").is_none_or(Value::is_null)
}

/// Splits a call that runs code and waits into the time and the same call without waiting. `None` if it does not wait, or if the time is
/// out of range, which the operation refuses.
pub fn split_wait(operation: &Operation, arguments: &Arguments) -> Option<(Duration, Arguments)> {
    let wait = arguments.get("wait_secs").filter(|_| operation.runs_code)?;
    let bound = |name: &str| operation.input["properties"]["wait_secs"].get(name).and_then(Value::as_f64);
    let allowed = bound("minimum").unwrap_or(0.0)..=bound("maximum").unwrap_or(f64::MAX);
    let wait = wait.as_f64().filter(|secs| allowed.contains(secs))?;
    let mut at_once = arguments.clone();
    at_once.remove("wait_secs");
    Some((Duration::try_from_secs_f64(wait).unwrap_or_default(), at_once))
}

/// The task of an execution that has just been accepted.
pub async fn created(service: &Service, caller: &Caller, begun: &Value) -> Result<CreateTaskResult, ErrorData> {
    let id = begun["execution_id"].as_str().unwrap_or_default();
    let record = service.executions().get(caller, id, Duration::ZERO).await.map_err(from_service)?;
    Ok(CreateTaskResult::new(task(service, &record)))
}

pub async fn get(edge: &Edge, caller: &Caller, id: &str) -> Result<GetTaskResult, ErrorData> {
    let service = service(edge)?;
    let record = service.executions().get(caller, id, Duration::ZERO).await.map_err(from_service)?;
    let task = task(service, &record);
    if matches!(task.status, TaskStatus::Completed) {
        service.deliver_notice(&record).await;
    }
    let payload = match task.status {
        TaskStatus::Completed => TaskPayload::Completed { result: as_object(result(edge, caller, record).await?) },
        TaskStatus::Cancelled => TaskPayload::Cancelled,
        _ => TaskPayload::Working,
    };
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

/// Cancelling an ended execution is not an error: `tasks/get` returns its final status.
pub async fn cancel(edge: &Edge, caller: &Caller, id: &str) -> Result<(), ErrorData> {
    match service(edge)?.executions().cancel(caller, id).await {
        Err(ServiceError::Conflict { .. }) => Ok(()),
        other => other.map_err(from_service),
    }
}

/// The result that `run_js` would have returned at the end of the run.
pub async fn result(edge: &Edge, caller: &Caller, record: ExecutionRecord) -> Result<CallToolResult, ErrorData> {
    let run_tool = edge.api.run_tool().ok_or_else(no_tasks)?;
    let body = serde_json::to_value(record.for_message()).unwrap_or_default();
    let _long = edge.long_results.acquire(caller.budget_holder(), long_results::bytes_of(&body)).await.map_err(from_service)?;
    // Every version that has tasks has structured content.
    Ok(tool_result::from_outcome(run_tool, Ok(Success::whole(body)), ClientFormat::new(edge.inline_chars_max, None)))
}

pub fn service(edge: &Edge) -> Result<&Service, ErrorData> {
    edge.service().ok_or_else(no_tasks)
}

fn no_tasks() -> ErrorData {
    error::invalid_request("this server is stateless: it has no tasks")
}

/// A failed run is a completed task whose result is marked as an error: in 2026-07-28 a task only fails if the call has no result.
fn task(service: &Service, record: &ExecutionRecord) -> Task {
    let status = match record.status {
        Status::Running => TaskStatus::Working,
        Status::Cancelled => TaskStatus::Cancelled,
        Status::Completed | Status::Failed | Status::TimedOut => TaskStatus::Completed,
    };
    let updated = record.completed_at.as_ref().unwrap_or(&record.started_at);
    let task = Task::new(record.execution_id.as_str(), status, &record.started_at, updated)
        .with_ttl_ms(ttl_ms(service))
        .with_poll_interval_ms(POLL_INTERVAL_MS);
    match &record.error {
        Some(error) => task.with_status_message(status_message(error)),
        None => task,
    }
}

/// The error, truncated. The result has the complete one.
pub fn status_message(error: &str) -> String {
    error.chars().take(STATUS_MESSAGE_CHARS_MAX).collect()
}

const STATUS_MESSAGE_CHARS_MAX: usize = 1_000;

/// How long executions are retained.
pub fn ttl_ms(service: &Service) -> u64 {
    u64::try_from(service.policy().retain_executions.as_millis()).unwrap_or(u64::MAX)
}

fn as_object(result: CallToolResult) -> JsonObject {
    match serde_json::to_value(result) {
        Ok(Value::Object(members)) => members,
        _ => JsonObject::new(),
    }
}
