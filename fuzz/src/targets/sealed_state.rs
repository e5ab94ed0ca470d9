//! The encrypted state that clients carry: opens only unchanged, in its own session.

use crate::within;
use heapstead_service::fuzzing::{open_state, seal_state};
use heapstead_store::records::{Head, ServerKey};
use heapstead_types::{HeapKey, SessionId};

/// The sequence and the heap of a head, the byte of its state that is changed, and whether another session opens it.
type Changed = (u64, Option<[u8; 32]>, u16, u8, bool);

pub fn run(input: Result<Changed, &str>) {
    let keys = [ServerKey { id: 6, key: vec![2; 32] }, ServerKey { id: 7, key: vec![3; 32] }];
    let (session, other) = (SessionId::from_random([1; 32]), SessionId::from_random([2; 32]));
    match input {
        Err(text) => {
            let opened = within(8 * text.len() + (4 << 10), || open_state(&keys, session, text));
            assert_eq!(opened, None, "nobody else has the key");
        }
        Ok((sequence, heap, at, with, other_session)) => {
            let head = Head { sequence, heap: heap.map(HeapKey::from_digest) };
            let sealed = seal_state(&keys[1], session, head).expect("sealed");
            let mut bytes = sealed.clone().into_bytes();
            let at = usize::from(at) % bytes.len();
            bytes[at] = bytes[at].wrapping_add(with);
            let is_unchanged = bytes == sealed.as_bytes() && !other_session;
            let Ok(text) = String::from_utf8(bytes) else { return };
            let opened = open_state(&keys, if other_session { other } else { session }, &text);
            assert_eq!(opened, is_unchanged.then_some(head));
        }
    }
}
