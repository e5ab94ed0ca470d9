//! `Last-Event-ID` of a listener: an id is read from the way in which it is written, or refused.

use crate::within;
use heapstead_server::fuzzing::event_id;

/// The id of a request in it is hex of JSON.
const FACTOR: usize = 64;

pub fn run(text: &str) {
    let Some(written) = within(FACTOR * text.len() + (4 << 10), || event_id(text)) else { return };
    assert!(written.bytes().all(|byte| byte.is_ascii_graphic()), "{written:?}");
    assert_eq!(event_id(&written).as_deref(), Some(written.as_str()));
}
