//! A lock per session that serialises updates within this process, so that conflicts come only from other processes.

use crate::SessionId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

#[derive(Default)]
pub struct Turns(Mutex<HashMap<SessionId, Arc<Turn<()>>>>);

pub struct Held<'a> {
    turns: &'a Turns,
    session: SessionId,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Fair: locks are granted in the order of the calls.
    pub async fn take(&self, session: &SessionId) -> Held<'_> {
        let turn = self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(*session).or_default().clone();
        // Created before the wait, so that a cancelled caller removes the entry too.
        let mut held = Held { turns: self, session: *session, guard: None };
        held.guard = Some(turn.lock_owned().await);
        held
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut turns = self.turns.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.guard.take());
        // While the map is locked, no other task can take this entry.
        if turns.get(&self.session).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            turns.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn locks_are_exclusive_and_leave_no_entry_behind() {
        let (turns, one, other) = (Turns::default(), SessionId::from_bytes([1; 32]), SessionId::from_bytes([2; 32]));
        let first = turns.take(&one).await;
        let _other = turns.take(&other).await;
        let given_up = tokio::time::timeout(Duration::from_millis(5), turns.take(&one)).await;
        assert!(given_up.is_err(), "taken");
        drop(first);
        drop(turns.take(&one).await);
        assert_eq!(turns.0.lock().expect("turns").len(), 1, "the other");
    }
}
