//! What a tool answers: the same JSON as text and as structured content. Lists and pages were made to fit; a long result is shortened in the
//! text, and in the structured content only where a message could not hold it.

use super::message_size::{ANSWER_BYTES_MAX, shorten};
use crate::api::{Failed, LongText, Operation, Shown, Success};
use heapstead_service::ServiceError;
use heapstead_types::JsonMeasure;
use rmcp::model::{CallToolResult, ContentBlock, ProtocolVersion, Resource};
use serde_json::{Value, json};

/// Where answers report about logical sessions, as hosts expect it.
const PLASM: &str = "plasm";
/// Where refusals have their error code.
const HEAPSTEAD: &str = "heapstead";
/// The member that a recovered session's answer begins with.
const NOTICE: &str = "notice";

/// What the client can read.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    /// Characters of text that a model is shown of a long result.
    pub chars_max: usize,
    /// False before 2025-06-18, when answers were text alone: then there is structured content only where it takes no room from the text.
    pub needs_structured_content: bool,
}

impl Reader {
    pub fn new(chars_max: usize, version: Option<&ProtocolVersion>) -> Self {
        let text_only = [ProtocolVersion::V_2024_11_05, ProtocolVersion::V_2025_03_26];
        Self { chars_max, needs_structured_content: version.is_none_or(|version| !text_only.contains(version)) }
    }
}

/// What an operation came to, as the result of a tool call.
pub fn of(operation: &Operation, outcome: Result<Success, Failed>, reader: Reader) -> CallToolResult {
    match outcome {
        Ok(Success { body, .. }) => {
            let is_error = (operation.reports_failure)(&body);
            let mut result = with_text(operation, body, reader);
            result.is_error = Some(is_error || result.is_error == Some(true));
            result
        }
        Err(Failed { error, body: Value::Null }) => refusal(&error),
        Err(Failed { body, error }) => {
            let mut result = with_text(operation, body, reader);
            result.is_error = Some(true);
            note(&mut result, HEAPSTEAD, "code", json!(error.code()));
            result
        }
    }
}

/// A refused call: the text for the model, the stable code for programs.
pub fn refusal(error: &ServiceError) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(error.to_string())]);
    note(&mut result, HEAPSTEAD, "code", json!(error.code()));
    result
}

fn with_text(operation: &Operation, mut body: Value, reader: Reader) -> CallToolResult {
    let continuity = body.get("continuity").filter(|continuity| continuity.is_object()).cloned();
    if let Some(notice) = notice(&body) {
        body[NOTICE] = notice.into();
    }
    let parts = match operation.long_text.filter(|long| body[long.member].is_string()) {
        Some(long_text) => Parts::shortened(&body, &long_text, reader),
        None => Parts { text: body.clone(), structured: Some(body.clone()) },
    };
    let text = parts.text();
    let Some(parts) = parts.fitting(&text, reader) else { return too_large(operation) };
    let shown_chars = text.chars().count();
    let is_shortened = parts.text != body;
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = parts.structured;
    if is_shortened {
        let chars = JsonMeasure::Chars.json(&body.to_string());
        result.content.extend(link_to_result(&body).map(ContentBlock::resource_link));
        note(
            &mut result,
            PLASM,
            "cut",
            json!({ "chars": chars, "shown_chars": shown_chars, "cut_chars": chars.saturating_sub(shown_chars) }),
        );
    }
    if let Some(continuity) = continuity {
        note(&mut result, PLASM, "continuity", continuity);
    }
    result
}

/// An answer as text and as structured content.
struct Parts {
    text: Value,
    structured: Option<Value>,
}

impl Parts {
    /// The text shows what a model should read, the structured content all that the message has room for.
    fn shortened(body: &Value, long_text: &LongText, reader: Reader) -> Self {
        let text = match long_text.shown {
            Shown::Preview => shorten(body, long_text, JsonMeasure::Chars, reader.chars_max),
            Shown::Whole => body.clone(),
        };
        let text_bytes = JsonMeasure::NestedBytes.json(&text.to_string());
        if !reader.needs_structured_content {
            let text =
                if text_bytes > ANSWER_BYTES_MAX { shorten(body, long_text, JsonMeasure::NestedBytes, ANSWER_BYTES_MAX) } else { text };
            return Self { text, structured: Some(body.clone()) };
        }
        // What stands around the long text in the text comes first: the error, for one.
        let frame_bytes = JsonMeasure::NestedBytes.json(&shorten(body, long_text, JsonMeasure::NestedBytes, 0).to_string());
        let text_reserve = text_bytes.min(frame_bytes + ANSWER_BYTES_MAX / 4);
        let structured = shorten(body, long_text, JsonMeasure::Bytes, ANSWER_BYTES_MAX.saturating_sub(text_reserve));
        let left = ANSWER_BYTES_MAX.saturating_sub(structured.to_string().len());
        let text = if text_bytes > left { shorten(body, long_text, JsonMeasure::NestedBytes, left) } else { text };
        Self { text, structured: Some(structured) }
    }

