//! Reads a record of any schema version: parses the current one, migrates an older one, refuses a newer one.

use crate::limits::RECORD_BYTES_MAX;
use crate::record::SCHEMA_VERSION;
use crate::{Record, Unreadable};
use serde_json::{Map, Value};

type Migration = fn(&mut Map<String, Value>);

/// The step at index N migrates a record from version N to N + 1.
const MIGRATIONS: [Migration; SCHEMA_VERSION as usize] = [versions_begin];

pub fn read(bytes: &[u8]) -> Result<Record, Unreadable> {
    if bytes.len() > RECORD_BYTES_MAX {
        return Err(damaged(format!("it is {} bytes, and a context has at most {RECORD_BYTES_MAX}", bytes.len())));
    }
    match serde_json::from_slice::<Record>(bytes) {
        Ok(record) if record.schema_version == SCHEMA_VERSION => Ok(record),
        otherwise => read_other(bytes, otherwise.err()),
    }
}

fn read_other(bytes: &[u8], error: Option<serde_json::Error>) -> Result<Record, Unreadable> {
    let mut members: Map<String, Value> = serde_json::from_slice(bytes).map_err(|error| damaged(place(&error)))?;
    let found = match members.get("schema_version") {
        None => 0,
        Some(version) => version.as_u64().ok_or_else(|| damaged("its schema_version is not a number".into()))?,
    };
    if found > SCHEMA_VERSION {
        return Err(Unreadable::Newer { found, known: SCHEMA_VERSION });
    }
    if let (SCHEMA_VERSION, Some(error)) = (found, error) {
        return Err(damaged(place(&error)));
    }
    MIGRATIONS[found as usize..].iter().for_each(|step| step(&mut members));
    members.insert("schema_version".into(), SCHEMA_VERSION.into());
    serde_json::from_value(Value::Object(members)).map_err(|error| damaged(place(&error)))
}

/// Before schema versions existed, an update did not record its time, and a call that returned nothing had no summary.
fn versions_begin(members: &mut Map<String, Value>) {
    if let Some(created_at) = members.get("created_at").cloned() {
        members.entry("last_updated_at").or_insert(created_at);
    }
    for call in members.get_mut("recent_tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(call) = call.as_object_mut() {
            call.entry("result_summary").or_insert_with(|| "".into());
            call.entry("args").or_insert_with(|| Map::new().into());
        }
    }
}

fn damaged(why: String) -> Unreadable {
    Unreadable::Damaged { why }
}

/// The kind and position of the error, without its text, which may quote the record.
fn place(error: &serde_json::Error) -> String {
    format!("{:?} error at line {} column {}", error.classify(), error.line(), error.column())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SessionId, Timestamp};
    use serde_json::json;

    const ID: SessionId = SessionId::from_bytes([7; 32]);

    fn read_json(value: &Value) -> Result<Record, Unreadable> {
        read(value.to_string().as_bytes())
    }

    #[test]
    fn this_version_comes_back_as_it_was() {
        let record = Record::new(ID, Timestamp::from_ms(5));
        assert_eq!(read(&serde_json::to_vec(&record).expect("json")), Ok(record));
    }

    #[test]
    fn a_record_as_the_first_description_had_it_is_read() {
        let record = read_json(&json!({
            "schema_version": 1, "session_id": ID, "created_at": "2026-01-01T00:00:00Z", "last_updated_at": "2026-01-01T00:00:00.5Z",
            "user_preferences": {}, "recent_tool_calls": [], "fetched_resources": [], "custom": {}
        }));
        assert!(record.expect("a record").searches.is_empty());
    }

    #[test]
    fn an_older_version_is_brought_up_to_date() {
        let old = json!({ "session_id": ID, "created_at": "2026-01-01T00:00:00Z",
            "recent_tool_calls": [{ "tool": "grep", "called_at": "2026-01-01T00:00:01Z" }] });
        let record = read_json(&old).expect("a record");
        assert_eq!((record.schema_version, record.last_updated_at), (1, record.created_at));
        assert_eq!((record.recent_tool_calls[0].tool.as_str(), record.recent_tool_calls[0].result_summary.as_str()), ("grep", ""));
    }

    #[test]
    fn a_newer_version_is_recognised_by_its_number_alone() {
        for newer in [json!({ "schema_version": 2 }), json!({ "schema_version": 9, "session_id": 5, "recent_tool_calls": "gone" })] {
            assert!(matches!(read_json(&newer), Err(Unreadable::Newer { found: 2 | 9, known: 1 })));
        }
    }

    #[test]
    fn an_invalid_record_is_damaged_and_not_quoted() {
        let large = vec![b' '; RECORD_BYTES_MAX + 1];
        for bytes in [
            &b""[..],
            b"{",
            b"[]",
            b"null",
            b"\xff",
            b"{\"schema_version\":\"one\"}",
            b"{\"schema_version\":1,\"session_id\":\"marker\"}",
            b"{}",
            &large,
        ] {
            let error = read(bytes).expect_err("damaged");
            assert!(matches!(error, Unreadable::Damaged { .. }) && !error.to_string().contains("marker"), "{error}");
        }
    }
}
