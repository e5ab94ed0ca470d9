//! Texts of tool calls before they are stored: within their bounds, and masking what is masked already changes nothing.

use heapstead_context::text::{clean, cut_args, cut_bytes, cut_chars, result_summary, result_summary_of_text};
use serde_json::{Map, Value};

pub fn run(text: &str) {
    assert!(cut_bytes(text, 100).len() <= 100 && cut_chars(text, 100).chars().count() <= 100);
    let _ = clean(text);
    let summary = result_summary_of_text(text);
    assert!(summary.chars().count() <= 280, "{summary}");
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        assert!(result_summary(&value).chars().count() <= 280);
    }
    if let Ok(args) = serde_json::from_str::<Map<String, Value>>(text) {
        let cut = cut_args(&args);
        assert!(serde_json::to_string(&cut).expect("JSON").len() <= 2 << 10, "{cut:?}");
    }
}
