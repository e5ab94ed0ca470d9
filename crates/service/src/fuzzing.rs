//! Entry points for the fuzz targets (`fuzz/` in the repository).

use crate::sessions::client_state::{self, Sealed};
use heapstead_store::records::{Head, ServerKey};
use heapstead_types::SessionId;

/// The state that a client of this session carries.
pub fn seal_state(key: &ServerKey, session: SessionId, head: Head) -> Option<String> {
    client_state::seal(key, session, &client_state::plain(head))
}

/// The head in a state that a client sent back, if one of these keys encrypted it for this session.
pub fn open_state(keys: &[ServerKey], session: SessionId, text: &str) -> Option<Head> {
    let sealed = Sealed::parse(text)?;
    client_state::open(&sealed.key_of(keys)?, session, &sealed)
}
