//! The result of a tool call: the same JSON as text and as structured content. Lists and pages are already limited in size. A long text is
//! truncated in the text block, and in the structured content only if the message would be too large.

use super::message_size::{BoundedBody, RESULT_BYTES_MAX, Shortened};
use crate::api::{Failed, Operation, Shown, Success};
use heapstead_service::ServiceError;
use heapstead_types::JsonMeasure;
use rmcp::model::{CallToolResult, ContentBlock, ProtocolVersion, Resource};
use serde_json::{Value, json};

/// The member of `_meta` with the state of the logical session. The name is fixed by existing hosts.
const PLASM: &str = "plasm";
/// The member of `_meta` with the error code of a refused call.
const HEAPSTEAD: &str = "heapstead";
/// The member that the result of a recovered session starts with.
const NOTICE: &str = "notice";

/// What the client supports.
#[derive(Debug, Clone, Copy)]
pub struct ClientFormat {
    /// The maximum length of the text block of a long result.
    pub chars_max: usize,
    /// False before 2025-06-18, which has no structured content. It is then sent only if the whole text fits beside it.
    pub needs_structured_content: bool,
}

impl ClientFormat {
    pub fn new(chars_max: usize, version: Option<&ProtocolVersion>) -> Self {
        let text_only = [ProtocolVersion::V_2024_11_05, ProtocolVersion::V_2025_03_26];
        Self { chars_max, needs_structured_content: version.is_none_or(|version| !text_only.contains(version)) }
    }
}

/// The outcome of an operation as the result of a tool call.
pub fn from_outcome(operation: &Operation, outcome: Result<Success, Failed>, format: ClientFormat) -> CallToolResult {
    match outcome {
        Ok(Success { body, .. }) => {
            let is_error = (operation.reports_failure)(&body);
            let mut result = from_body(operation, body, format);
            result.is_error = Some(is_error || result.is_error == Some(true));
            result
        }
        Err(Failed { error, body: Value::Null }) => from_error(&error),
        Err(Failed { body, error }) => {
            let mut result = from_body(operation, body, format);
            result.is_error = Some(true);
            set_meta(&mut result, HEAPSTEAD, "code", json!(error.code()));
            result
        }
    }
}

/// A refused call: a text for the model and the stable code for programs.
pub fn from_error(error: &ServiceError) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(error.to_string())]);
    set_meta(&mut result, HEAPSTEAD, "code", json!(error.code()));
    result
}

fn from_body(operation: &Operation, mut body: Value, format: ClientFormat) -> CallToolResult {
    let continuity = body.get("continuity").filter(|continuity| continuity.is_object()).cloned();
    if let Some(notice) = notice(&body) {
        body[NOTICE] = notice.into();
    }
    let body = BoundedBody::new(body, operation.long_text);
    let Some(parts) = Parts::fitting(&body, format) else { return too_large(operation) };
    let shown_chars = parts.text.chars().count();
    let mut result = CallToolResult::success(vec![ContentBlock::text(parts.text)]);
    result.structured_content = parts.structured;
    if parts.is_shortened {
        let chars = body.whole_chars();
        result.content.extend(link_to_result(body.frame()).map(ContentBlock::resource_link));
        set_meta(
            &mut result,
            PLASM,
            "cut",
            json!({ "chars": chars, "shown_chars": shown_chars, "cut_chars": chars.saturating_sub(shown_chars) }),
        );
    }
    if let Some(continuity) = continuity {
        set_meta(&mut result, PLASM, "continuity", continuity);
    }
    result
}

/// A result as text and as structured content.
struct Parts {
    /// What a model should read, as JSON.
    text: String,
    /// As much as fits into the message beside the text.
    structured: Option<Value>,
    /// Whether the text omits something.
    is_shortened: bool,
}

