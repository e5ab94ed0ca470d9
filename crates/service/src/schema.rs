//! JSON schemas of values whose types live where schemas are not known.

use heapstead_types::Status;
use schemars::{Schema, SchemaGenerator, json_schema};

/// What a heap key looks like.
pub const HEAP_KEY_PATTERN: &str = "^[0-9a-f]{64}$";

pub fn status(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": Status::ALL.map(Status::as_str) })
}

pub fn heap_key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": HEAP_KEY_PATTERN })
}

pub fn optional_heap_key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "pattern": HEAP_KEY_PATTERN })
}
