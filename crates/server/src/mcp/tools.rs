//! The API's operations as MCP tools.

use crate::api::{Api, FailureShape, Operation};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::sync::Arc;

pub fn all(api: &Api) -> Vec<Tool> {
    api.tools().map(tool).collect()
}

pub fn tool(operation: &Operation) -> Tool {
    let mut tool = Tool::new(operation.name, operation.text, object(&operation.input));
    tool.title = Some(operation.title.to_owned());
    tool.output_schema = Some(object(&output_schema(operation)));
    tool.annotations = Some(annotations(operation));
    tool
}

fn annotations(operation: &Operation) -> ToolAnnotations {
    ToolAnnotations::with_title(operation.title)
        .read_only(operation.read_only)
        .destructive(operation.destructive)
        .idempotent(operation.is_idempotent())
        .open_world(false)
}

/// Clients validate error results against the schema too, so it must allow them.
fn output_schema(operation: &Operation) -> Value {
    let mut schema = operation.output.clone();
    if operation.failure == FailureShape::Ok && schema["properties"].get("ok").is_none() {
        schema["properties"]["ok"] = json!({ "type": "boolean", "description": "False if the operation failed, otherwise absent." });
        schema["properties"]["error"] = json!({ "type": "string", "description": "Why the operation failed." });
        if let Some(members) = schema.as_object_mut() {
            members.remove("required");
        }
    }
    if schema["properties"].get("continuity").is_some() {
        schema["properties"]["notice"] =
            json!({ "type": "string", "description": "Present only if the session's state was lost. Read this first." });
    }
    schema
}

fn object(schema: &Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}
