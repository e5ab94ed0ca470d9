//! Query strings and arguments of operations: accepted arguments are parameters of the operation, and checking them again changes nothing.

use heapstead_server::fuzzing::{arguments, query};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

const DOCUMENT: &str = include_str!("../../../docs/openapi.json");

/// The schema of the parameters of each operation, from the document that clients see.
static SCHEMAS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let document: Value = serde_json::from_str(DOCUMENT).expect("the OpenAPI document");
    let paths = document["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(_, methods)| methods.as_object().into_iter().flatten());
    operations.map(|(_, operation)| schema(operation)).collect()
});

fn schema(operation: &Value) -> Value {
    let mut schema = operation["requestBody"]["content"]["application/json"]["schema"].clone();
    if !schema.is_object() {
        schema = json!({ "type": "object", "properties": {} });
    }
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        // Headers that many operations share are references.
        if let Some(name) = parameter["name"].as_str() {
            schema["properties"][name] = parameter["schema"].clone();
        }
    }
    schema
}

pub fn run(input: (u8, &str)) {
    let (operation, text) = input;
    let schema = &SCHEMAS[usize::from(operation) % SCHEMAS.len()];
    let given = match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(given) => given,
        Err(_) => match query(&format!("http://localhost/?{text}"), schema) {
            Some(Ok(given)) => given,
            Some(Err(detail)) => return assert!(detail.len() < 1000, "the refusal is short: {detail}"),
            None => return,
        },
    };
    match arguments("operation", schema, given) {
        Ok(accepted) => {
            assert!(accepted.keys().all(|name| schema["properties"].get(name).is_some()));
            assert_eq!(arguments("operation", schema, accepted.clone()), Ok(accepted));
        }
        Err(refusal) => assert!(!refusal.is_empty()),
    }
}
