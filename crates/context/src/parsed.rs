//! A cache of recently parsed documents, so that the same bytes are not parsed twice.

use crate::{Document, SessionId};
use bytes::Bytes;
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

const DOCUMENTS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
/// Longer documents are not cached.
const BYTES_MAX: usize = 64 * 1024;

pub struct Parsed(Mutex<LruCache<SessionId, Document>>);

impl Default for Parsed {
    fn default() -> Self {
        Self(Mutex::new(LruCache::sparse(DOCUMENTS_MAX)))
    }
}

impl Parsed {
    /// The cached document if its bytes are equal.
    pub fn recall(&self, session: &SessionId, found: Document) -> Document {
        // The memory store's documents are already parsed.
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

    /// The document for these bytes, from the cache if its bytes are equal.
    pub fn recall_bytes(&self, session: &SessionId, bytes: &[u8]) -> Document {
        if bytes.len() > BYTES_MAX {
            return Document::from_bytes(Bytes::copy_from_slice(bytes));
        }
        let mut documents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match documents.get(session) {
            Some(known) if known.bytes() == bytes => known.clone(),
            _ => {
                let found = Document::from_bytes(Bytes::copy_from_slice(bytes));
                documents.put(*session, found.clone());
                found
            }
        }
    }

    pub fn forget(&self, session: &SessionId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_are_the_document_that_is_known() {
        let (parsed, session) = (Parsed::default(), SessionId::from_bytes([1; 32]));
        let first = parsed.recall_bytes(&session, b"{}");
        let is_known = |document: &Document| document.bytes().as_ptr() == first.bytes().as_ptr();
        assert!(is_known(&parsed.recall_bytes(&session, b"{}")));
        assert!(!is_known(&parsed.recall_bytes(&SessionId::from_bytes([2; 32]), b"{}")), "another session's");
        parsed.forget(&session);
        assert!(!is_known(&parsed.recall_bytes(&session, b"{}")), "forgotten");
        let changed = parsed.recall_bytes(&session, b"[]");
        assert_eq!(changed.bytes().as_ref(), b"[]");
        let long = vec![b' '; BYTES_MAX + 1];
        let (one, other) = (parsed.recall_bytes(&session, &long), parsed.recall_bytes(&session, &long));
        assert_eq!(one, other);
        assert_ne!(one.bytes().as_ptr(), other.bytes().as_ptr(), "what is long is not kept");
    }
}
