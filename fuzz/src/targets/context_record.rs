//! Context records: a stored record of any version is read within its bound, is the same after it was written again, and takes further calls.

use crate::within;
use heapstead_context::limits::{CALLS_FOLD_AT, CALLS_KEPT, SUMMARY_BYTES_MAX};
use heapstead_context::{Document, Timestamp, ToolCall, window};

/// A JSON value takes up to this many times its text.
const FACTOR: usize = 128;

pub fn run(bytes: &[u8]) {
    let document = Document::from_bytes(bytes.to_vec());
    let Ok(record) = within(FACTOR * bytes.len() + (16 << 10), || document.record()) else { return };
    let mut grown = (*record).clone();
    let _ = window::counted(&grown);
    for call in 0..CALLS_FOLD_AT {
        grown.add_call(ToolCall {
            tool: format!("tool {call}"),
            args: serde_json::Map::new(),
            called_at: Timestamp::from_ms(call as i64),
            result_summary: "Done.".into(),
        });
    }
    let _ = window::fold(&mut grown).expect("there are enough calls");
    assert_eq!(grown.recent_tool_calls.len(), CALLS_KEPT);
    assert!(grown.summary_before_window.is_some_and(|summary| summary.len() <= SUMMARY_BYTES_MAX));
    let Ok(written) = Document::of((*record).clone()) else { return };
    let again = Document::from_bytes(written.bytes().clone()).record().expect("what was written can be read");
    assert_eq!(again, record);
}
