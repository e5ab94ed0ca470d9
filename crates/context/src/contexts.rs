//! The API a server uses: reads, updates without lost writes, and clears contexts. Quarantines damaged records and hides those of other
//! sessions.

use crate::parsed::Parsed;
use crate::session_locks::SessionLocks;
use crate::store::ContextStore;
use crate::summariser::{SUMMARISER_DEADLINE, SUMMARISERS_MAX, Summariser};
use crate::window::{self, Folded};
use crate::{Access, Clock, Document, Error, Record, Refused, SessionId, StoreError, SystemClock, Unreadable};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Maximum attempts of an update that conflicts with other processes. Every round one writer succeeds, so more than this means that the
/// store is broken.
const ATTEMPTS_MAX: u32 = 200;
/// Attempts without a pause. Later attempts wait for a short random time.
const ATTEMPTS_AT_ONCE: u32 = 4;

/// Cheap to clone.
#[derive(Clone)]
pub struct Contexts(Arc<Inner>);

pub(crate) struct Inner {
    pub store: Arc<dyn ContextStore>,
    clock: Arc<dyn Clock>,
    locks: SessionLocks,
    parsed: Parsed,
    summariser: Option<Arc<dyn Summariser>>,
    summarisers: Arc<Semaphore>,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    cleared: AtomicU64,
    quarantined: AtomicU64,
    newer: AtomicU64,
    isolation_violations: AtomicU64,
    unavailable: AtomicU64,
}

/// Counters since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Cleared on request; these are not evictions.
    pub cleared: u64,
    /// Unreadable, and moved to quarantine.
    pub quarantined: u64,
    /// Had a newer schema version than this crate knows, and were left unchanged.
    pub newer: u64,
    /// Requests for the context of another session or tenant.
    pub isolation_violations: u64,
    /// Continued without a context because the store was unavailable.
    pub unavailable: u64,
}

impl Contexts {
    pub fn new(store: impl ContextStore) -> Self {
        Self::build(store, Arc::new(SystemClock), None)
    }

