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

impl JsonMeasure {
    /// Length of a string's content in JSON, without the quotation marks.
    pub fn content(self, text: &str) -> usize {
        text.chars().map(|char| self.char(char)).sum()
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
        let mut length = 0;
        for (at, char) in text.char_indices() {
            length += self.char(char);
            if length > max {
                return &text[..at];
            }
        }
        text
    }

    fn char(self, char: char) -> usize {
        let escaped = match char {
            '"' | '\\' => [2, 2, 4],
            '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => [2, 2, 3],
            '\0'..='\u{1f}' => [6, 6, 7],
            _ => [1, char.len_utf8(), char.len_utf8()],
        };
        escaped[self as usize]
    }
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
