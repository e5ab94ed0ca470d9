//! Checkpoints: heaps of live sessions that are stored behind the answers of their turns. One at a time for a session, always of its newest
//! state: the turns between two checkpoints have none.

use super::failure::CheckpointFailure;
use crate::{Service, ServiceError, crash_point};
use heapstead_engine::HeapImage;
use heapstead_types::{HeapKey, Principal, SessionId};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};

/// Before a checkpoint, and between two of a session: turns that follow each other quickly share one, and are not slowed down by it.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Checkpoints {
    writing: Semaphore,
    /// Sessions whose checkpoint is being written, or will be.
    sessions: Mutex<HashMap<SessionId, Writing>>,
}

#[derive(Debug, Clone)]
struct Writing {
    /// Closed when it has ended.
    ended: watch::Receiver<()>,
    /// Somebody waits for it.
    hurry: Arc<Notify>,
}

impl Checkpoints {
    pub fn new(at_once: usize) -> Self {
        Self { writing: Semaphore::new(at_once.max(1)), sessions: Mutex::default() }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Writing>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the checkpoint of a session that is due is written.
    pub async fn idle(&self, session: SessionId) {
        let writing = self.sessions().get(&session).cloned();
        if let Some(Writing { mut ended, hurry }) = writing {
            hurry.notify_one();
            while ended.changed().await.is_ok() {}
        }
    }
}

impl Service {
    /// Writes checkpoints of a session in the background until its newest state has one, unless that is being done.
    pub(crate) fn checkpoint(&self, session: SessionId) {
        let checkpoints = &self.runtime.checkpoints;
        let (ending, ended) = watch::channel(());
        let hurry = Arc::new(Notify::new());
        {
            let mut sessions = checkpoints.sessions();
            if sessions.contains_key(&session) {
                return;
            }
            sessions.insert(session, Writing { ended, hurry: hurry.clone() });
        }
        let service = self.clone();
        tokio::spawn(async move {
            let _ = tokio::time::timeout(PAUSE, hurry.notified()).await;
            let mut last = None;
            while let Some(state) = service.checkpoint_newest(session, last).await {
                last = Some(state);
                if service.runtime.live.current(session).is_none_or(|(_, _, newest)| newest == state) {
                    break;
                }
                let _ = tokio::time::timeout(PAUSE, hurry.notified()).await;
            }
            service.runtime.checkpoints.sessions().remove(&session);
            drop(ending);
            // A turn may have ended since.
            if service.runtime.live.has_untried(session, last) {
                service.checkpoint(session);
            }
        });
    }

    /// Stores the newest state of a session. None if it is stored, as `last` was, or can't be.
    async fn checkpoint_newest(&self, session: SessionId, last: Option<HeapKey>) -> Option<HeapKey> {
        let (worker, principal, state) = self.runtime.live.current(session).filter(|(_, _, state)| Some(*state) != last)?;
        match self.stores.records.turn_state(&principal, state).await.ok()? {
            Some(found) if found.heap.key().is_none() => {}
            found => {
                if found.is_some() {
                    self.runtime.live.stored_otherwise(session, state);
                }
                return None;
            }
        }
        let _permit = self.runtime.checkpoints.writing.acquire().await.ok()?;
        let written = match worker.snapshot().await {
            Ok(Some((heap, run))) => match self.runtime.live.state_after(session, run) {
                Some(state) => match self.store_checkpoint(&principal, state, heap).await {
                    Ok(_) => {
                        self.runtime.live.stored(session, run);
                        Ok(state)
                    }
                    Err(error) => Err(CheckpointFailure::new(state, error.code(), error.to_string())),
                },
                None => return None,
            },
            Ok(None) => return None,
            Err(failure) => Err(CheckpointFailure::new(state, failure.code(), failure.to_string())),
        };
        if written.is_err() && (!self.runtime.live.contains(session) || self.runtime.live.remove_dead(session)) {
            // The session has ended meanwhile, or all its processes have: then its next turn resumes it.
            return None;
        }
        self.runtime.live.meter.checkpoint(written.is_ok());
        match written {
            Ok(state) => Some(state),
            Err(failure) => {
                tracing::warn!(%session, why = failure.why, "a checkpoint of a live session can't be written; its journal holds the turns");
                if let Err(error) = self.stores.records.checkpoint_failed(&principal, failure.state, &failure.why).await {
                    tracing::warn!(%session, %error, "the reason can't be recorded");
                }
                self.runtime.live.failed(session, failure);
                None
            }
        }
    }

    /// Stores the heap of a state, and records it.
    pub(crate) async fn store_checkpoint(&self, principal: &Principal, state: HeapKey, heap: HeapImage) -> Result<HeapKey, ServiceError> {
        let (heap, reservation) = self.heaps().store_produced(&self.runtime.heaps.for_owner(principal), principal, heap).await?;
        let key = heap.key;
        crash_point::pass("checkpoint-stored");
        if self.stores.records.add_checkpoint(principal, state, heap, Timestamp::now()).await? {
            reservation.recorded();
        }
        crash_point::pass("checkpoint-recorded");
        Ok(key)
    }
}
