//! A lock per session that serialises updates within this process, so that conflicts come only from other processes.

use crate::SessionId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

#[derive(Default)]
pub struct SessionLocks(Mutex<HashMap<SessionId, Arc<AsyncMutex<()>>>>);

pub struct SessionLock<'a> {
    locks: &'a SessionLocks,
    session: SessionId,
    guard: Option<OwnedMutexGuard<()>>,
}

impl SessionLocks {
    /// Fair: locks are granted in the order of the calls.
    pub async fn take(&self, session: &SessionId) -> SessionLock<'_> {
        let lock = self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(*session).or_default().clone();
        // Created before the wait, so that a cancelled caller removes the entry too.
        let mut taken = SessionLock { locks: self, session: *session, guard: None };
        taken.guard = Some(lock.lock_owned().await);
        taken
    }
}

impl Drop for SessionLock<'_> {
    fn drop(&mut self) {
        let mut locks = self.locks.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.guard.take());
        // While the map is locked, no other task can take this entry.
        if locks.get(&self.session).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn locks_are_exclusive_and_leave_no_entry_behind() {
        let (locks, one, other) = (SessionLocks::default(), SessionId::from_bytes([1; 32]), SessionId::from_bytes([2; 32]));
        let first = locks.take(&one).await;
        let _other = locks.take(&other).await;
        let given_up = tokio::time::timeout(Duration::from_millis(5), locks.take(&one)).await;
        assert!(given_up.is_err(), "taken");
        drop(first);
        drop(locks.take(&one).await);
        assert_eq!(locks.0.lock().expect("locks").len(), 1, "the other");
    }
}
