//! The tasks of MCP 2025-11-25 and the `sessions` capability, which rmcp does not support. Task requests are renamed to custom methods before
//! rmcp reads them. The results of `initialize` and `tools/list` get the missing members before they are sent.

use super::{error, initialize};
use rmcp::model::{CustomResult, InitializeResult, JsonRpcMessage, ListToolsResult, ProtocolVersion, ServerResult};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::future::Future;

/// Marks a tool that can be called as a task, in its `_meta`. Never sent: `Dialect` replaces it by `execution.taskSupport`, for which rmcp has no
/// field.
pub const TASK_TOOL: &str = "heapstead/task";
/// The internal name of a `tools/call` with `task`.
pub const TASK_CALL: &str = "tools/call as task";
/// The 2026-07-28 tasks extension has methods of the same names with other parameters and results.
const RENAMED: [(&str, &str); 2] = [("tasks/get", "tasks/get of 2025-11-25"), ("tasks/cancel", "tasks/cancel of 2025-11-25")];
/// The member of `_meta` with the protocol version. Only requests since 2026-07-28 have it.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Renames a request of 2025-11-25 that rmcp would misread. Returns whether it did.
pub fn rename(message: &mut Map<String, Value>) -> bool {
    let params = message.get("params");
    let renamed = match message.get("method").and_then(Value::as_str) {
        _ if has_own_version(message) => None,
        Some("tools/call") if params.is_some_and(|params| params.get("task").is_some_and(|task| !task.is_null())) => Some(TASK_CALL),
        Some(method) => RENAMED.iter().find(|(name, _)| *name == method).map(|(_, renamed)| *renamed),
        None => None,
    };
    if let Some(renamed) = renamed {
        message.insert("method".into(), renamed.into());
    }
    renamed.is_some()
}

/// Whether the `_meta` of a message names its protocol version, as in versions without `initialize`.
pub fn has_own_version(message: &Map<String, Value>) -> bool {
    message.get("params").is_some_and(|params| params["_meta"].get(VERSION).is_some())
}

/// The name of a request before `rename`.
pub fn original_name(method: &str) -> &str {
    RENAMED.iter().find(|(_, renamed)| *renamed == method).map_or(method, |(name, _)| name)
}

/// A transport that completes outgoing results and errors, and shortens an incoming `initialize`.
pub struct Dialect<T> {
    inner: T,
    /// Whether the client negotiated 2025-11-25 and the server has tasks.
    has_tasks: bool,
}

impl<T> Dialect<T> {
    pub fn new(inner: T) -> Self {
        Self { inner, has_tasks: false }
    }

    fn complete(&mut self, result: ServerResult) -> ServerResult {
        match result {
            ServerResult::InitializeResult(result) => {
                // A stateless server has no resources, no sessions and no tasks.
                let is_stateful = result.capabilities.resources.is_some();
                self.has_tasks = result.protocol_version == ProtocolVersion::V_2025_11_25 && is_stateful;
                if is_stateful { with_capabilities(result, self.has_tasks) } else { ServerResult::InitializeResult(result) }
            }
            ServerResult::ListToolsResult(list) if self.has_tasks => with_task_support(list),
            other => other,
        }
    }
}

fn with_capabilities(result: InitializeResult, with_tasks: bool) -> ServerResult {
    edited(result, |result| {
        result["capabilities"]["sessions"] = json!({});
        if with_tasks {
            result["capabilities"]["tasks"] = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
        }
    })
}

/// The negotiated version in the result of `initialize`, before or after `Dialect` has completed it.
pub fn negotiated_version(result: &ServerResult) -> Option<ProtocolVersion> {
    match result {
        ServerResult::InitializeResult(result) => Some(result.protocol_version.clone()),
        ServerResult::CustomResult(CustomResult(result)) if result.get("capabilities").is_some() => {
            serde_json::from_value(result["protocolVersion"].clone()).ok()
        }
        _ => None,
    }
}

fn with_task_support(list: ListToolsResult) -> ServerResult {
    edited(list, |list| {
        for tool in list["tools"].as_array_mut().into_iter().flatten() {
            // The handler marks the tool in `_meta`. MCP 2025-11-25 has a separate member for it.
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

fn edited(result: impl Serialize, change: impl FnOnce(&mut Value)) -> ServerResult {
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

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.inner.receive().await.map(initialize::without_unused)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
