//! Contexts as a server uses them: read, updated without loss, cleared; what is damaged is put aside, what is another's is not there.

use crate::parsed::Parsed;
use crate::store::ContextStore;
use crate::summariser::{SUMMARISER_DEADLINE, SUMMARISERS_MAX, Summariser};
use crate::turns::Turns;
use crate::window::{self, Folded};
use crate::{Access, Clock, Document, Error, Record, Refused, SessionId, StoreError, SystemClock, Unreadable};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Updates are repeated when another process came first. Each round one of them succeeds, so this many in a row is a store gone mad.
const ATTEMPTS_MAX: u32 = 200;
/// From here on, a moment's pause spreads them.
const ATTEMPTS_AT_ONCE: u32 = 4;

/// Cheap to clone.
#[derive(Clone)]
pub struct Contexts(Arc<Inner>);

pub(crate) struct Inner {
    pub store: Arc<dyn ContextStore>,
    clock: Arc<dyn Clock>,
    turns: Turns,
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

/// Since the process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// On request; those are no evictions.
    pub cleared: u64,
    /// Could not be read, and were moved aside.
    pub quarantined: u64,
    /// Met a schema version that is newer than ours, and left it alone.
    pub newer: u64,
    /// Asked for the context of another session or tenant.
    pub isolation_violations: u64,
    /// Went without a context because the store could not be used.
    pub unavailable: u64,
}

impl Contexts {
    pub fn new(store: impl ContextStore) -> Self {
        Self::build(store, Arc::new(SystemClock), None)
    }

    /// With another clock, or with a summariser.
    pub fn build(store: impl ContextStore, clock: Arc<dyn Clock>, summariser: Option<Arc<dyn Summariser>>) -> Self {
        Self(Arc::new(Inner {
            store: Arc::new(store),
            clock,
            turns: Turns::default(),
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

    /// What the conversation has done; a fresh record, which is not stored, when it has done nothing.
    pub async fn get(&self, access: Access<'_>) -> Result<Arc<Record>, Error> {
        let found = self.find(access).await?;
        Ok(found.unwrap_or_else(|| Arc::new(Record::new(*access.session, self.0.clock.now()))))
    }

    /// What is stored, if anything is.
    pub async fn find(&self, access: Access<'_>) -> Result<Option<Arc<Record>>, Error> {
        match self.load(access).await? {
            Some(document) => Ok(Some(document.record()?)),
            None => Ok(None),
        }
    }

    /// Changes the record and stores it. `change` is done again on a fresh copy whenever another process was faster; what it refuses changes
    /// nothing. Afterwards the window is folded if it is time.
    pub async fn update<T>(&self, access: Access<'_>, mut change: impl FnMut(&mut Record) -> Result<T, Refused>) -> Result<T, Error> {
        let _turn = self.0.turns.take(access.session).await;
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

    /// Starts the conversation afresh; its id stays valid. Whether there was anything. A record of a newer version is left as it is.
    pub async fn clear(&self, access: Access<'_>) -> Result<bool, Error> {
        if let Err(newer @ Error::Unreadable(Unreadable::Newer { .. })) = self.load(access).await {
            return Err(newer);
        }
        let cleared = self.end(access).await?;
        self.0.counters.cleared.fetch_add(1, Relaxed);
        Ok(cleared)
    }

    /// The session has ended, and its context goes with it.
    pub async fn end(&self, access: Access<'_>) -> Result<bool, Error> {
        let _turn = self.0.turns.take(access.session).await;
        self.0.parsed.forget(access.session);
        match self.0.store.remove(access).await {
            Ok(removed) => Ok(removed),
            Err(error) => Err(self.failed(access, error)),
        }
    }

    /// For a caller that names the session it asks about: only its own exists. What is not an id is told so.
    pub fn own(&self, own: &SessionId, asked: &str) -> Result<(), Error> {
        let asked: SessionId = asked.parse()?;
        if asked == *own {
            return Ok(());
        }
        self.isolation_violation(own, &asked);
        Err(Error::NotFound)
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

    /// A document that can be read and is this session's, or none.
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
            // Not there any more: somebody else has put it aside, or written another.
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
        tracing::warn!("context isolation violation: a session asked for a context that is not its own");
        tracing::debug!(session_id = %own, asked = %asked, "the two sessions");
    }

    /// After the fact, if there is a summariser that is not too busy. Its words count only where nothing has moved meanwhile.
    fn summarise(&self, access: Access<'_>, folded: Folded) {
        let Some(summariser) = self.0.summariser.clone() else { return };
        let Ok(place) = self.0.summarisers.clone().try_acquire_owned() else { return };
        let (contexts, session, tenant) = (self.clone(), *access.session, access.tenant.to_owned());
        tokio::spawn(async move {
            let _place = place;
            let telling = summariser.summarise(folded.earlier.as_deref(), &folded.calls);
            let Ok(Some(text)) = tokio::time::timeout(SUMMARISER_DEADLINE, telling).await else { return };
            let access = Access::new(&session, "summariser").of_tenant(&tenant);
            // Refused, so that nothing is stored: the session may have ended meanwhile.
            let moved =
                || Refused { parameter: "summary_before_window".into(), value: "another".into(), allowed: "the window has moved".into() };
            let told = contexts.update(access, |record| if window::retell(record, &folded, &text) { Ok(()) } else { Err(moved()) }).await;
            if let Err(error) = told {
                tracing::debug!(session_id = %session, %error, "a summary came too late");
            }
        });
    }
}

/// Up to some milliseconds, and never twice the same.
fn pause(attempt: u32) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    let micros_max = 200_u64 << attempt.min(6);
    Duration::from_micros(RandomState::new().hash_one(attempt) % micros_max)
}
