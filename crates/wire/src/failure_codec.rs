//! A failure as a worker reports it: one byte for its kind, then UTF-8 text.
//!
//! | byte | failure | text |
//! |---|---|---|
//! | 1 | `Exception` | message and stack |
//! | 2 | `Syntax` | message and position |
//! | 3 | `MemoryCap` | the cap in MB, as decimal digits |
//! | 4 | `NeverSettles` | empty |
//! | 5 | `ResultTooLarge` | empty |
//! | 6 | `Unsaveable` | the reason |
//! | 7 | `NoWorker` | the reason |
//!
//! Byte 0 is not used: in the frames that contain a failure it means success.

use heapstead_types::{Failure, limits};
use std::borrow::Cow;

/// How much is kept of the end of a text that is too long. The stack of an error is at the end.
const TAIL_BYTES: usize = limits::ERROR_BYTES_MAX / 4;
/// Room for the text that replaces the removed part.
const CUT_BYTES: usize = 64;

/// Kind byte and text of a failure. Failures that only the server detects are sent as `NoWorker`.
pub fn encode(failure: &Failure) -> (u8, Cow<'_, str>) {
    let (byte, text) = match failure {
        Failure::Exception(text) => (1, Cow::Borrowed(text.as_str())),
        Failure::Syntax(text) => (2, Cow::Borrowed(text.as_str())),
        Failure::MemoryCap { heap_mb } => (3, Cow::Owned(heap_mb.to_string())),
        Failure::NeverSettles => (4, Cow::Borrowed("")),
        Failure::ResultTooLarge => (5, Cow::Borrowed("")),
        Failure::Unsaveable(text) => (6, Cow::Borrowed(text.as_str())),
        Failure::NoWorker(text) => (7, Cow::Borrowed(text.as_str())),
        other => (7, Cow::Owned(other.to_string())),
    };
    (byte, shorten(text))
}

/// The failure. None if the byte is unknown or the text is malformed.
pub fn decode(byte: u8, text: String) -> Option<Failure> {
    if text.len() > limits::ERROR_BYTES_MAX {
        return None;
    }
    Some(match byte {
        1 => Failure::Exception(text),
        2 => Failure::Syntax(text),
        // A number is written in one way: no signs, no leading zeros.
        3 => Failure::MemoryCap { heap_mb: text.parse().ok().filter(|heap_mb: &u32| heap_mb.to_string() == text)? },
        4 if text.is_empty() => Failure::NeverSettles,
        5 if text.is_empty() => Failure::ResultTooLarge,
        6 => Failure::Unsaveable(text),
        7 => Failure::NoWorker(text),
        _ => return None,
    })
}

/// Removes the middle of a text that is too long: the beginning says what went wrong, the end says where.
pub fn shorten(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.len() <= limits::ERROR_BYTES_MAX {
        return text;
    }
    let head = &text[..text.floor_char_boundary(limits::ERROR_BYTES_MAX - TAIL_BYTES - CUT_BYTES)];
    let tail = &text[text.ceil_char_boundary(text.len() - TAIL_BYTES)..];
    Cow::Owned(format!("{head}\n… {} bytes cut …\n{tail}", text.len() - head.len() - tail.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_shortened_in_the_middle_at_character_boundaries() {
        let long = format!("Error: {}\n    at main.js:1:1", "é".repeat(limits::ERROR_BYTES_MAX));
        let failure = Failure::Exception(long);
        let (_, text) = encode(&failure);
        assert!(text.len() <= limits::ERROR_BYTES_MAX && text.starts_with("Error: é") && text.ends_with("é\n    at main.js:1:1"));
    }
}
