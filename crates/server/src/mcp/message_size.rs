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

/// A result whose long text is cut to what a message can hold at most, so that all that follows costs no more than that.
pub struct BoundedBody {
    pub body: Value,
    long_text: Option<LongText>,
    /// Bytes of the whole long text.
    whole_bytes: usize,
    /// Characters of JSON that were cut. What was never read counts one for each byte.
    cut_chars: usize,
}

impl BoundedBody {
    pub fn new(mut body: Value, long_text: Option<LongText>) -> Self {
        let long_text = long_text.filter(|long| body[long.member].is_string());
        let (mut whole_bytes, mut cut_chars) = (0, 0);
        if let Some(long) = long_text {
            let read_before = body[long.whole_bytes].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
            if let Some(Value::String(text)) = body.get_mut(long.member) {
                whole_bytes = read_before.unwrap_or(text.len()).max(text.len());
                cut_chars = whole_bytes - text.len();
                let end = text.floor_char_boundary(MESSAGE_BYTES_MAX);
                cut_chars += JsonMeasure::Chars.content(&text[end..]);
                text.truncate(end);
            }
        }
        Self { body, long_text, whole_bytes, cut_chars }
    }

    pub fn long_text(&self) -> Option<&LongText> {
        self.long_text.as_ref()
    }

    /// Characters of the whole as JSON.
    pub fn whole_chars(&self) -> usize {
        JsonMeasure::Chars.json(&self.body.to_string()) + self.cut_chars
    }

    /// The result with its long text truncated so that it fits in `max`. See [`shorten`].
    pub fn shortened(&self, measure: JsonMeasure, max: usize) -> Value {
        match &self.long_text {
            Some(long_text) => shorten(&self.body, long_text, self.whole_bytes, measure, max),
            None => self.body.clone(),
        }
    }
}

/// The result with its long text truncated so that it fits in `max`, or unchanged if it fits. A truncated result says so, and how to read
/// the rest.
fn shorten(answer: &Value, long_text: &LongText, whole_bytes: usize, measure: JsonMeasure, max: usize) -> Value {
    let Some(text) = answer[long_text.member].as_str() else { return answer.clone() };
    let with = |shown: &str, part_of_bytes: Option<usize>| {
        let mut shortened = answer.clone();
        shortened[long_text.member] = Value::from(shown);
        if let (Some(bytes), Some(members)) = (part_of_bytes, shortened.as_object_mut()) {
            members.extend((long_text.part)(answer, bytes, whole_bytes));
        }
        shortened
    };
    let rest = measure.json(&with("", None).to_string());
    if rest + measure.content(text) <= max {
        return answer.clone();
    }
    // The longest part has the numbers with the most digits, so the frame of a shorter part is not larger.
    let frame = measure.json(&with("", Some(whole_bytes.saturating_sub(1))).to_string());
    let shown = measure.prefix(text, max.saturating_sub(frame));
    with(shown, Some(shown.len()))
}
