//! An execution as a task of MCP 2025-11-25: created by `tools/call` with `task`, then polled with `tasks/…`.

use super::dialect::TASK_CALL;
pub use super::dialect::original_name;
use super::error::{self, from_service};
use super::execution_task::{self, POLL_INTERVAL_MS, service};
use super::session_metadata::Era;
use crate::api::{Arguments, Operation};
use crate::edge::Edge;
use heapstead_service::{Caller, ExecutionRecord, ExecutionSummary, ListRequest, Service};
use heapstead_types::Status;
use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CustomResult};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Tasks on a page of the list.
const PAGE_MAX: u32 = 100;
/// The member of `_meta` with the task of a result.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// How long one step of `tasks/result` waits.
const WAIT: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub enum Request {
    /// `tools/call` with `task`.
    Call {
        name: String,
        arguments: Arguments,
    },
    Get(String),
    Result(String),
    Cancel(String),
    List {
        cursor: Option<String>,
    },
}

#[derive(Deserialize)]
struct CallParams {
    name: String,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskParams {
    task_id: String,
}

#[derive(Deserialize, Default)]
struct ListParams {
    #[serde(default)]
    cursor: Option<String>,
}

impl Request {
    /// `None` if the method is not about tasks.
    pub fn read(method: &str, params: Option<Value>) -> Result<Option<Self>, ErrorData> {
        fn params_of<P: for<'de> Deserialize<'de>>(params: Option<Value>) -> Result<P, ErrorData> {
            serde_json::from_value(params.unwrap_or_else(|| json!({}))).map_err(|error| error::invalid_params(error.to_string()))
        }
        let task_id = |params| params_of::<TaskParams>(params).map(|params| params.task_id);
        Ok(Some(match original_name(method) {
            TASK_CALL => {
                let CallParams { name, arguments } = params_of(params)?;
                Self::Call { name, arguments: arguments.unwrap_or_default() }
            }
            "tasks/get" => Self::Get(task_id(params)?),
            "tasks/result" => Self::Result(task_id(params)?),
            "tasks/cancel" => Self::Cancel(task_id(params)?),
            "tasks/list" => Self::List { cursor: params_of::<ListParams>(params)?.cursor },
            _ => return Ok(None),
        }))
    }
}

/// The result of a call whose `task` was ignored.
pub fn without_task(answer: CallToolResponse) -> CustomResult {
    CustomResult::new(match answer {
        CallToolResponse::Complete(mut result) => {
            // These versions have no `resultType`.
            result.result_type = None;
            serde_json::to_value(result).unwrap_or_default()
        }
        // Other responses are only sent to clients of 2026-07-28.
        _ => Value::Null,
    })
}

/// Starts the execution and returns its task. Invalid input is an error, and creates no task.
pub async fn begin(edge: &Edge, operation: &Operation, caller: Caller, mut arguments: Arguments) -> Result<CustomResult, ErrorData> {
    let service = service(edge)?;
    if !operation.runs_code {
        return Err(error::task_not_supported(operation.name));
    }
    if let Some((_, at_once)) = execution_task::split_wait(operation, &arguments) {
        arguments = at_once;
    }
    let begun = operation.call(caller.clone(), arguments).await;
    let begun = begun
        .map_err(|failed| Era::Legacy.protocol_error(&failed.error, caller.entered_id()).unwrap_or_else(|| from_service(failed.error)))?;
    let id = begun.body["execution_id"].as_str().unwrap_or_default().to_owned();
    let record = service.executions().get(&caller, &id, Duration::ZERO).await.map_err(from_service)?;
    Ok(CustomResult::new(json!({ "task": task_of(service, &record) })))
}

pub async fn answer(edge: &Edge, caller: &Caller, request: Request) -> Result<CustomResult, ErrorData> {
    let service = service(edge)?;
    let answer = match request {
        Request::Get(id) => task_of(service, &service.executions().get(caller, &id, Duration::ZERO).await.map_err(from_service)?),
        Request::Cancel(id) => {
            service.executions().cancel(caller, &id).await.map_err(from_service)?;
            task_of(service, &service.executions().get(caller, &id, Duration::ZERO).await.map_err(from_service)?)
        }
        Request::Result(id) => {
            let record = ended(service, caller, &id).await?;
            service.deliver_notice(&record).await;
            let mut result = execution_task::result(edge, caller, record).await?;
            // This version has no `resultType`.
            result.result_type = None;
            let mut result = serde_json::to_value(result).unwrap_or_default();
            result["_meta"][RELATED_TASK] = json!({ "taskId": id });
            result
        }
        Request::List { cursor } => {
            let request = ListRequest { limit: Some(PAGE_MAX), cursor, ..ListRequest::default() };
            let list = service.executions().list(caller, request).await.map_err(from_service)?;
            let tasks: Vec<_> = list.executions.iter().map(|summary| task_in_list(service, summary)).collect();
            match list.next_cursor {
                Some(cursor) => json!({ "tasks": tasks, "nextCursor": cursor }),
                None => json!({ "tasks": tasks }),
            }
        }
        Request::Call { name, .. } => return Err(error::method_not_found(&name)),
    };
    Ok(CustomResult::new(answer))
}

/// Waits for the end of an execution, without a timeout.
async fn ended(service: &Service, caller: &Caller, id: &str) -> Result<ExecutionRecord, ErrorData> {
    loop {
        let record = service.executions().get(caller, id, WAIT).await.map_err(from_service)?;
        if record.status.is_terminal() {
            return Ok(record);
        }
    }
}

fn task_of(service: &Service, record: &ExecutionRecord) -> Value {
    let mut task = task(service, record.execution_id.as_str(), record.status, &record.started_at, record.completed_at.as_deref());
    if let Some(error) = &record.error {
        task["statusMessage"] = json!(execution_task::status_message(error));
    }
    task
}

fn task_in_list(service: &Service, summary: &ExecutionSummary) -> Value {
    task(service, summary.execution_id.as_str(), summary.status, &summary.started_at, summary.completed_at.as_deref())
}

fn task(service: &Service, id: &str, status: Status, started_at: &str, completed_at: Option<&str>) -> Value {
    let status = match status {
        Status::Running => "working",
        Status::Completed => "completed",
        // In this version a task whose result is an error has failed.
        Status::Failed | Status::TimedOut => "failed",
        Status::Cancelled => "cancelled",
    };
    json!({
        "taskId": id,
        "status": status,
        "createdAt": started_at,
        "lastUpdatedAt": completed_at.unwrap_or(started_at),
        "ttl": execution_task::ttl_ms(service),
        "pollInterval": POLL_INTERVAL_MS,
    })
}
