//! The window of recent calls: at 15 calls the newest 10 stay and the older ones are folded into the summary. Pure functions of the record.

use crate::Record;
use crate::limits::{CALLS_FOLD_AT, CALLS_KEPT};
use crate::record::ToolCall;
use crate::summary::{Paragraph, Summary};

/// The folded calls, for a summariser.
#[derive(Debug, Clone, PartialEq)]
pub struct Folded {
    pub calls: Vec<ToolCall>,
    /// The summary before this fold.
    pub earlier: Option<String>,
    /// Position of the window and text of the summary right after the fold.
    window_start_index: u64,
    summary: String,
}

/// Folds all but the newest ten calls once there are fifteen. Otherwise returns `None`.
pub fn fold(record: &mut Record) -> Option<Folded> {
    if record.recent_tool_calls.len() < CALLS_FOLD_AT {
        return None;
    }
    let kept = record.recent_tool_calls.split_off(record.recent_tool_calls.len() - CALLS_KEPT);
    let calls = std::mem::replace(&mut record.recent_tool_calls, kept);
    let earlier = record.summary_before_window.take();
    let mut summary = earlier.as_deref().map(Summary::parse).unwrap_or_default();
    summary.push(Paragraph::of(&calls)?);
    let summary = summary.into_bounded_text();
    let window_start_index = record.window_start_index.unwrap_or(0).saturating_add(calls.len() as u64);
    record.summary_before_window = Some(summary.clone());
    record.window_start_index = Some(window_start_index);
    Some(Folded { calls, earlier, window_start_index, summary })
}

/// Replaces the generated summary with the text of a summariser. Returns false and changes nothing if the window has moved since.
pub fn replace_summary(record: &mut Record, folded: &Folded, text: &str) -> bool {
    let has_moved =
        record.window_start_index != Some(folded.window_start_index) || record.summary_before_window.as_ref() != Some(&folded.summary);
    if has_moved || text.trim().is_empty() {
        return false;
    }
    let mut summary = Summary::parse(&folded.summary);
    let is_replaced = summary.replace_last(folded.calls.len() as u64, text);
    if is_replaced {
        record.summary_before_window = Some(summary.into_bounded_text());
    }
    is_replaced
}

/// Number of calls that the summary covers.
pub fn counted(record: &Record) -> u64 {
    record.summary_before_window.as_deref().map_or(0, |text| Summary::parse(text).calls())
}
