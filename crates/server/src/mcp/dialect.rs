//! What earlier versions of MCP say of tasks and sessions and rmcp does not know: requests get names of their own on their way in, and the answers
//! that announce either are completed on their way out.

use super::error;
use rmcp::model::{CustomResult, InitializeResult, JsonRpcMessage, ListToolsResult, ProtocolVersion, ServerResult};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::future::Future;

/// In `_meta` of a tool that can be called as a task. Never sent: rmcp has no field for it, so it is moved on its way out.
pub const TASK_TOOL: &str = "heapstead/task";
/// `tools/call` that asks for a task.
pub const TASK_CALL: &str = "tools/call as task";
/// Requests of the same name in the later extension take and give something else.
const RENAMED: [(&str, &str); 2] = [("tasks/get", "tasks/get of 2025-11-25"), ("tasks/cancel", "tasks/cancel of 2025-11-25")];
/// With this in `_meta` a request says itself which version it speaks, which only later ones do.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Gives a request of 2025-11-25 that rmcp would misread a name that it does not know. Whether it had to.
pub fn rename(message: &mut Map<String, Value>) -> bool {
    let params = message.get("params");
    let renamed = match message.get("method").and_then(Value::as_str) {
        _ if is_later(message) => None,
        Some("tools/call") if params.is_some_and(|params| params.get("task").is_some_and(|task| !task.is_null())) => Some(TASK_CALL),
        Some(method) => RENAMED.iter().find(|(name, _)| *name == method).map(|(_, renamed)| *renamed),
        None => None,
    };
    if let Some(renamed) = renamed {
        message.insert("method".into(), renamed.into());
    }
    renamed.is_some()
}

/// Whether a message says itself that it is of a version without `initialize`.
pub fn is_later(message: &Map<String, Value>) -> bool {
    message.get("params").is_some_and(|params| params["_meta"].get(VERSION).is_some())
}

/// The name that a request had before.
pub fn known_as(method: &str) -> &str {
    RENAMED.iter().find(|(_, renamed)| *renamed == method).map_or(method, |(name, _)| name)
}

/// A connection whose answers are completed.
pub struct Dialect<T> {
    inner: T,
    /// Whether the client speaks 2025-11-25 and there are tasks.
    speaks_of_tasks: bool,
}

impl<T> Dialect<T> {
    pub fn new(inner: T) -> Self {
        Self { inner, speaks_of_tasks: false }
    }

    fn complete(&mut self, result: ServerResult) -> ServerResult {
        match result {
            ServerResult::InitializeResult(answer) => {
                // Where executions are kept there are resources, and where there are none there are neither sessions nor tasks.
                let keeps = answer.capabilities.resources.is_some();
                self.speaks_of_tasks = answer.protocol_version == ProtocolVersion::V_2025_11_25 && keeps;
                if keeps { initialized(answer, self.speaks_of_tasks) } else { ServerResult::InitializeResult(answer) }
            }
            ServerResult::ListToolsResult(list) if self.speaks_of_tasks => listed(list),
            other => other,
        }
    }
}

fn initialized(answer: InitializeResult, with_tasks: bool) -> ServerResult {
    changed(answer, |answer| {
        answer["capabilities"]["sessions"] = json!({});
        if with_tasks {
            answer["capabilities"]["tasks"] = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
        }
    })
}

/// The version that an answer to `initialize` agrees on, completed or not.
pub fn agreed_version(result: &ServerResult) -> Option<ProtocolVersion> {
    match result {
        ServerResult::InitializeResult(answer) => Some(answer.protocol_version.clone()),
        ServerResult::CustomResult(CustomResult(answer)) if answer.get("capabilities").is_some() => {
            serde_json::from_value(answer["protocolVersion"].clone()).ok()
        }
        _ => None,
    }
}

fn listed(list: ListToolsResult) -> ServerResult {
    changed(list, |list| {
        for tool in list["tools"].as_array_mut().into_iter().flatten() {
            // Marked where it was described. This version of the protocol has a member of its own for it.
            let Some(meta) = tool.get_mut("_meta").and_then(Value::as_object_mut) else { continue };
            let (is_task, is_empty) = (meta.remove(TASK_TOOL).is_some(), meta.is_empty());
            if let Some(tool) = tool.as_object_mut().filter(|_| is_empty) {
                tool.remove("_meta");
            }
            if is_task {
                tool["execution"] = json!({ "taskSupport": "optional" });
            }
        }
    })
}

fn changed(result: impl Serialize, change: impl FnOnce(&mut Value)) -> ServerResult {
    let mut result = serde_json::to_value(result).unwrap_or_default();
    change(&mut result);
    ServerResult::CustomResult(CustomResult::new(result))
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Dialect<T> {
    type Error = T::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let message = match message {
            JsonRpcMessage::Response(response) => JsonRpcMessage::response(self.complete(response.result), response.id),
            JsonRpcMessage::Error(mut error) => {
                error::add_code(&mut error.error);
                JsonRpcMessage::Error(error)
            }
            other => other,
        };
        self.inner.send(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleServer>>> + Send {
        self.inner.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
