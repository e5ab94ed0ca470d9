//! The window of recent calls: at 15 of them the newest 10 stay and the older ones become a summary. Functions of the record alone.

use crate::Record;
use crate::limits::{CALLS_FOLD_AT, CALLS_KEPT};
use crate::record::ToolCall;
use crate::summary::{Paragraph, Summary};

/// What was folded, for a summariser that has better words for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Folded {
    pub calls: Vec<ToolCall>,
    /// The summary before them.
    pub earlier: Option<String>,
    /// How far the window had moved, and what the summary said, right after.
    window_start_index: u64,
    summary: String,
}

/// Folds what is older than the newest ten, once there are fifteen. Nothing otherwise.
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
    let window_start_index = record.window_start_index.unwrap_or(0) + calls.len() as u64;
    record.summary_before_window = Some(summary.clone());
    record.window_start_index = Some(window_start_index);
    Some(Folded { calls, earlier, window_start_index, summary })
}

/// Puts a summariser's words in the place of ours. False, and nothing is changed, when the window has moved since.
pub fn retell(record: &mut Record, folded: &Folded, text: &str) -> bool {
    let has_moved =
        record.window_start_index != Some(folded.window_start_index) || record.summary_before_window.as_ref() != Some(&folded.summary);
    if has_moved || text.trim().is_empty() {
        return false;
    }
    let mut summary = Summary::parse(&folded.summary);
    let retold = summary.retell_last(folded.calls.len() as u64, text);
    if retold {
        record.summary_before_window = Some(summary.into_bounded_text());
    }
    retold
}

/// How many calls the summary stands for.
pub fn counted(record: &Record) -> u64 {
    record.summary_before_window.as_deref().map_or(0, |text| Summary::parse(text).calls())
}
