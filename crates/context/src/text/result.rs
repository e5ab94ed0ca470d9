//! Summarises the result of a call in one or two sentences, from the result of an MCP tool or from a given text.

use super::mask::{MASK, hides, mask};
use super::{clean, cut_chars};
use crate::limits::RESULT_SUMMARY_CHARS_MAX;
use serde_json::Value;

/// Characters read of a text; the first two sentences rarely reach further.
const READ_CHARS_MAX: usize = 4 * RESULT_SUMMARY_CHARS_MAX;
/// JSON in a text is recognised up to this size.
const JSON_BYTES_MAX: usize = 64 * 1024;
/// Members of an object that are listed.
const SHOWN_MEMBERS_MAX: usize = 6;
const SHOWN_CHARS_MAX: usize = 60;

/// The summary of a `CallToolResult`: says whether it failed, then quotes its text or describes its JSON.
pub fn result_summary(result: &Value) -> String {
    let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let said = match result.get("structuredContent") {
        Some(structured) if !structured.is_null() => describe(structured),
        _ => blocks.iter().find_map(|block| block["text"].as_str()).map(of_text).unwrap_or_default(),
    };
    let said = if said.is_empty() { others(blocks) } else { said };
    let failed = result["isError"].as_bool() == Some(true);
    let summary = match (failed, said.is_empty()) {
        (true, true) => "Failed.".to_owned(),
        (true, false) => format!("Failed: {said}"),
        (false, true) => "Returned nothing.".to_owned(),
        (false, false) => said,
    };
    cut_chars(&summary, RESULT_SUMMARY_CHARS_MAX)
}

/// The first two sentences, on one line, without secrets.
pub fn result_summary_of_text(text: &str) -> String {
    let end = text.char_indices().nth(READ_CHARS_MAX).map_or(text.len(), |(end, _)| end);
    cut_chars(two_sentences(&clean(&mask(&text[..end]))), RESULT_SUMMARY_CHARS_MAX)
}

fn of_text(text: &str) -> String {
    let is_json = text.len() <= JSON_BYTES_MAX && text.trim_start().starts_with(['{', '[']);
    match is_json.then(|| serde_json::from_str::<Value>(text)) {
        Some(Ok(value)) => describe(&value),
        _ => result_summary_of_text(text),
    }
}

/// `status: completed, result: 42 and 3 more.`
fn describe(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let shown: Vec<String> =
                members.iter().take(SHOWN_MEMBERS_MAX).map(|(name, value)| format!("{}: {}", brief(name), member(name, value))).collect();
            let more = members.len().saturating_sub(SHOWN_MEMBERS_MAX);
            match (shown.is_empty(), more) {
                (true, _) => "An empty object.".to_owned(),
                (false, 0) => format!("{}.", shown.join(", ")),
                (false, more) => format!("{} and {more} more.", shown.join(", ")),
            }
        }
        Value::Array(items) => {
            items.first().map_or("No items.".to_owned(), |first| format!("{}, the first: {}.", items_of(items.len()), shape(first)))
        }
        other => format!("{}.", shape(other)),
    }
}

fn member(name: &str, value: &Value) -> String {
    if hides(name, value) { MASK.to_owned() } else { shape(value) }
}

fn shape(value: &Value) -> String {
    match value {
        Value::String(text) => brief(text),
        Value::Array(items) => items_of(items.len()),
        Value::Object(members) => format!("an object of {}", members.len()),
        other => other.to_string(),
    }
}

fn brief(text: &str) -> String {
    let end = text.char_indices().nth(READ_CHARS_MAX).map_or(text.len(), |(end, _)| end);
    cut_chars(&clean(&mask(&text[..end])), SHOWN_CHARS_MAX)
}

fn items_of(count: usize) -> String {
    format!("{count} item{}", if count == 1 { "" } else { "s" })
}

/// Counts non-text blocks by type.
fn others(blocks: &[Value]) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for kind in blocks.iter().filter_map(|block| block["type"].as_str()).filter(|kind| *kind != "text").map(brief) {
        match counts.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => counts.push((kind, 1)),
        }
    }
    let shown: Vec<String> = counts.iter().take(SHOWN_MEMBERS_MAX).map(|(kind, count)| format!("{count} × {kind}")).collect();
    if shown.is_empty() { String::new() } else { format!("Returned {}.", shown.join(", ")) }
}

fn two_sentences(text: &str) -> &str {
    let ends = text.match_indices(['.', '!', '?']).map(|(at, mark)| at + mark.len());
    let second = ends.filter(|end| text[*end..].starts_with(' ')).nth(1);
    second.map_or(text, |end| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_result_is_summarised_in_one_or_two_sentences() {
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        for (result, summary) in [
            (text("Found 3 files. Two are new.\nThe third is old."), "Found 3 files. Two are new."),
            (text("version 1.2.3 of\nit"), "version 1.2.3 of it"),
            (text(r#"{"status":"completed","result":42}"#), "result: 42, status: completed."),
            (text(r#"[{"a":1},2]"#), "2 items, the first: an object of 1."),
            (text("[not json"), "[not json"),
            (text(""), "Returned nothing."),
            (json!({ "content": [], "structuredContent": { "token": "x", "rows": [1] } }), "rows: 1 item, token: ***."),
            (json!({ "content": [{ "type": "image" }, { "type": "image" }, { "type": "audio" }] }), "Returned 2 × image, 1 × audio."),
            (json!({ "content": [{ "type": "text", "text": "no such file" }], "isError": true }), "Failed: no such file"),
            (json!({ "isError": true }), "Failed."),
            (json!(null), "Returned nothing."),
            (text("the password: hunter2"), "the password: ***"),
        ] {
            let found = result_summary(&result);
            // The order of members depends on the features of serde_json in this build.
            let same = |text: &str| {
                let mut words: Vec<_> = text.split([' ', ',', '.']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
                words.sort();
                words
            };
            assert_eq!(same(&found), same(summary), "{found}");
        }
    }

    #[test]
    fn however_long_the_result_its_summary_is_short() {
        for text in ["word ".repeat(1 << 20), "x".repeat(1 << 20), format!("[{}1]", "1,".repeat(20_000)), "é. ".repeat(5000)] {
            let summary = result_summary(&json!({ "content": [{ "type": "text", "text": text }] }));
            assert!((1..=RESULT_SUMMARY_CHARS_MAX).contains(&summary.chars().count()), "{summary}");
        }
    }
}
