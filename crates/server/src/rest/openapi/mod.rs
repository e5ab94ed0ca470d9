//! The OpenAPI document: generated from the table of operations, and from `base.json` for what the table does not describe.

mod operation;

use super::{Rest, json as json_answer};
use crate::edge::Edge;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use bytes::Bytes;
use serde_json::{Map, Value, json};

pub const PATH: &str = "/api-doc/openapi.json";
/// Title, servers and shared responses; and under `stateful_paths` the endpoints that are not in the table, which stateless mode does not have.
const BASE: &str = include_str!("base.json");
const EXAMPLES: &str = include_str!("examples.json");

pub fn router(rest: &Rest) -> Router {
    let document = Bytes::from(format!("{:#}\n", document(&rest.edge)));
    Router::new().route(PATH, get(async move || json_answer(StatusCode::OK, document)))
}

fn document(edge: &Edge) -> Value {
    let mut document: Value = serde_json::from_str(BASE).unwrap_or_default();
    let examples: Value = serde_json::from_str(EXAMPLES).unwrap_or_default();
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    let stateful_paths = document.as_object_mut().and_then(|document| document.remove("stateful_paths"));
    let mut paths = match stateful_paths {
        Some(Value::Object(paths)) if edge.service().is_some() => paths,
        _ => Map::new(),
    };
    for operation in edge.api.operations() {
        let described = operation::describe(operation, edge.service().is_some(), &examples[operation.name]);
        let path = paths.entry(operation.route.path).or_insert_with(|| Value::Object(Map::new()));
        path[operation.route.method.to_ascii_lowercase()] = described;
    }
    paths.sort_keys();
    document["paths"] = Value::Object(paths);
    if edge.authenticator.is_on() {
        require_credentials(&mut document);
    }
    document
}

/// With authentication, every operation can return 401.
fn require_credentials(document: &mut Value) {
    let refusal = json!({
        "description": "The credentials are missing or not valid.",
        "headers": { "WWW-Authenticate": { "description": "The authentication scheme, and the error if a token was refused.", "required": true, "schema": { "type": "string" } } },
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
    });
    document["components"]["responses"]["Unauthorized"] = refusal;
    document["components"]["securitySchemes"]["bearer"] = json!({ "type": "http", "scheme": "bearer" });
    document["security"] = json!([{ "bearer": [] }]);
    for operation in document["paths"].as_object_mut().into_iter().flatten().filter_map(|(_, path)| path.as_object_mut()).flatten() {
        operation.1["responses"]["401"] = json!({ "$ref": "#/components/responses/Unauthorized" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_included_files_are_json() {
        for text in [BASE, EXAMPLES] {
            serde_json::from_str::<Value>(text).expect("JSON");
        }
    }
}
