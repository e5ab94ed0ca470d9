//! JSON schemas of values whose types are in crates without schemas.

use crate::executions::RECENT_SUFFIX;
use crate::heaps::{TAG_KEY_CHARS_MAX, TAG_VALUE_CHARS_MAX, TAGS_MAX};
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

/// Cursor of a list whose rows are numbered.
pub fn cursor(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9]{1,18}$" })
}

/// Cursor of a list of executions: the last one of the previous page.
pub fn execution_cursor(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": format!("^[0-9a-f]{{32}}({RECENT_SUFFIX})?$") })
}

/// Cursor of a list of sessions: the last one of the previous page.
pub fn session_cursor(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
}

/// No control characters.
const SESSION_NAME_PATTERN: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$";

pub fn session_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": SESSION_NAME_CHARS_MAX, "pattern": SESSION_NAME_PATTERN })
}

/// Anything but white space.
pub const NOT_EMPTY: &str = "\\S";
/// Fields of a log entry, separated by commas.
pub const FIELDS_PATTERN: &str = "^\\s*(index|input_heap|output_heap|code|timestamp|execution_id|undone)(\\s*,\\s*(index|input_heap|output_heap|code|timestamp|execution_id|undone))*\\s*$";

/// What a pattern in our schemas means, for error texts.
pub fn pattern_in_words(pattern: &str) -> Option<&'static str> {
    let words = [
        (HEAP_KEY_PATTERN, "a heap key, which is 64 lowercase hex digits"),
        ("^([0-9a-f]{64})?$", "a heap key, which is 64 lowercase hex digits"),
        ("^[0-9]{1,18}$", "a `next_cursor` from an earlier answer"),
        (SESSION_NAME_PATTERN, "a session name: 1 to 256 characters, none of them a control character"),
        (NOT_EMPTY, "JavaScript or TypeScript source"),
        (
            FIELDS_PATTERN,
            "field names, separated by commas: `index`, `input_heap`, `output_heap`, `code`, `timestamp`, `execution_id`, `undone`",
        ),
    ];
    let known = words.iter().find(|(known, _)| *known == pattern).map(|(_, words)| *words);
    let known = known.or_else(|| pattern.starts_with("^[A-Za-z0-9-]{1,").then_some("a language tag such as `en` or `pt-BR`"));
    known.or_else(|| pattern.contains(RECENT_SUFFIX).then_some("a `next_cursor` from an earlier answer"))
}
