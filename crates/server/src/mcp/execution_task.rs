//! An execution as a task of MCP's tasks extension (2026-07-28). The task's id is the execution's, so it outlives connections and servers.

use super::answer::{self, Reader};
use super::error::{self, from_service};
use crate::api::{Arguments, Operation, Success};
use crate::edge::Edge;
use heapstead_service::{Caller, ExecutionRecord, Service, ServiceError};
use heapstead_types::Status;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, CreateTaskResult, DetailedTask, GetTaskResult, JsonObject, Task, TaskPayload, TaskStatus};
use serde_json::Value;
use std::time::Duration;

/// How often a client that waits should ask.
pub const POLL_INTERVAL_MS: u64 = 500;

/// Whether a call can be answered with a task: one that says how long it waits wants its answer in that time.
pub fn may_be_task(operation: &Operation, arguments: &Arguments) -> bool {
    operation.runs_code && arguments.get("wait_secs").is_none_or(Value::is_null)
}

/// For a run that waits: how long, and the same call without waiting. None if it does not wait, or the time is not allowed, which the
/// operation itself refuses.
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
        TaskStatus::Completed => TaskPayload::Completed { result: as_object(result(edge, record)?) },
        TaskStatus::Cancelled => TaskPayload::Cancelled,
        _ => TaskPayload::Working,
    };
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

/// Cancelling what has ended already is no error here: the client sees what became of it when it asks.
pub async fn cancel(edge: &Edge, caller: &Caller, id: &str) -> Result<(), ErrorData> {
    match service(edge)?.executions().cancel(caller, id).await {
        Err(ServiceError::Conflict { .. }) => Ok(()),
        other => other.map_err(from_service),
    }
}

/// What `run_js` would have answered, had it waited for the end.
pub fn result(edge: &Edge, record: ExecutionRecord) -> Result<CallToolResult, ErrorData> {
    let run_tool = edge.api.run_tool().ok_or_else(no_tasks)?;
    let body = serde_json::to_value(&record).unwrap_or_default();
    // Every version that has tasks has structured content.
    Ok(answer::of(run_tool, Ok(Success { body, pending: false }), Reader::new(edge.inline_chars_max, None)))
}

pub fn service(edge: &Edge) -> Result<&Service, ErrorData> {
    edge.service.as_ref().ok_or_else(no_tasks)
}

fn no_tasks() -> ErrorData {
    error::invalid_request("this server is stateless: it has no tasks")
}

/// Here a task only fails when there is no answer to the call. Code that failed has one, and it is marked as an error.
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

/// What a client shows beside a status. The result has the error whole.
pub fn status_message(error: &str) -> String {
    error.chars().take(STATUS_MESSAGE_CHARS_MAX).collect()
}

const STATUS_MESSAGE_CHARS_MAX: usize = 1_000;

/// As long as executions are kept.
pub fn ttl_ms(service: &Service) -> u64 {
    u64::try_from(service.policy().retain_executions.as_millis()).unwrap_or(u64::MAX)
}

fn as_object(result: CallToolResult) -> JsonObject {
    match serde_json::to_value(result) {
        Ok(Value::Object(members)) => members,
        _ => JsonObject::new(),
    }
}
