//! The only module that builds JSON-RPC errors. Every error has a stable code in `data.code`, see [`heapstead_types::ErrorCode`].

use heapstead_service::ServiceError;
use heapstead_types::ErrorCode;
use rmcp::ErrorData;
use rmcp::model::{ErrorCode as RpcCode, JsonRpcMessage, ServerJsonRpcMessage};
use serde_json::{Map, Value, json};

/// The member of `data` that holds the stable code.
const CODE: &str = "code";
/// How many characters of an unknown name an error repeats.
const NAME_CHARS_MAX: usize = 80;
/// How many characters of an unknown URI an error repeats.
const URI_CHARS_MAX: usize = 200;

fn build(rpc_code: RpcCode, code: ErrorCode, text: impl Into<String>, mut data: Value) -> ErrorData {
    data[CODE] = json!(code);
    ErrorData::new(rpc_code, text.into(), Some(data))
}

/// The message is not JSON.
pub fn parse_error(text: impl Into<String>) -> ErrorData {
    build(RpcCode::PARSE_ERROR, ErrorCode::InvalidRequest, text, json!({}))
}

/// The message is JSON, but not a valid JSON-RPC request in this place.
pub fn invalid_request(text: impl Into<String>) -> ErrorData {
    build(RpcCode::INVALID_REQUEST, ErrorCode::InvalidRequest, text, json!({}))
}

pub fn request_too_large(text: impl Into<String>) -> ErrorData {
    build(RpcCode::INVALID_REQUEST, ErrorCode::TooLarge, text, json!({}))
}

/// Whether a message is the error of `request_too_large`.
pub fn is_too_large(message: &ServerJsonRpcMessage) -> bool {
    let JsonRpcMessage::Error(error) = message else { return false };
    error.error.data.as_ref().is_some_and(|data| data[CODE] == json!(ErrorCode::TooLarge))
}

pub fn invalid_params(text: impl Into<String>) -> ErrorData {
    build(RpcCode::INVALID_PARAMS, ErrorCode::InvalidParameter, text, json!({}))
}

pub fn method_not_found(method: &str) -> ErrorData {
    let text = format!("there is no method `{}`", truncated_name(method));
    build(RpcCode::METHOD_NOT_FOUND, ErrorCode::MethodNotFound, text, json!({}))
}

/// MCP 2025-11-25 demands this JSON-RPC code for a tool that does not support tasks.
pub fn task_not_supported(tool: &str) -> ErrorData {
    let text = format!("{tool} can't be called as a task: only tools that run code can");
    build(RpcCode::METHOD_NOT_FOUND, ErrorCode::MethodNotFound, text, json!({}))
}

pub fn resource_not_found(code: ErrorCode, text: impl Into<String>, uri: &str) -> ErrorData {
    build(RpcCode::RESOURCE_NOT_FOUND, code, text, json!({ "uri": truncated_uri(uri) }))
}

/// `rpc_code` depends on the protocol version.
pub fn session_not_found(rpc_code: i32, id: &str) -> ErrorData {
    build(RpcCode(rpc_code), ErrorCode::SessionNotFound, "Session not found", json!({ "sessionId": id }))
}

/// `rpc_code` depends on the protocol version.
pub fn session_required(rpc_code: i32, hint: &str) -> ErrorData {
    build(RpcCode(rpc_code), ErrorCode::SessionRequired, "Session required", json!({ "hint": hint }))
}

pub fn request_cancelled(text: impl Into<String>) -> ErrorData {
    build(RpcCode::INTERNAL_ERROR, ErrorCode::RequestCancelled, text, json!({}))
}

pub fn subscriber_lagged() -> ErrorData {
    let text = "the subscriber reads too slowly and has missed events: listen again";
    build(RpcCode::INTERNAL_ERROR, ErrorCode::SubscriberLagged, text, json!({}))
}

pub fn from_service(error: ServiceError) -> ErrorData {
    let rpc_code = match error {
        ServiceError::Busy { .. } | ServiceError::Unavailable(_) => RpcCode::INTERNAL_ERROR,
        _ => RpcCode::INVALID_PARAMS,
    };
    build(rpc_code, error.code(), error.to_string(), json!({}))
}

/// Adds a stable code to an error that rmcp built. Returns whether the error had none.
pub fn add_code(error: &mut ErrorData) -> bool {
    let code = match error.code {
        RpcCode::PARSE_ERROR | RpcCode::INVALID_REQUEST | RpcCode::HEADER_MISMATCH => ErrorCode::InvalidRequest,
        RpcCode::METHOD_NOT_FOUND => ErrorCode::MethodNotFound,
        RpcCode::INVALID_PARAMS => ErrorCode::InvalidParameter,
        RpcCode::RESOURCE_NOT_FOUND => ErrorCode::NotFound,
        RpcCode::UNSUPPORTED_PROTOCOL_VERSION => ErrorCode::UnsupportedProtocolVersion,
        RpcCode::MISSING_REQUIRED_CLIENT_CAPABILITY => ErrorCode::ClientCapabilityRequired,
        _ => ErrorCode::Internal,
    };
    let mut data = match error.data.take() {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(data)) => data,
        Some(other) => Map::from_iter([("details".to_owned(), other)]),
    };
    let is_missing = !data.contains_key(CODE);
    if is_missing {
        data.insert(CODE.into(), json!(code));
    }
    error.data = Some(Value::Object(data));
    is_missing
}

pub fn truncated_name(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

pub fn truncated_uri(uri: &str) -> String {
    uri.chars().take(URI_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn add_code_keeps_other_data_and_existing_codes() {
        for (data, expected) in [
            (None, json!({ "code": "method_not_found" })),
            (Some(json!({ "a": 1 })), json!({ "a": 1, "code": "method_not_found" })),
            (Some(json!("text")), json!({ "details": "text", "code": "method_not_found" })),
            (Some(json!({ "code": "busy" })), json!({ "code": "busy" })),
        ] {
            let had_none = data.as_ref().is_none_or(|data| data.get("code").is_none());
            let mut error = ErrorData::new(RpcCode::METHOD_NOT_FOUND, "text", data);
            assert_eq!(add_code(&mut error), had_none);
            assert_eq!(error.data, Some(expected));
        }
    }
}
