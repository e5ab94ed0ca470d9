//! Encrypts every document before it reaches a store: AES-256-GCM, a key per tenant, the session id as associated data.
//!
//! Detects: a document that was moved to another session or tenant, truncated, changed, replaced by plaintext, or replaced by an older
//! version of the same session than this process has seen (see `replay.rs`). Does not detect: a replay of an older version before this
//! process has seen a newer one (after a restart, or on a server that never served the session), and a deleted document.

mod backing;
pub(crate) mod envelope;
mod keyring;
mod keys;
mod replay;

pub use keyring::{InvalidKeyFile, Keyring};

use crate::store::{ContextStore, Pending, Stats};
use crate::{Access, Clock, Document, StoreError, SystemClock};
use envelope::{Header, Opened};
use keys::Keys;
use replay::Seen;
use std::sync::Arc;

pub struct Encrypted<S> {
    store: S,
    keys: Keys,
    seen: Seen,
    clock: Arc<dyn Clock>,
}

impl<S: ContextStore> Encrypted<S> {
    pub fn new(store: S, keys: Keyring) -> Self {
        Self { store, keys: Keys::new(keys), seen: Seen::default(), clock: Arc::new(SystemClock) }
    }

    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Replaces the keys. Documents under an older key are re-encrypted on their next use.
    pub fn rotate(&self, keys: Keyring) {
        self.keys.rotate(keys);
    }

    fn seal(&self, access: Access<'_>, header: Header, document: &Document) -> Result<Document, StoreError> {
        envelope::seal(&self.keys.now(), access, header, document.bytes()).map(Document::from_bytes).map_err(|why| self.unavailable(why))
    }

    /// The header of the next version of a context, or of the first.
    fn header(&self, next: Option<Header>) -> Result<Header, StoreError> {
        next.map_or_else(|| Header::first(self.clock.now()).map_err(|why| self.unavailable(why)), Ok)
    }

    fn unavailable(&self, why: &str) -> StoreError {
        StoreError::Unavailable { backend: self.backend(), why: why.to_owned() }
    }

    /// If the key is unknown, reloads the key file first, because another server may already encrypt under a key that was just added.
    fn open(&self, access: Access<'_>, found: &Document) -> Result<Opened, StoreError> {
        match envelope::open(&self.keys.now(), access, found) {
            Err(StoreError::UnknownKey { .. }) => envelope::open(&self.keys.look(), access, found),
            opened => opened,
        }
    }

    async fn read_opened(&self, access: Access<'_>) -> Result<Option<Document>, StoreError> {
        // Read before the store is asked, because the stored version can only become newer in between.
        let floor = self.seen.floor(access.session);
        let Some(found) = self.store.read(access).await? else { return Ok(None) };
        let opened = self.open(access, &found)?;
        if !floor.allows(&opened.header) {
            return Err(StoreError::Tampered { why: "an older version was put in place of a newer one", found });
        }
        self.seen.note(access.session, opened.header);
        let document = Document::opened(opened.plain, found.bytes().clone());
        Ok(Some(if opened.is_under_newest { document } else { self.resealed(access, document).await }))
    }

    /// Re-encrypts a document under the newest key, so that an older key can be removed even if a context is only ever read. On failure,
    /// returns the document unchanged.
    async fn resealed(&self, access: Access<'_>, document: Document) -> Document {
        match self.replace_sealed(access, Some(&document), &document).await {
            Ok(Some(sealed)) => Document::opened(document.bytes().clone(), sealed.bytes().clone()),
            // Another process has replaced it, or the store is unavailable.
            Ok(None) | Err(_) => document,
        }
    }

    /// The document now in the store, if it was replaced.
    async fn replace_sealed(
        &self,
        access: Access<'_>,
        expected: Option<&Document>,
        new: &Document,
    ) -> Result<Option<Document>, StoreError> {
        let before = expected.and_then(Document::sealed).and_then(|sealed| envelope::header(sealed));
        let header = self.header(before.map(Header::next))?;
        let sealed = self.seal(access, header, new)?;
        if !self.store.replace(access, expected.map(Document::as_sealed).as_ref(), &sealed).await? {
            return Ok(None);
        }
        self.seen.note(access.session, header);
        Ok(Some(sealed))
    }
}

impl<S: ContextStore> ContextStore for Encrypted<S> {
    fn backend(&self) -> &'static str {
        self.store.backend()
    }

    fn read<'a>(&'a self, access: Access<'a>) -> Pending<'a, Option<Document>> {
        Box::pin(self.read_opened(access))
    }

    fn replace<'a>(&'a self, access: Access<'a>, expected: Option<&'a Document>, new: &'a Document) -> Pending<'a, bool> {
        Box::pin(async move { Ok(self.replace_sealed(access, expected, new).await?.is_some()) })
    }

    fn remove<'a>(&'a self, access: Access<'a>) -> Pending<'a, bool> {
        Box::pin(async move {
            let floor = self.seen.floor(access.session);
            let removed = self.store.remove(access).await?;
            self.seen.gone(access.session, floor);
            Ok(removed)
        })
    }

    fn quarantine<'a>(&'a self, access: Access<'a>, found: &'a Document, why: &'a str) -> Pending<'a, bool> {
        Box::pin(async move { self.store.quarantine(access, &found.as_sealed(), why).await })
    }

    fn sweep(&self) -> Pending<'_, ()> {
        self.store.sweep()
    }

    fn stats(&self) -> Pending<'_, Stats> {
        self.store.stats()
    }

    fn owner_bytes<'a>(&'a self, owner: &'a str) -> Pending<'a, Option<u64>> {
        self.store.owner_bytes(owner)
    }

    fn check(&self) -> Pending<'_, ()> {
        self.store.check()
    }
}
