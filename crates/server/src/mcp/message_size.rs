//! The maximum size of an MCP message, and truncation of long texts to stay within it.

use crate::api::LongText;
use heapstead_service::MESSAGE_BYTES_MAX;
use heapstead_types::JsonMeasure;
use serde_json::Value;

/// Reserved for the JSON-RPC envelope, session metadata and links.
const ENVELOPE_BYTES: usize = 20_000;
/// Available for the text and the structured content of a result.
pub const RESULT_BYTES_MAX: usize = MESSAGE_BYTES_MAX - ENVELOPE_BYTES;

/// A result, and its long text apart from it, so that the text is copied only where it is shown.
pub struct BoundedBody {
    /// With an empty long text.
    frame: Value,
    long: Option<Long>,
}

/// A long text, cut to what a message can hold at most, so that all that follows costs no more than that.
struct Long {
    of: LongText,
    text: String,
    /// Bytes of the whole long text.
    whole_bytes: usize,
    /// Characters of JSON that were cut. What was never read counts one for each byte.
    cut_chars: usize,
}

/// A result as it is shown.
pub struct Shortened {
    pub body: Value,
    /// Encoded as JSON.
    pub bytes: usize,
    pub is_whole: bool,
}

impl BoundedBody {
    pub fn new(mut frame: Value, long_text: Option<LongText>) -> Self {
        let long = long_text.and_then(|of| {
            let read_before = frame[of.whole_bytes].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
            let Some(Value::String(member)) = frame.get_mut(of.member) else { return None };
            let mut text = std::mem::take(member);
            let whole_bytes = read_before.unwrap_or(text.len()).max(text.len());
            let end = text.floor_char_boundary(MESSAGE_BYTES_MAX);
            let cut_chars = whole_bytes - text.len() + JsonMeasure::Chars.content(&text[end..]);
            text.truncate(end);
            Some(Long { of, text, whole_bytes, cut_chars })
        });
        Self { frame, long }
    }

    pub fn long_text(&self) -> Option<&LongText> {
        self.long.as_ref().map(|long| &long.of)
    }

    /// The result without its long text.
    pub fn frame(&self) -> &Value {
        &self.frame
    }

    /// Characters of the whole as JSON.
    pub fn whole_chars(&self) -> usize {
        let long_chars = self.long.as_ref().map_or(0, |long| JsonMeasure::Chars.content(&long.text) + long.cut_chars);
        JsonMeasure::Chars.json(&self.frame.to_string()) + long_chars
    }

    /// All that was kept of the result, without a word about what was cut.
    pub fn kept(&self) -> Shortened {
        self.with(None)
    }

    /// The result with its long text truncated so that it fits in `max`, or unchanged if it fits. A truncated result says so, and how to
    /// read the rest.
    pub fn shortened(&self, measure: JsonMeasure, max: usize) -> Shortened {
        let Some(long) = &self.long else { return self.kept() };
        let rest = measure.json(&self.frame.to_string());
        if measure.prefix(&long.text, max.saturating_sub(rest)).len() == long.text.len() && rest <= max {
            return self.kept();
        }
        // The longest part has the numbers with the most digits, so the frame of a shorter part is not larger.
        let frame = measure.json(&self.frame_of_part(long, long.whole_bytes.saturating_sub(1)).to_string());
        self.with(Some(measure.prefix(&long.text, max.saturating_sub(frame)).len()))
    }

    /// The result with this much of its long text, or with all that was kept of it.
    fn with(&self, part_bytes: Option<usize>) -> Shortened {
        let Some(long) = &self.long else {
            let body = self.frame.clone();
            return Shortened { bytes: body.to_string().len(), body, is_whole: true };
        };
        let mut body = part_bytes.map_or_else(|| self.frame.clone(), |bytes| self.frame_of_part(long, bytes));
        let shown = &long.text[..part_bytes.unwrap_or(long.text.len())];
        let bytes = body.to_string().len() + JsonMeasure::Bytes.content(shown);
        body[long.of.member] = Value::from(shown);
        Shortened { body, bytes, is_whole: part_bytes.is_none() }
    }

    /// The result without its long text, with what it says when only a part is shown.
    fn frame_of_part(&self, long: &Long, shown_bytes: usize) -> Value {
        let mut frame = self.frame.clone();
        if let Some(members) = frame.as_object_mut() {
            members.extend((long.of.part)(&self.frame, shown_bytes, long.whole_bytes));
        }
        frame
    }
}
