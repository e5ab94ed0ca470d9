//! The session in `_meta`: its id and state are texts within their bounds, whatever the rest is.

use heapstead_server::fuzzing::{SESSION_ID_CHARS_MAX, session_metadata};
use heapstead_service::STATE_BYTES_MAX;
use serde_json::{Map, Value};

pub fn run(input: (bool, &[u8])) {
    let (is_modern, bytes) = input;
    let Ok(meta) = serde_json::from_slice::<Map<String, Value>>(bytes) else { return };
    let Ok(Some((id, state))) = session_metadata(&meta, is_modern) else { return };
    assert!((1..=SESSION_ID_CHARS_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()));
    assert!(state.is_none_or(|state| state.len() <= STATE_BYTES_MAX));
}
