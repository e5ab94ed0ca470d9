//! Who asks for a session that is somebody else's is answered like who asks for one that never was, and as fast: which of the two it was is only
//! found out afterwards, for all who asked meanwhile, and told to the operator.

use crate::Archive;
use heapstead_types::{Principal, SessionId};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use uuid::Uuid;

/// From a question to looking into it: long against a request, so that what is done then is seen in no answer.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// More questions than this are not kept at once: their memory is bounded, whatever is asked.
const ASKED_MAX: usize = 65_536;

/// What somebody asked for and has not, or that nobody has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked {
    Session(SessionId),
    Logical(Uuid),
    /// The context of a session, from within another one: that of one's own is none's business there either.
    Context(SessionId),
}

#[derive(Debug, Default)]
pub(crate) struct Trespasses {
    asked: Mutex<Vec<(Principal, Asked)>>,
    news: Arc<Notify>,
    found: AtomicU64,
}

impl Trespasses {
    pub fn asked(&self, principal: &Principal, what: Asked) {
        let mut asked = self.lock();
        if asked.len() < ASKED_MAX {
            asked.push((principal.clone(), what));
        }
        drop(asked);
        self.news.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Principal, Asked)>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Trespasses {
    fn drop(&mut self) {
        self.news.notify_one();
    }
}

pub fn start(archive: &Archive) {
    let weak = Arc::downgrade(&archive.0);
    let news = archive.0.trespasses.news.clone();
    tokio::spawn(async move {
        loop {
            news.notified().await;
            tokio::time::sleep(LOOK_AFTER).await;
            let Some(kept) = weak.upgrade() else { return };
            Archive(kept).trespasses().await;
        }
    });
}

impl Archive {
    /// How often somebody asked for a session that is somebody else's, as far as could be looked into.
    pub(crate) async fn trespasses(&self) -> u64 {
        let trespasses = &self.0.trespasses;
        let mut asked = std::mem::take(&mut *trespasses.lock());
        let before = trespasses.found.load(Relaxed);
        while let Some((principal, what)) = asked.last() {
            let is_trespass = match what {
                Asked::Session(id) => self.0.metadata.is_of_another(principal, *id).await,
                Asked::Logical(id) => self.0.metadata.is_logical_of_another(principal, *id).await,
                Asked::Context(id) => self.0.metadata.is_session(*id).await,
            };
            match is_trespass {
                Ok(is_trespass) => trespasses.found.fetch_add(is_trespass.into(), Relaxed),
                Err(error) => {
                    tracing::warn!(%error, "who asked for sessions of others can't be looked into now");
                    trespasses.lock().append(&mut asked);
                    break;
                }
            };
            asked.pop();
        }
        let found = trespasses.found.load(Relaxed);
        if found > before {
            tracing::warn!(requests = found - before, "isolation violation: somebody asked for a session that is somebody else's");
        }
        found
    }
}
