//! Who asks for a session that is somebody else's is answered like who asks for one that never was, and as fast: which of the two it was is only
//! found out afterwards, for all who asked meanwhile, and told to the operator.

use crate::Archive;
use heapstead_types::{Principal, SessionId};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// From a question to looking into it: long against a request, so that what is done then is seen in no answer.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// More questions than this are not kept at once: their memory is bounded, whatever is asked.
const ASKED_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub(crate) struct Trespasses {
    asked: Mutex<Vec<(Principal, SessionId)>>,
    news: Arc<Notify>,
    found: AtomicU64,
}

impl Trespasses {
    /// Somebody asked for a session that is not theirs, or that nobody has.
    pub fn asked(&self, principal: &Principal, id: SessionId) {
        let mut asked = self.lock();
        if asked.len() < ASKED_MAX {
            asked.push((principal.clone(), id));
        }
        drop(asked);
        self.news.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Principal, SessionId)>> {
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
        while let Some((principal, id)) = asked.last() {
            match self.0.metadata.is_of_another(principal, *id).await {
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
