//! The maximum size of an MCP message, and truncation of long texts to stay within it.

use crate::api::LongText;
use heapstead_types::JsonMeasure;
use serde_json::Value;

/// Encoded as JSON. Some clients reject server-sent events of 1 MiB.
pub const MESSAGE_BYTES_MAX: usize = 900_000;
/// Reserved for the JSON-RPC envelope, session metadata and links.
const ENVELOPE_BYTES: usize = 20_000;
/// Available for the text and the structured content of a result.
pub const RESULT_BYTES_MAX: usize = MESSAGE_BYTES_MAX - ENVELOPE_BYTES;

/// The result with its long text truncated so that it fits in `max`, or unchanged if it fits. A truncated result says so, and how to read
/// the rest.
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
    // The longest part has the numbers with the most digits, so the frame of a shorter part is not larger.
    let frame = measure.json(&with("", Some(text.len().saturating_sub(1))).to_string());
    let shown = measure.prefix(text, max.saturating_sub(frame));
    with(shown, Some(shown.len()))
}
