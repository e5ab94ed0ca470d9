//! The memory store over a database: loads at start, flushes periodically and at shutdown.

use super::{Memory, MemorySettings};
use crate::store::{Backing, Flush, Saved};
use crate::{Access, SessionId, StoreError, Timestamp, Unreadable};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Changes of up to this period are lost if the process is killed.
pub const FLUSH_EVERY_DEFAULT: Duration = Duration::from_secs(5 * 60);
/// Documents loaded at once.
const PAGE: usize = 256;

/// Result of loading from the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loaded {
    pub sessions: u64,
    /// Expired, and skipped.
    pub expired: u64,
    /// Damaged, and moved to quarantine.
    pub quarantined: u64,
    /// Encrypted under unknown keys, and left unchanged.
    pub unreadable: u64,
    /// Set if the previous process did not shut down cleanly: its changes after this time are lost.
    pub lost_since: Option<Timestamp>,
}

impl Memory {
    /// Loads the contexts of the database, and flushes to it later.
    pub async fn load(settings: MemorySettings, backing: Arc<dyn Backing>) -> Result<(Self, Loaded), StoreError> {
        let mut loaded = Loaded::default();
        if let Some(last) = backing.begin().await? {
            loaded.lost_since = (!last.ended_well).then_some(last.flushed_at);
        }
        let mut saved = load_all(&*backing, &mut loaded).await?;
        saved.sort_by_key(|saved| saved.used_at);
        let memory = Self::with(settings, Some(backing));
        let now = memory.clock.now();
        for saved in saved {
            if memory.held().restore(saved, now) {
                loaded.sessions += 1;
            } else {
                loaded.expired += 1;
            }
        }
        match loaded.lost_since {
            Some(since) => tracing::warn!(
                sessions = loaded.sessions,
                "the last process did not end well: changes to contexts since its last flush at {since} are lost"
            ),
            None => tracing::info!(sessions = loaded.sessions, expired = loaded.expired, "contexts loaded"),
        }
        Ok((memory, loaded))
    }

    /// Writes all changes to the database, if there is one.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.flush_as(false).await
    }

    /// Makes the last flush, which marks a clean shutdown. Call it when the server shuts down.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.flush_as(true).await
    }

    /// Flushes at this interval until the returned value is dropped.
    pub fn flush_every(self: &Arc<Self>, interval: Duration) -> Flusher {
        let memory = self.clone();
        Flusher(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(interval.max(Duration::from_millis(10)));
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            ticks.tick().await;
            loop {
                ticks.tick().await;
                if let Err(error) = memory.flush().await {
                    tracing::warn!(%error, "contexts could not be flushed");
                }
            }
        }))
    }

    async fn flush_as(&self, last: bool) -> Result<(), StoreError> {
        let Some(backing) = &self.backing else { return Ok(()) };
        let _alone = self.flushing.lock().await;
        let at = self.clock.now();
        let (changed, used, removed) = {
            let mut held = self.held();
            held.sweep(at);
            held.unflushed()
        };
        let sessions: Vec<SessionId> = changed.iter().map(|saved| saved.session).collect();
        let used_sessions: Vec<SessionId> = used.iter().map(|(session, _)| *session).collect();
        let flushed = backing.flush(Flush { at, changed, used, removed: removed.clone(), last }).await;
        if flushed.is_err() {
            self.held().not_flushed(&sessions, &used_sessions, removed);
        }
        flushed
    }
}

/// Quarantines documents that do not parse. A document with a newer schema version is held unchanged, so that it is not overwritten.
async fn load_all(backing: &dyn Backing, loaded: &mut Loaded) -> Result<Vec<Saved>, StoreError> {
    let mut all = Vec::new();
    let mut after = None;
    loop {
        let page = backing.load(after, PAGE).await?;
        loaded.quarantined += page.quarantined;
        loaded.unreadable += page.unreadable;
        for saved in page.saved {
            let why = match saved.document.record() {
                Err(Unreadable::Damaged { why }) => Some(why),
                Ok(record) if record.session_id != saved.session => Some("it belongs to another session".to_owned()),
                Ok(_) | Err(Unreadable::Newer { .. }) => None,
            };
            match why {
                None => all.push(saved),
                Some(why) => {
                    let access = Access::new(&saved.session, "load").of_tenant(&saved.tenant);
                    loaded.quarantined += u64::from(backing.quarantine(access, &saved.document, &why).await?);
                }
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(all);
        }
    }
}

/// Stops the periodic flushes when dropped. It does not make a last flush; [`Memory::close`] does.
#[must_use = "flushing ends when this is dropped"]
#[derive(Debug)]
pub struct Flusher(JoinHandle<()>);

impl Drop for Flusher {
    fn drop(&mut self) {
        self.0.abort();
    }
}
