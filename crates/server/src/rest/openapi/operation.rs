//! Describes one operation in OpenAPI: its parameters, its body, and every status it can return.

use crate::api::Operation;
use serde_json::{Map, Value, json};

pub fn describe(operation: &Operation, stateful: bool, examples: &Value) -> Value {
    let has_body = matches!(operation.route.method, "POST" | "PUT");
    let mut described = json!({
        "operationId": operation.name,
        "tags": [group(operation.route.path)],
        "summary": operation.title,
        "description": operation.text.trim(),
        "parameters": parameters(operation, has_body, examples),
        "responses": responses(operation, has_body, stateful, examples),
    });
    if has_body && let Some(body) = body(operation, examples) {
        described["requestBody"] = body;
    }
    described
}

fn group(path: &str) -> &'static str {
    match path {
        _ if path.starts_with("/api/exec") => "executions",
        _ if path.starts_with("/api/heaps") => "heaps",
        _ if path.starts_with("/api/session") => "sessions",
        _ => "server",
    }
}

fn properties(operation: &Operation) -> impl Iterator<Item = (&String, &Value)> {
    operation.input.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn is_required(operation: &Operation, name: &str) -> bool {
    operation.input.get("required").and_then(Value::as_array).is_some_and(|required| required.iter().any(|required| required == name))
}

fn is_in_path(operation: &Operation, name: &str) -> bool {
    operation.route.path.contains(&format!("{{{name}}}"))
}

/// Arguments in the path, and in the query where there is no body.
fn parameters(operation: &Operation, has_body: bool, examples: &Value) -> Value {
    let mut parameters = Vec::new();
    for (name, schema) in properties(operation) {
        let in_path = is_in_path(operation, name);
        if has_body && !in_path {
            continue;
        }
        let (text, schema) = without_description(schema);
        let mut parameter = json!({
            "name": name,
            "in": if in_path { "path" } else { "query" },
            "required": in_path || is_required(operation, name),
            "description": text,
            "schema": schema,
        });
        if let Some(example) = examples["request"].get(name) {
            parameter["example"] = example.clone();
        }
        parameters.push(parameter);
    }
    parameters.push(json!({ "$ref": "#/components/parameters/Session" }));
    Value::Array(parameters)
}

fn without_description(schema: &Value) -> (Value, Value) {
    let mut schema = schema.clone();
    let text = schema.as_object_mut().and_then(|schema| schema.remove("description"));
    (text.unwrap_or_default(), schema)
}

/// The arguments that are not in the path. Optional ones may be null, which means the same as omitting them.
fn body(operation: &Operation, examples: &Value) -> Option<Value> {
    let mut members = Map::new();
    let mut required = Vec::new();
    for (name, schema) in properties(operation).filter(|(name, _)| !is_in_path(operation, name)) {
        let mut schema = schema.clone();
        if is_required(operation, name) {
            required.push(name.clone());
        } else {
            allow_null(&mut schema);
        }
        members.insert(name.clone(), schema);
    }
    if members.is_empty() {
        return None;
    }
    let mut content = json!({ "schema": { "type": "object", "properties": members, "required": required, "additionalProperties": false } });
    if let Some(example) = examples.get("request").and_then(Value::as_object) {
        content["example"] = example.clone().into_iter().filter(|(name, _)| !is_in_path(operation, name)).collect();
    }
    Some(json!({ "required": !required.is_empty(), "content": { "application/json": content } }))
}

fn allow_null(schema: &mut Value) {
    if let Some(kind) = schema.get("type").and_then(Value::as_str) {
        schema["type"] = json!([kind, "null"]);
    }
    if let Some(choices) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        choices.push(Value::Null);
    }
}

fn responses(operation: &Operation, has_body: bool, stateful: bool, examples: &Value) -> Value {
    let mut content = json!({ "schema": operation.output });
    if let Some(example) = examples.get("response") {
        content["example"] = example.clone();
    }
    let mut answer = json!({ "description": "Success.", "content": { "application/json": content } });
    let mut responses = Map::new();
    let runs = operation.runs_code;
    if runs && stateful {
        let link = |name: &str| json!({ "operationId": name, "parameters": { "execution_id": "$response.body#/execution_id" } });
        answer["links"] = operation.execution_links.iter().map(|(title, name)| (*title, link(name))).collect();
        let mut accepted = answer.clone();
        accepted["description"] = "Accepted; the execution is running.".into();
        if let Some(content) = accepted["content"]["application/json"].as_object_mut() {
            content.insert("example".into(), json!({ "execution_id": examples["response"]["execution_id"] }));
        }
        responses.insert("202".into(), accepted);
        answer["description"] = "The execution ended within `wait_secs`.".into();
    }
    responses.insert("200".into(), answer);
    let mut refusals = vec![("400", "BadRequest"), ("403", "Forbidden"), ("406", "NotAcceptable"), ("503", "Unavailable")];
    // An object that the request names may not exist.
    let names = |argument: &str| operation.input["properties"].get(argument).is_some();
    if operation.route.path.contains('{') || names("session") || names("logical_session_id") {
        refusals.push(("404", "NotFound"));
    }
    // As an optional argument, a session that has ended is refused.
    if names("session") && !is_in_path(operation, "session") {
        refusals.push(("410", "Gone"));
    }
    if operation.may_conflict {
        refusals.push(("409", "Conflict"));
    }
    if has_body {
        refusals.extend([("408", "TooSlow"), ("413", "TooLarge"), ("415", "WrongType"), ("429", "Busy")]);
    }
    for (status, name) in refusals {
        responses.insert(status.into(), json!({ "$ref": format!("#/components/responses/{name}") }));
    }
    responses.sort_keys();
    Value::Object(responses)
}