    /// Creates contexts with a given clock and an optional summariser.
    pub fn build(store: impl ContextStore, clock: Arc<dyn Clock>, summariser: Option<Arc<dyn Summariser>>) -> Self {
        Self(Arc::new(Inner {
            store: Arc::new(store),
            clock,
            locks: SessionLocks::default(),
            parsed: Parsed::default(),
            summariser,
            summarisers: Arc::new(Semaphore::new(SUMMARISERS_MAX)),
            counters: Counters::default(),
        }))
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    pub fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    /// The record of the conversation. If nothing is stored, returns a fresh record without storing it.
    pub async fn get(&self, access: Access<'_>) -> Result<Arc<Record>, Error> {
        let found = self.find(access).await?;
        Ok(found.unwrap_or_else(|| Arc::new(Record::new(*access.session, self.0.clock.now()))))
    }

    /// The stored record, if there is one.
    pub async fn find(&self, access: Access<'_>) -> Result<Option<Arc<Record>>, Error> {
        match self.load(access).await? {
            Some(document) => Ok(Some(document.record()?)),
            None => Ok(None),
        }
    }

    /// Changes the record and stores it. If another process wrote first, `change` runs again on a fresh copy. If `change` refuses, nothing
    /// is stored. Afterwards the window is folded if it is full.
    pub async fn update<T>(&self, access: Access<'_>, mut change: impl FnMut(&mut Record) -> Result<T, Refused>) -> Result<T, Error> {
        let _lock = self.0.locks.take(access.session).await;
        for attempt in 0..ATTEMPTS_MAX {
            let found = self.load(access).await?;
            let now = self.0.clock.now();
            let mut record = match &found {
                Some(document) => (*document.record()?).clone(),
                None => Record::new(*access.session, now),
            };
            let value = change(&mut record)?;
            record.last_updated_at = now.max(record.last_updated_at);
            let folded = window::fold(&mut record);
            if self.store_if_unchanged(access, found.as_ref(), record).await? {
                folded.into_iter().for_each(|folded| self.summarise(access, folded));
                return Ok(value);
            }
            if attempt >= ATTEMPTS_AT_ONCE {
                tokio::time::sleep(pause(attempt)).await;
            }
        }
        Err(Error::Contended { attempts: ATTEMPTS_MAX })
    }

    /// Clears the record; the session id stays valid. Returns whether there was a record. A record with a newer schema version is left
    /// unchanged.
    pub async fn clear(&self, access: Access<'_>) -> Result<bool, Error> {
        if let Err(newer @ Error::Unreadable(Unreadable::Newer { .. })) = self.load(access).await {
            return Err(newer);
        }
        let cleared = self.end(access).await?;
        self.0.counters.cleared.fetch_add(1, Relaxed);
        Ok(cleared)
    }

    /// Removes the context of a session that has ended.
    pub async fn end(&self, access: Access<'_>) -> Result<bool, Error> {
        let _lock = self.0.locks.take(access.session).await;
        self.0.parsed.forget(access.session);
        match self.0.store.remove(access).await {
            Ok(removed) => Ok(removed),
            Err(error) => Err(self.failed(access, error)),
        }
    }

    /// Checks a session id that the caller passed: any session but its own is reported as not found. A malformed id is refused as
    /// malformed.
    pub fn own(&self, own: &SessionId, asked: &str) -> Result<(), Error> {
        let asked: SessionId = asked.parse()?;
        if asked == *own {
            return Ok(());
        }
        self.isolation_violation(own, &asked);
        Err(Error::NotFound)
    }

    /// Bytes of all contexts of an owner. `None` if the store does not count them.
    pub async fn owner_bytes(&self, owner: &str) -> Result<Option<u64>, StoreError> {
        self.0.store.owner_bytes(owner).await
    }

    pub fn counts(&self) -> Counts {
        let counters = &self.0.counters;
        Counts {
            cleared: counters.cleared.load(Relaxed),
            quarantined: counters.quarantined.load(Relaxed),
            newer: counters.newer.load(Relaxed),
            isolation_violations: counters.isolation_violations.load(Relaxed),
            unavailable: counters.unavailable.load(Relaxed),
        }
    }

    /// The document of this session if it can be read, else none.
    async fn load(&self, access: Access<'_>) -> Result<Option<Document>, Error> {
        for _ in 0..ATTEMPTS_MAX {
            let (found, why) = match self.0.store.read(access).await {
                Ok(None) => return Ok(None),
                Ok(Some(found)) => {
                    let found = self.0.parsed.recall(access.session, found);
                    match found.record() {
                        Ok(record) if record.session_id == *access.session => return Ok(Some(found)),
                        Ok(_) => (found, "it belongs to another session".to_owned()),
                        Err(Unreadable::Damaged { why }) => (found, why),
                        Err(newer @ Unreadable::Newer { .. }) => {
                            self.0.counters.newer.fetch_add(1, Relaxed);
                            tracing::warn!("{newer}");
                            return Err(newer.into());
                        }
                    }
                }
                Err(StoreError::Tampered { why, found }) => (found, why.to_owned()),
                Err(error) => return Err(self.failed(access, error)),
            };
            self.0.parsed.forget(access.session);
            // False means that another process has already quarantined or replaced it.
            if self.0.store.quarantine(access, &found, &why).await.map_err(|error| self.failed(access, error))? {
                self.0.counters.quarantined.fetch_add(1, Relaxed);
                tracing::warn!(why, "a stored context can't be read; it was moved aside, and its session starts afresh");
                tracing::debug!(session_id = %access.session, "its session");
            }
        }
        Err(Error::Contended { attempts: ATTEMPTS_MAX })
    }

    async fn store_if_unchanged(&self, access: Access<'_>, found: Option<&Document>, record: Record) -> Result<bool, Error> {
        if record.session_id != *access.session {
            return Err(Error::SessionMismatch);
        }
        let new = Document::of(record)?;
        self.0.store.replace(access, found, &new).await.map_err(|error| self.failed(access, error))
    }

    fn failed(&self, access: Access<'_>, error: StoreError) -> Error {
        match error {
            StoreError::ForeignTenant => {
                self.isolation_violation(access.session, access.session);
                Error::NotFound
            }
            error => {
                self.0.counters.unavailable.fetch_add(u64::from(matches!(error, StoreError::Unavailable { .. })), Relaxed);
                error.into()
            }
        }
    }

    fn isolation_violation(&self, own: &SessionId, asked: &SessionId) {
        self.0.counters.isolation_violations.fetch_add(1, Relaxed);
        tracing::warn!("context isolation violation: a session requested the context of another session");
        tracing::debug!(session_id = %own, asked = %asked, "the two sessions");
    }

    /// Asks the summariser in the background, if there is one with free capacity. Its text is used only if the window has not moved since.
    fn summarise(&self, access: Access<'_>, folded: Folded) {
        let Some(summariser) = self.0.summariser.clone() else { return };
        let Ok(place) = self.0.summarisers.clone().try_acquire_owned() else { return };
        let (contexts, session) = (self.clone(), *access.session);
        let (tenant, owner) = (access.tenant.to_owned(), access.owner.to_owned());
        tokio::spawn(async move {
            let _place = place;
            let summary = summariser.summarise(folded.earlier.as_deref(), &folded.calls);
            let Ok(Some(text)) = tokio::time::timeout(SUMMARISER_DEADLINE, summary).await else { return };
            let access = Access::new(&session, "summariser").of_tenant(&tenant).of_owner(&owner);
            // The change refuses, so that nothing is stored: the session may have ended meanwhile.
            let moved =
                || Refused { parameter: "summary_before_window".into(), value: "another".into(), allowed: "the window has moved".into() };
            let updated =
                contexts.update(access, |record| if window::replace_summary(record, &folded, &text) { Ok(()) } else { Err(moved()) }).await;
            if let Err(error) = updated {
                tracing::debug!(session_id = %session, %error, "a summary was not used: the window has moved, or the session has ended");
            }
        });
    }
}

/// A random pause of a few milliseconds.
fn pause(attempt: u32) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    let micros_max = 200_u64 << attempt.min(6);
    Duration::from_micros(RandomState::new().hash_one(attempt) % micros_max)
}