impl Parts {
    /// The parts that fit into one message; `None` if the text alone is too large. Omits structured content if the client does not need it.
    fn fitting(body: &BoundedBody, format: ClientFormat) -> Option<Self> {
        let (text, structured) = Self::shortened(body, format);
        let parts = Self { text: with_notice_first(&text.body), structured: None, is_shortened: !text.is_whole };
        let text_bytes = JsonMeasure::NestedBytes.json(&parts.text);
        if text_bytes + structured.bytes <= RESULT_BYTES_MAX {
            return Some(Self { structured: Some(structured.body), ..parts });
        }
        (!format.needs_structured_content && text_bytes <= RESULT_BYTES_MAX).then_some(parts)
    }

    fn shortened(body: &BoundedBody, format: ClientFormat) -> (Shortened, Shortened) {
        let Some(long_text) = body.long_text() else { return (body.kept(), body.kept()) };
        let text = match long_text.shown {
            Shown::Preview => body.shortened(JsonMeasure::Chars, format.chars_max),
            Shown::Whole => body.shortened(JsonMeasure::Chars, usize::MAX),
        };
        let text_bytes = JsonMeasure::NestedBytes.json(&text.body.to_string());
        if !format.needs_structured_content {
            let text = if text_bytes > RESULT_BYTES_MAX { body.shortened(JsonMeasure::NestedBytes, RESULT_BYTES_MAX) } else { text };
            return (text, body.kept());
        }
        // The other members, such as the error, have priority over the long text.
        let frame_bytes = JsonMeasure::NestedBytes.json(&body.shortened(JsonMeasure::NestedBytes, 0).body.to_string());
        let text_reserve = text_bytes.min(frame_bytes + RESULT_BYTES_MAX / 4);
        let structured = body.shortened(JsonMeasure::Bytes, RESULT_BYTES_MAX.saturating_sub(text_reserve));
        let left = RESULT_BYTES_MAX.saturating_sub(structured.bytes);
        let text = if text_bytes > left { body.shortened(JsonMeasure::NestedBytes, left) } else { text };
        (text, structured)
    }
}

/// The result as JSON. The notice about lost state comes first.
fn with_notice_first(body: &Value) -> String {
    match body.get(NOTICE) {
        Some(notice) => {
            let mut rest = body.clone();
            rest.as_object_mut().map(|members| members.remove(NOTICE));
            format!("{{\"{NOTICE}\":{notice},{}", &rest.to_string()["{".len()..])
        }
        None => body.to_string(),
    }
}

/// The notice for a result whose session was lost and replaced.
fn notice(body: &Value) -> Option<String> {
    let is_recovered = body["continuity"]["stale_binding_recovered"] == true;
    let domain = body["wave"]["domain"].as_str().filter(|_| is_recovered)?;
    domain.split("\n\n").next().map(str::to_owned)
}

/// Adds a member to an object in `_meta`.
fn set_meta(result: &mut CallToolResult, key: &str, name: &str, value: Value) {
    let meta = result.meta.get_or_insert_default();
    meta.entry(key.to_owned()).or_insert_with(|| json!({}))[name] = value;
}

/// A link to the resource with the complete result of an execution.
fn link_to_result(body: &Value) -> Option<Resource> {
    let id = body.get("execution_id")?.as_str().filter(|_| body.get("result").is_some_and(Value::is_string))?;
    Some(Resource::new(format!("heapstead://executions/{id}/result"), "result").with_title("Complete result"))
}

