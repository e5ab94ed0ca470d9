//! One update of a session at a time within this process, so that only other processes can come in between.

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
    /// In the order of asking.
    pub async fn take(&self, session: &SessionId) -> Held<'_> {
        let turn = self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(*session).or_default().clone();
        // Made before the wait: who gives up waiting must not leave the session behind either.
        let mut held = Held { turns: self, session: *session, guard: None };
        held.guard = Some(turn.lock_owned().await);
        held
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut turns = self.turns.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.guard.take());
        // Nobody else can ask for it while the map is locked.
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
    async fn turns_are_taken_one_by_one_and_nothing_stays_behind() {
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
