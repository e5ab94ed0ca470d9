//! The result of a tool call: the same JSON as text and as structured content. Lists and pages are already limited in size. A long text is
//! truncated in the text block, and in the structured content only if the message would be too large.

use super::message_size::{BoundedBody, RESULT_BYTES_MAX};
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
    let parts = Parts::shortened(&body, format);
    let text = parts.text();
    let Some(parts) = parts.fitting(&text, format) else { return too_large(operation) };
    let shown_chars = text.chars().count();
    let is_shortened = parts.text != body.body;
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = parts.structured;
    if is_shortened {
        let chars = body.whole_chars();
        result.content.extend(link_to_result(&body.body).map(ContentBlock::resource_link));
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
    text: Value,
    structured: Option<Value>,
}

impl Parts {
    /// The text has what a model should read. The structured content has as much as fits into the message.
    fn shortened(body: &BoundedBody, format: ClientFormat) -> Self {
        let Some(long_text) = body.long_text() else { return Self { text: body.body.clone(), structured: Some(body.body.clone()) } };
        let text = match long_text.shown {
            Shown::Preview => body.shortened(JsonMeasure::Chars, format.chars_max),
            Shown::Whole => body.shortened(JsonMeasure::Chars, usize::MAX),
        };
        let text_bytes = JsonMeasure::NestedBytes.json(&text.to_string());
        if !format.needs_structured_content {
            let text = if text_bytes > RESULT_BYTES_MAX { body.shortened(JsonMeasure::NestedBytes, RESULT_BYTES_MAX) } else { text };
            return Self { text, structured: Some(body.body.clone()) };
        }
        // The other members, such as the error, have priority over the long text.
        let frame_bytes = JsonMeasure::NestedBytes.json(&body.shortened(JsonMeasure::NestedBytes, 0).to_string());
        let text_reserve = text_bytes.min(frame_bytes + RESULT_BYTES_MAX / 4);
        let structured = body.shortened(JsonMeasure::Bytes, RESULT_BYTES_MAX.saturating_sub(text_reserve));
        let left = RESULT_BYTES_MAX.saturating_sub(structured.to_string().len());
        let text = if text_bytes > left { body.shortened(JsonMeasure::NestedBytes, left) } else { text };
        Self { text, structured: Some(structured) }
    }

    /// The notice about lost state comes first.
    fn text(&self) -> String {
        let mut rest = self.text.clone();
        match rest.as_object_mut().and_then(|members| members.remove(NOTICE)) {
            Some(notice) => format!("{{\"{NOTICE}\":{notice},{}", &rest.to_string()["{".len()..]),
            None => rest.to_string(),
        }
    }

    /// The parts that fit into one message; `None` if the text alone is too large. Omits structured content if the client does not need it.
    fn fitting(self, text: &str, format: ClientFormat) -> Option<Self> {
        let text_bytes = JsonMeasure::NestedBytes.json(text);
        let structured_bytes = self.structured.as_ref().map_or(0, |structured| structured.to_string().len());
        if text_bytes + structured_bytes <= RESULT_BYTES_MAX {
            return Some(self);
        }
        (!format.needs_structured_content && text_bytes <= RESULT_BYTES_MAX).then_some(Self { structured: None, ..self })
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
    use super::super::message_size::MESSAGE_BYTES_MAX;
    use super::*;
    use crate::api::LongText;

    fn part(_answer: &Value, shown: usize, whole: usize) -> crate::api::Arguments {
        let rest = if shown < whole { "how to read the rest, only in truncated results" } else { "" };
        let part = json!({ "truncated": shown < whole, "next_result_offset": shown, "result_bytes": whole, "rest": rest });
        part.as_object().cloned().expect("an object")
    }

    fn parts(result: &str, shown: Shown, format: ClientFormat) -> (Value, Parts) {
        let body = json!({ "execution_id": "e", "result": result, "status": "completed" });
        let long_text = LongText { member: "result", part, whole_bytes: "result_bytes", shown };
        let parts = Parts::shortened(&BoundedBody::new(body.clone(), Some(long_text)), format);
        let text = parts.text();
        (body, parts.fitting(&text, format).expect("it fits"))
    }

    const BOTH: ClientFormat = ClientFormat { chars_max: 1_000, needs_structured_content: true };
    const TEXT_ONLY: ClientFormat = ClientFormat { chars_max: 1_000, needs_structured_content: false };

    #[test]
    fn a_truncated_text_uses_the_limit_whatever_its_escapes() {
        for unit in ["x", "é", "😀", "\"", "\\", "\n", "\u{1}", "{\"id\":1,\"name\":\"é\"},"] {
            let result = unit.repeat(20_000);
            let (body, parts) = parts(&result, Shown::Preview, BOTH);
            assert_eq!(parts.structured, Some(body), "the structured content is whole");
            let text = parts.text();
            let chars = text.chars().count();
            assert!((960..=1_000).contains(&chars), "{unit:?}: {chars} characters are shown");
            let shown = parts.text["result"].as_str().expect("a result");
            assert!(result.starts_with(shown));
            assert_eq!(parts.text["next_result_offset"], shown.len());
            assert_eq!(parts.text["truncated"], true);
            assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), parts.text);
        }
    }

    #[test]
    fn messages_stay_within_the_limit_and_use_at_least_nine_tenths_of_it() {
        for unit in ["x", "é", "😀", "\"", "\n", "\u{1}"] {
            for units in [1_000, 100_000, 500_000, 3_000_000] {
                for (shown, format) in [(Shown::Preview, BOTH), (Shown::Whole, BOTH), (Shown::Whole, TEXT_ONLY)] {
                    let (body, parts) = parts(&unit.repeat(units), shown, format);
                    let mut result = CallToolResult::success(vec![ContentBlock::text(parts.text())]);
                    result.structured_content = parts.structured.clone();
                    let bytes = serde_json::to_string(&result).expect("JSON").len();
                    assert!(bytes <= MESSAGE_BYTES_MAX, "{bytes}");
                    let is_whole = parts.structured.as_ref().unwrap_or(&parts.text) == &body;
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
        let parts = Parts::shortened(&BoundedBody::new(body.clone(), Some(long_text)), BOTH);
        let text = parts.text();
        let parts = parts.fitting(&text, BOTH).expect("it fits");
        assert_eq!(parts.text["error"], body["error"]);
        assert!(parts.structured.is_some_and(|structured| structured["error"] == body["error"]));
    }

    #[test]
    fn a_short_result_is_the_same_in_both_forms() {
        let (body, parts) = parts("42", Shown::Preview, BOTH);
        assert_eq!((&parts.text, &parts.structured), (&body, &Some(body.clone())));
    }

    #[test]
    fn a_notice_comes_first_and_the_text_is_still_json() {
        let parts = Parts { text: json!({ "a": 1, "notice": "NOTICE: \"gone\"", "z": 2 }), structured: None };
        assert!(parts.text().starts_with("{\"notice\":\"NOTICE"), "{}", parts.text());
        assert_eq!(serde_json::from_str::<Value>(&parts.text()).expect("JSON"), parts.text);
    }
}
