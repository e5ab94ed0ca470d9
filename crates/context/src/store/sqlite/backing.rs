//! The SQLite database as the backing of the memory store.

use super::{BUSY_TIMEOUT, Sqlite, statements, unavailable, with_reader};
use crate::store::{Backing, Flush, LastRun, Page, Pending, Saved};
use crate::{Document, SessionId, StoreError, Timestamp};
use std::sync::Arc;

const FLUSHED_AT: &str = "flushed_at";
const ENDED_WELL: &str = "ended_well";

impl Backing for Sqlite {
    fn begin(&self) -> Pending<'_, Option<LastRun>> {
        let now = self.settings.clock.now();
        Box::pin(self.writer.write(move |db| {
            let last = statements::state(db, FLUSHED_AT)?;
            let ended_well = statements::state(db, ENDED_WELL)? == Some(1);
            statements::set_state(db, FLUSHED_AT, now.ms())?;
            statements::set_state(db, ENDED_WELL, 0)?;
            Ok(last.map(|ms| LastRun { flushed_at: Timestamp::from_ms(ms), ended_well }))
        }))
    }

    fn load(&self, after: Option<SessionId>, limit: usize) -> Pending<'_, Page> {
        let (readers, connect) = (self.readers.clone(), self.connect.clone());
        Box::pin(async move {
            let read =
                tokio::task::spawn_blocking(move || with_reader(&readers, &connect, BUSY_TIMEOUT, |db| statements::page(db, after, limit)));
            let rows = read
                .await
                .map_err(|error| StoreError::Unavailable { backend: super::BACKEND, why: error.to_string() })?
                .map_err(|error| unavailable(&error))?;
            let next = rows.last().map(|(session, ..)| *session).filter(|_| rows.len() == limit);
            let tenant: Arc<str> = "".into();
            let saved = |(session, used_at, bytes, owner)| {
                let document = Document::from_bytes(bytes);
                Saved { session, tenant: tenant.clone(), owner, document, used_at }
            };
            Ok(Page { saved: rows.into_iter().map(saved).collect(), next, ..Page::default() })
        })
    }

    fn flush(&self, flush: Flush) -> Pending<'_, ()> {
        Box::pin(self.writer.write(move |db| {
            for session in &flush.removed {
                statements::remove(db, session)?;
            }
            for saved in &flush.changed {
                statements::put(db, &saved.session, &saved.owner, saved.document.bytes(), saved.used_at)?;
            }
            for (session, used_at) in &flush.used {
                statements::touch(db, session, *used_at)?;
            }
            statements::set_state(db, FLUSHED_AT, flush.at.ms())?;
            statements::set_state(db, ENDED_WELL, i64::from(flush.last))
        }))
    }
}
