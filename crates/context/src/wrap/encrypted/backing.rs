//! An encrypted database as the backing of the memory store: encrypts on flush, decrypts on load.

use super::Encrypted;
use super::envelope;
use crate::store::{Backing, Flush, LastRun, Page, Pending, Saved};
use crate::{Access, Document, SessionId, StoreError};
use std::sync::Arc;

impl<S: Backing> Encrypted<S> {
    /// Re-encrypts contexts that were only read if they are under an older key, so that the old key can be removed.
    async fn reseal_used(&self, flush: &mut Flush) -> Result<(), StoreError> {
        if !self.keys.now().has_older() {
            return Ok(());
        }
        for (session, used_at) in &flush.used {
            let Some(found) = self.store.read(Access::new(session, "flush")).await? else { continue };
            let tenant: Arc<str> = envelope::tenant(found.bytes()).unwrap_or_default().into();
            match self.open(Access::new(session, "flush").of_tenant(&tenant), &found) {
                Ok(opened) if !opened.is_under_newest => {
                    let document = Document::from_bytes(opened.plain);
                    // The database knows its owner.
                    flush.changed.push(Saved { session: *session, tenant, owner: "".into(), document, used_at: *used_at });
                }
                // Nothing to re-encrypt. If the document is wrong, the next load reports it.
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }
}

impl<S: Backing> Backing for Encrypted<S> {
    fn begin(&self) -> Pending<'_, Option<LastRun>> {
        self.store.begin()
    }

    fn load(&self, after: Option<SessionId>, limit: usize) -> Pending<'_, Page> {
        Box::pin(async move {
            let mut page = self.store.load(after, limit).await?;
            for saved in std::mem::take(&mut page.saved) {
                let tenant: Arc<str> = envelope::tenant(saved.document.bytes()).unwrap_or_default().into();
                let access = Access::new(&saved.session, "load").of_tenant(&tenant);
                match self.open(access, &saved.document) {
                    Ok(opened) => {
                        self.seen.note(&saved.session, opened.header);
                        let document = Document::opened(opened.plain, saved.document.bytes().clone());
                        page.saved.push(Saved { document, tenant, ..saved });
                    }
                    Err(StoreError::Tampered { why, found }) => {
                        page.quarantined += u64::from(self.store.quarantine(access, &found, why).await?);
                    }
                    Err(_) => page.unreadable += 1,
                }
            }
            Ok(page)
        })
    }

    fn flush(&self, mut flush: Flush) -> Pending<'_, ()> {
        Box::pin(async move {
            self.reseal_used(&mut flush).await?;
            let mut headers = Vec::with_capacity(flush.changed.len());
            for saved in &mut flush.changed {
                let header = self.header(self.seen.next(&saved.session))?;
                let access = Access::new(&saved.session, "flush").of_tenant(&saved.tenant);
                saved.document = self.seal(access, header, &saved.document)?;
                headers.push((saved.session, header));
            }
            self.store.flush(flush).await?;
            headers.into_iter().for_each(|(session, header)| self.seen.note(&session, header));
            Ok(())
        })
    }
}
