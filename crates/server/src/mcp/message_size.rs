//! The largest message that is sent over MCP, and how a long text is shortened so that its message stays below it.

use crate::api::LongText;
use heapstead_types::JsonMeasure;
use serde_json::Value;

/// One message, encoded. Clients that read server-sent events give up on lines of 1 MiB.
pub const MESSAGE_BYTES_MAX: usize = 900_000;
/// For what is around an answer: JSON-RPC, metadata of the session, links.
const ENVELOPE_BYTES: usize = 20_000;
/// For everything that an answer says.
pub const ANSWER_BYTES_MAX: usize = MESSAGE_BYTES_MAX - ENVELOPE_BYTES;

/// The answer with as much of its long text as fits in `max`; the answer itself if all of it does. What is shown in part says so, and where
/// the rest is.
pub fn shorten(answer: &Value, long_text: &LongText, measure: JsonMeasure, max: usize) -> Value {
    let Some(text) = answer[long_text.member].as_str() else { return answer.clone() };
    let with = |shown: &str, part_of_bytes: Option<usize>| {
        let mut shortened = answer.clone();
        shortened[long_text.member] = Value::from(shown);
        if let (Some(bytes), Some(members)) = (part_of_bytes, shortened.as_object_mut()) {
            members.extend((long_text.part)(answer, bytes));
        }
        shortened
    };
    let rest = measure.json(&with("", None).to_string());
    if rest + measure.content(text) <= max {
        return answer.clone();
    }
    // No part has more digits in its numbers than the longest one.
    let frame = measure.json(&with("", Some(text.len().saturating_sub(1))).to_string());
    let shown = measure.prefix(text, max.saturating_sub(frame));
    with(shown, Some(shown.len()))
}
