//! Prepares text for recording: truncated, on one line and without secrets.

mod arguments;
mod mask;
mod result;

pub use arguments::cut_args;
pub use mask::{MASK, is_secret_name, mask};
pub use result::{result_summary, result_summary_of_text};

/// Replaces control characters and line ends with single spaces.
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for word in text.split(|letter: char| letter.is_whitespace() || letter.is_control()).filter(|word| !word.is_empty()) {
        if !cleaned.is_empty() {
            cleaned.push(' ');
        }
        cleaned.push_str(word);
    }
    cleaned
}

/// Truncates to this many bytes. A truncated text ends with `…`.
pub fn cut_bytes(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max.saturating_sub('…'.len_utf8()));
    format!("{}…", text[..end].trim_end())
}

/// Truncates to this many characters. A truncated text ends with `…`.
pub fn cut_chars(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some(_) => format!("{}…", text.chars().take(chars_max.saturating_sub(1)).collect::<String>().trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_letters_and_says_so() {
        for (text, max, cut) in [("abc", 3, "abc"), ("abcdef", 5, "ab…"), ("ééé", 5, "é…"), ("", 0, "")] {
            assert_eq!(cut_bytes(text, max), cut);
        }
        for (text, max, cut) in [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("éééé", 3, "éé…"), ("a b c", 3, "a…")] {
            assert_eq!(cut_chars(text, max), cut);
        }
    }

    #[test]
    fn a_text_is_brought_onto_one_line() {
        assert_eq!(clean("  a\n\n b\u{0}c\u{85}\td "), "a b c d");
    }
}
