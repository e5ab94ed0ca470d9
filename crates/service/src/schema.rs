//! JSON schemas of values whose types live where schemas are not known.

use crate::executions::RECENT_SUFFIX;
use crate::tags::{TAG_KEY_CHARS_MAX, TAG_VALUE_CHARS_MAX, TAGS_MAX};
use heapstead_types::{SESSION_NAME_CHARS_MAX, Status};
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

/// Neither commas nor control characters, and no white space around it.
const TAG_KEY_PATTERN: &str =
    "^[^\\s,\\u0000-\\u001f\\u007f-\\u009f]([^,\\u0000-\\u001f\\u007f-\\u009f]*[^\\s,\\u0000-\\u001f\\u007f-\\u009f])?$";

/// What `check_tags` allows.
pub fn tags(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": TAGS_MAX,
        "propertyNames": { "minLength": 1, "maxLength": TAG_KEY_CHARS_MAX, "pattern": TAG_KEY_PATTERN },
        "additionalProperties": { "type": "string", "maxLength": TAG_VALUE_CHARS_MAX },
    })
}

/// Where a list goes on whose rows are counted.
pub fn cursor(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9]{1,18}$" })
}

/// Where a list of executions goes on: after this one.
pub fn execution_cursor(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": format!("^[0-9a-f]{{32}}({RECENT_SUFFIX})?$") })
}

/// Where a list of sessions goes on: after this one.
pub fn session_cursor(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
}

pub fn session_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": SESSION_NAME_CHARS_MAX, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$" })
}
