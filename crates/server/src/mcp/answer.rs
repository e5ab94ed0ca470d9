//! What a tool answers: structured content that is always whole, and the same as text, cut where a model should not have to read it all.

use crate::api::{Failed, Operation, Success};
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde_json::{Value, json};

/// Left of a long text when even the rest of the answer is longer than what may be shown.
const SHOWN_CHARS_MIN: usize = 100;

/// Where answers speak of sessions, as hosts that were written to them expect it.
const PLASM: &str = "plasm";

/// What an operation came to, as the result of a tool call.
pub fn of(operation: &Operation, outcome: Result<Success, Failed>, chars_max: usize) -> CallToolResult {
    match outcome {
        Ok(Success { body, .. }) => {
            let mut result = with_text(operation, body, chars_max);
            tell_continuity(&mut result);
            result.is_error = Some(result.structured_content.as_ref().is_some_and(|body| tells_failure(operation, body)));
            result
        }
        Err(Failed { error, body: Value::Null }) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
        Err(Failed { body, .. }) => {
            let mut result = with_text(operation, body, chars_max);
            result.is_error = Some(true);
            result
        }
    }
}

/// `run_js` is there to run code: if that went wrong, so did the call. Others that tell of the same execution did what they are for.
fn tells_failure(operation: &Operation, body: &Value) -> bool {
    match operation.name {
        "run_js" => body.get("error").is_some_and(|error| !error.is_null()),
        "health_check" => body["status"] == "degraded",
        _ => false,
    }
}

/// Hosts that know what a session is look for this beside the answer; a loss is said before anything else.
fn tell_continuity(result: &mut CallToolResult) {
    let Some(body) = &result.structured_content else { return };
    let Some(continuity) = body.get("continuity").filter(|continuity| continuity.is_object()).cloned() else { return };
    if continuity["stale_binding_recovered"] == true
        && let Some(notice) = body["wave"]["domain"].as_str().and_then(|domain| domain.split("\n\n").next())
    {
        result.content.insert(0, ContentBlock::text(notice));
    }
    note(result, "continuity", continuity);
}

/// Says something beside the answer, where sessions have their say.
fn note(result: &mut CallToolResult, name: &str, value: Value) {
    let meta = result.meta.get_or_insert_default();
    let plasm = meta.entry(PLASM.to_owned()).or_insert_with(|| json!({}));
    plasm[name] = value;
}

fn with_text(operation: &Operation, body: Value, chars_max: usize) -> CallToolResult {
    let whole = body.to_string();
    let chars = whole.chars().count();
    // What teaches a model what it can call is not told a second time.
    let is_table = operation.name == "session_context";
    if chars <= chars_max || is_table {
        let mut result = CallToolResult::success(vec![ContentBlock::text(whole)]);
        result.structured_content = Some(body);
        return result;
    }
    let said = format!("[cut: this answer has {chars} characters. {}]", way_to_the_rest(operation, &body));
    let shown = cut(&body, &whole, chars, chars_max);
    let shown_chars = shown.chars().count();
    let mut content = vec![ContentBlock::text(shown), ContentBlock::text(said)];
    content.extend(link_to_result(&body).map(ContentBlock::resource_link));
    let mut result = CallToolResult::success(content);
    result.structured_content = Some(body);
    note(&mut result, "cut", json!({ "chars": chars, "shown_chars": shown_chars, "cut_chars": chars - shown_chars.min(chars) }));
    result
}

/// Where the whole result of an execution is read.
fn link_to_result(body: &Value) -> Option<Resource> {
    let id = body.get("execution_id")?.as_str().filter(|_| body.get("result").is_some_and(Value::is_string))?;
    Some(Resource::new(format!("heapstead://executions/{id}/result"), "result").with_title("The whole result"))
}

/// The longest text in the answer is cut, so that the rest of it still reads as JSON. An answer that is long without one is cut anywhere.
fn cut(body: &Value, whole: &str, chars: usize, chars_max: usize) -> String {
    let mut body = body.clone();
    let longest =
        body.as_object_mut().and_then(|members| members.values_mut().filter(|value| value.is_string()).max_by_key(|value| length(value)));
    if let Some(Value::String(text)) = longest {
        let left = text.chars().count().saturating_sub(chars - chars_max).max(SHOWN_CHARS_MIN);
        *text = text.chars().take(left).collect();
    }
    let cut = body.to_string();
    // Escapes count too, so what was taken out may have been shorter than what it took up.
    let text = if cut.chars().count() <= chars_max { cut } else { whole.to_owned() };
    text.chars().take(chars_max).collect()
}

fn length(value: &Value) -> usize {
    value.as_str().map_or(0, str::len)
}

fn way_to_the_rest(operation: &Operation, body: &Value) -> String {
    const WHOLE: &str = "The structured content beside this text is whole";
    match body.get("execution_id").and_then(Value::as_str) {
        Some(_) if operation.name == "get_execution_output" => format!("{WHOLE}; ask for smaller pages with `line_limit` or `byte_limit`"),
        Some(id) => format!("{WHOLE}, and so is the resource heapstead://executions/{id}/result; or run code that returns a part of it"),
        None if operation.input["properties"].get("limit").is_some() => format!("{WHOLE}; ask for less at once with `limit` and `cursor`"),
        None => format!("{WHOLE}; or run code that writes less"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_long_text_is_cut_and_the_rest_still_reads_as_json() {
        let body = json!({ "execution_id": "e", "result": "é".repeat(5000), "status": "completed" });
        let whole = body.to_string();
        let text = cut(&body, &whole, whole.chars().count(), 1000);
        assert_eq!(text.chars().count(), 1000);
        let read: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read["status"], "completed");
    }

    #[test]
    fn what_has_no_long_text_or_too_many_escapes_is_cut_anywhere() {
        for body in [json!({ "executions": vec![json!({ "a": 1 }); 1000] }), json!({ "data": "\u{1}".repeat(1000) })] {
            let whole = body.to_string();
            let text = cut(&body, &whole, whole.chars().count(), 1000);
            assert!(whole.starts_with(&text) || serde_json::from_str::<Value>(&text).is_ok(), "{text}");
            assert!(text.chars().count() <= 1000);
        }
    }
}