    /// A loss of state is said before anything else.
    fn text(&self) -> String {
        let mut rest = self.text.clone();
        match rest.as_object_mut().and_then(|members| members.remove(NOTICE)) {
            Some(notice) => format!("{{\"{NOTICE}\":{notice},{}", &rest.to_string()["{".len()..]),
            None => rest.to_string(),
        }
    }

    /// As one message holds them; nothing if none does. Structured content that the client does not know is left out first.
    fn fitting(self, text: &str, reader: Reader) -> Option<Self> {
        let text_bytes = JsonMeasure::NestedBytes.json(text);
        let structured_bytes = self.structured.as_ref().map_or(0, |structured| structured.to_string().len());
        if text_bytes + structured_bytes <= ANSWER_BYTES_MAX {
            return Some(self);
        }
        (!reader.needs_structured_content && text_bytes <= ANSWER_BYTES_MAX).then_some(Self { structured: None, ..self })
    }
}

/// What an answer begins with whose session was lost and replaced.
fn notice(body: &Value) -> Option<String> {
    let is_recovered = body["continuity"]["stale_binding_recovered"] == true;
    let domain = body["wave"]["domain"].as_str().filter(|_| is_recovered)?;
    domain.split("\n\n").next().map(str::to_owned)
}

/// Adds a member to an object in `_meta`.
fn note(result: &mut CallToolResult, key: &str, name: &str, value: Value) {
    let meta = result.meta.get_or_insert_default();
    meta.entry(key.to_owned()).or_insert_with(|| json!({}))[name] = value;
}

/// Where the whole result of an execution is read.
fn link_to_result(body: &Value) -> Option<Resource> {
    let id = body.get("execution_id")?.as_str().filter(|_| body.get("result").is_some_and(Value::is_string))?;
    Some(Resource::new(format!("heapstead://executions/{id}/result"), "result").with_title("The whole result"))
}

/// For the few answers that are neither lists nor texts and can still grow past a message.
fn too_large(operation: &Operation) -> CallToolResult {
    let route = operation.route;
    let text = format!(
        "{} was done, but its answer is larger than one message can be ({ANSWER_BYTES_MAX} bytes): read it over REST, {} {}",
        operation.name, route.method, route.path
    );
    CallToolResult::error(vec![ContentBlock::text(text)])
}

#[cfg(test)]
mod tests {
    use super::super::message_size::MESSAGE_BYTES_MAX;
    use super::*;

    fn part(answer: &Value, shown: usize) -> crate::api::Arguments {
        let whole = answer["result"].as_str().map_or(0, str::len);
        let rest = if shown < whole { "how to read on, which only parts that end early say" } else { "" };
        let part = json!({ "truncated": shown < whole, "next_result_offset": shown, "result_bytes": whole, "rest": rest });
        part.as_object().cloned().expect("an object")
    }

    fn parts(result: &str, shown: Shown, reader: Reader) -> (Value, Parts) {
        let body = json!({ "execution_id": "e", "result": result, "status": "completed" });
        let long_text = LongText { member: "result", part, shown };
        let parts = Parts::shortened(&body, &long_text, reader);
        let text = parts.text();
        (body, parts.fitting(&text, reader).expect("it fits"))
    }

    const BOTH: Reader = Reader { chars_max: 1_000, needs_structured_content: true };
    const TEXT_ONLY: Reader = Reader { chars_max: 1_000, needs_structured_content: false };

    #[test]
    fn a_long_result_is_shown_as_far_as_it_fits_whatever_its_escapes() {
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
    fn no_message_is_longer_than_the_bound_and_none_is_much_shorter_than_it_could_be() {
        for unit in ["x", "é", "😀", "\"", "\n", "\u{1}"] {
            for units in [1_000, 100_000, 500_000, 3_000_000] {
                for (shown, reader) in [(Shown::Preview, BOTH), (Shown::Whole, BOTH), (Shown::Whole, TEXT_ONLY)] {
                    let (body, parts) = parts(&unit.repeat(units), shown, reader);
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

    /// Story: an error of 64 KiB, escaped twice, left no room for the text, and the whole answer was lost.
    #[test]
    fn a_long_error_beside_a_long_text_leaves_room_for_both() {
        let long_text = LongText { member: "result", part, shown: Shown::Whole };
        let body = json!({ "error": "\"".repeat(65_000), "result": "\n".repeat(500_000) });
        let parts = Parts::shortened(&body, &long_text, BOTH);
        let text = parts.text();
        let parts = parts.fitting(&text, BOTH).expect("it fits");
        assert_eq!(parts.text["error"], body["error"]);
        assert!(parts.structured.is_some_and(|structured| structured["error"] == body["error"]));
    }

    #[test]
    fn a_short_answer_is_the_same_twice() {
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