/// For the few results that are neither lists nor long texts and can still exceed a message.
fn too_large(operation: &Operation) -> CallToolResult {
    let route = operation.route;
    let text = format!(
        "{} succeeded, but its result exceeds the maximum of {RESULT_BYTES_MAX} bytes per message. Read it over REST: {} {}",
        operation.name, route.method, route.path
    );
    CallToolResult::error(vec![ContentBlock::text(text)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::LongText;
    use heapstead_service::MESSAGE_BYTES_MAX;

    fn part(_answer: &Value, shown: usize, whole: usize) -> crate::api::Arguments {
        let rest = if shown < whole { "how to read the rest, only in truncated results" } else { "" };
        let part = json!({ "truncated": shown < whole, "next_result_offset": shown, "result_bytes": whole, "rest": rest });
        part.as_object().cloned().expect("an object")
    }

    fn parts(result: &str, shown: Shown, format: ClientFormat) -> (Value, Parts) {
        let body = json!({ "execution_id": "e", "result": result, "status": "completed" });
        let long_text = LongText { member: "result", part, whole_bytes: "result_bytes", shown };
        let parts = Parts::fitting(&BoundedBody::new(body.clone(), Some(long_text)), format).expect("it fits");
        (body, parts)
    }

    fn read(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    const BOTH: ClientFormat = ClientFormat { chars_max: 1_000, needs_structured_content: true };
    const TEXT_ONLY: ClientFormat = ClientFormat { chars_max: 1_000, needs_structured_content: false };

    #[test]
    fn a_truncated_text_uses_the_limit_whatever_its_escapes() {
        for unit in ["x", "é", "😀", "\"", "\\", "\n", "\u{1}", "{\"id\":1,\"name\":\"é\"},"] {
            let result = unit.repeat(20_000);
            let (body, parts) = parts(&result, Shown::Preview, BOTH);
            assert_eq!(parts.structured, Some(body), "the structured content is whole");
            let chars = parts.text.chars().count();
            assert!((960..=1_000).contains(&chars), "{unit:?}: {chars} characters are shown");
            let text = read(&parts.text);
            let shown = text["result"].as_str().expect("a result");
            assert!(result.starts_with(shown));
            assert_eq!(text["next_result_offset"], shown.len());
            assert_eq!(text["truncated"], true);
        }
    }

    #[test]
    fn messages_stay_within_the_limit_and_use_at_least_nine_tenths_of_it() {
        for unit in ["x", "é", "😀", "\"", "\n", "\u{1}"] {
            for units in [1_000, 100_000, 500_000, 3_000_000] {
                for (shown, format) in [(Shown::Preview, BOTH), (Shown::Whole, BOTH), (Shown::Whole, TEXT_ONLY)] {
                    let (body, parts) = parts(&unit.repeat(units), shown, format);
                    let mut result = CallToolResult::success(vec![ContentBlock::text(parts.text.clone())]);
                    result.structured_content = parts.structured.clone();
                    let bytes = serde_json::to_string(&result).expect("JSON").len();
                    assert!(bytes <= MESSAGE_BYTES_MAX, "{bytes}");
                    let is_whole = parts.structured.unwrap_or_else(|| read(&parts.text)) == body;
                    assert!(is_whole || bytes > MESSAGE_BYTES_MAX * 9 / 10, "{unit:?} {units} {shown:?}: {bytes}");
                }
            }
        }
    }

    /// Regression: an error of 64 KiB, escaped twice, left no room for the text, and the whole result was lost.
    #[test]
    fn a_long_error_beside_a_long_text_leaves_room_for_both() {
        let long_text = LongText { member: "result", part, whole_bytes: "result_bytes", shown: Shown::Whole };
        let body = json!({ "error": "\"".repeat(65_000), "result": "\n".repeat(500_000) });
        let parts = Parts::fitting(&BoundedBody::new(body.clone(), Some(long_text)), BOTH).expect("it fits");
        assert_eq!(read(&parts.text)["error"], body["error"]);
        assert!(parts.structured.is_some_and(|structured| structured["error"] == body["error"]));
    }

    #[test]
    fn a_short_result_is_the_same_in_both_forms() {
        let (body, parts) = parts("42", Shown::Preview, BOTH);
        assert_eq!((read(&parts.text), parts.structured), (body.clone(), Some(body)));
    }

    #[test]
    fn a_notice_comes_first_and_the_text_is_still_json() {
        let body = json!({ "a": 1, "notice": "NOTICE: \"gone\"", "z": 2 });
        let text = with_notice_first(&body);
        assert!(text.starts_with("{\"notice\":\"NOTICE"), "{text}");
        assert_eq!(read(&text), body);
    }
}
