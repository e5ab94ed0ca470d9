//! Computes the length of a string in JSON, so that a page or message can be filled up to its limit.

/// Unit of a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonMeasure {
    /// Characters of the JSON text.
    Chars,
    /// Bytes of the JSON text in UTF-8.
    Bytes,
    /// Bytes of the JSON text when it is itself embedded as a JSON string: the text of a tool result in a JSON-RPC message.
    NestedBytes,
}

/// Long texts are measured for every answer. Parts of this size stay in the processor's first cache, and are counted with vector instructions.
const PART_BYTES: usize = 4096;

impl JsonMeasure {
    /// Length of a string's content in JSON, without the quotation marks.
    pub fn content(self, text: &str) -> usize {
        text.as_bytes().chunks(PART_BYTES).map(|part| self.bytes(part)).sum()
    }

    /// Length of a text that is already JSON.
    pub fn json(self, json: &str) -> usize {
        match self {
            Self::Chars => json.chars().count(),
            Self::Bytes => json.len(),
            Self::NestedBytes => json.len() + json.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count(),
        }
    }

    /// The longest prefix of a string whose content is at most this long in JSON. It ends on a character boundary.
    pub fn prefix(self, text: &str, max: usize) -> &str {
        let (mut at, mut left) = (0, max);
        for part in text.as_bytes().chunks(PART_BYTES) {
            match left.checked_sub(self.bytes(part)) {
                Some(rest) => (at, left) = (at + part.len(), rest),
                None => {
                    for byte in part {
                        let Some(rest) = left.checked_sub(self.bytes(std::slice::from_ref(byte))) else { break };
                        (at, left) = (at + 1, rest);
                    }
                    return &text[..text.floor_char_boundary(at)];
                }
            }
        }
        text
    }

    /// What these bytes of a text add to its length.
    fn bytes(self, part: &[u8]) -> usize {
        let quotes = count(part, |byte| (byte == b'"') | (byte == b'\\'));
        let controls = count(part, |byte| byte < 0x20);
        // Of those, the ones that JSON escapes with one letter instead of `\u` and four digits.
        let short = count(part, |byte| (byte == 0x08) | (byte == b'\t') | (byte == b'\n') | (byte == 0x0c) | (byte == b'\r'));
        match self {
            // A byte that continues a character counts nothing.
            Self::Chars => part.len() - count(part, |byte| byte & 0xc0 == 0x80) + quotes + 5 * controls - 4 * short,
            Self::Bytes => part.len() + quotes + 5 * controls - 4 * short,
            Self::NestedBytes => part.len() + 3 * quotes + 6 * controls - 4 * short,
        }
    }
}

/// Counts the bytes that satisfy a predicate. The count of a block fits into one byte, so that the loop is vectorised.
fn count(part: &[u8], is_one: impl Fn(u8) -> bool) -> usize {
    const BLOCK_BYTES: usize = 192;
    let counts = part.chunks(BLOCK_BYTES).map(|block| block.iter().map(|byte| u8::from(is_one(*byte))).sum::<u8>());
    counts.map(usize::from).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: [&str; 6] = ["", "plain", "\"quoted\" and \\", "\0\u{1}\u{8}\t\n\u{b}\u{c}\r\u{1f}\u{7f}", "é€😀\u{2028}", "a\"é\n😀\\"];

    fn nested(json: &str) -> usize {
        serde_json::to_string(json).expect("a string").len() - 2
    }

    #[test]
    fn lengths_equal_those_of_the_serialiser() {
        for text in SAMPLES {
            let json = serde_json::to_string(text).expect("a string");
            let content = &json[1..json.len() - 1];
            assert_eq!(JsonMeasure::Chars.content(text), content.chars().count(), "{text:?}");
            assert_eq!(JsonMeasure::Bytes.content(text), content.len(), "{text:?}");
            assert_eq!(JsonMeasure::NestedBytes.content(text), nested(content), "{text:?}");
            assert_eq!(JsonMeasure::NestedBytes.json(&json), nested(&json), "{text:?}");
        }
    }

    #[test]
    fn texts_of_several_parts_are_measured_as_a_whole() {
        let text = SAMPLES.concat().repeat(3 * PART_BYTES / 50);
        let json = serde_json::to_string(&text).expect("a string");
        let content = &json[1..json.len() - 1];
        for (measure, whole) in [
            (JsonMeasure::Chars, content.chars().count()),
            (JsonMeasure::Bytes, content.len()),
            (JsonMeasure::NestedBytes, nested(content)),
        ] {
            assert_eq!(measure.content(&text), whole);
            assert_eq!(measure.prefix(&text, whole), text);
            for max in (0..whole).step_by(997) {
                let prefix = measure.prefix(&text, max);
                let next = text[prefix.len()..].chars().next().expect("more");
                assert!(measure.content(prefix) <= max && measure.content(&format!("{prefix}{next}")) > max, "{measure:?} {max}");
            }
        }
    }

    #[test]
    fn a_prefix_is_the_longest_that_fits() {
        for text in SAMPLES {
            for measure in [JsonMeasure::Chars, JsonMeasure::Bytes, JsonMeasure::NestedBytes] {
                for max in 0..=measure.content(text) + 1 {
                    let prefix = measure.prefix(text, max);
                    assert!(measure.content(prefix) <= max);
                    let longer = text[prefix.len()..].chars().next().map(|next| format!("{prefix}{next}"));
                    assert!(longer.is_none_or(|longer| measure.content(&longer) > max), "{text:?} {max}");
                }
            }
        }
    }
}
