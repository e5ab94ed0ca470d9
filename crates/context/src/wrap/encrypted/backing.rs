//! The encrypted database beneath the memory store: what is flushed is encrypted, what is loaded was decrypted.

use super::Encrypted;
use super::envelope::{self, Header};
use crate::store::{Backing, Flush, LastRun, Page, Pending, Saved};
use crate::{Access, Document, SessionId, StoreError};
use std::sync::Arc;

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
            let mut headers = Vec::with_capacity(flush.changed.len());
            for saved in &mut flush.changed {
                let header = self.seen.next(&saved.session).unwrap_or_else(|| Header::first(self.clock.now()));
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
