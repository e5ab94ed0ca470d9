//! JSON bodies: what is accepted means the same to every JSON parser, and is within the bounds on depth, number of values and memory.

use crate::within;
use heapstead_server::fuzzing::{JSON_DEPTH_MAX, JSON_VALUES_MAX, json};
use serde_json::Value;

/// The node of a map that holds one value, the largest unit of JSON in memory.
const VALUE_BYTES: usize = 1 << 10;

pub fn run(body: &[u8]) {
    // The texts are copied once while they are parsed, and kept.
    let bytes_max = 4 * body.len() + VALUE_BYTES * body.len().min(JSON_VALUES_MAX) + (4 << 10);
    let Ok(value) = within(bytes_max, || json(body)) else { return };
    assert_eq!(serde_json::from_slice::<Value>(body).expect("valid for everyone"), value);
    assert!(depth(&value) <= JSON_DEPTH_MAX && values(&value) <= JSON_VALUES_MAX);
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        _ => 0,
    }
}
