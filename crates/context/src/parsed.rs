//! Documents that were parsed lately: whoever reads the same bytes again gets the record that is already there.

use crate::{Document, SessionId};
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

const DOCUMENTS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
/// Longer ones are parsed each time, rather than kept.
const BYTES_MAX: usize = 64 * 1024;

pub struct Parsed(Mutex<LruCache<SessionId, Document>>);

impl Default for Parsed {
    fn default() -> Self {
        Self(Mutex::new(LruCache::sparse(DOCUMENTS_MAX)))
    }
}

impl Parsed {
    /// The one that is already parsed, if it is the same to the byte.
    pub fn recall(&self, session: &SessionId, found: Document) -> Document {
        // What memory holds is parsed already.
        if found.is_parsed() || found.bytes().len() > BYTES_MAX {
            return found;
        }
        let mut documents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match documents.get(session) {
            Some(known) if *known == found && known.sealed() == found.sealed() => known.clone(),
            _ => {
                documents.put(*session, found.clone());
                found
            }
        }
    }

    pub fn forget(&self, session: &SessionId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop(session);
    }
}
