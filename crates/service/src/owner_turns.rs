//! A concurrency limit per owner, for operations that occupy a thread: those of one owner wait for each other, and never delay those of
//! another owner.

use heapstead_types::BudgetHolder;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
pub struct OwnerTurns {
    at_once: usize,
    /// One semaphore for each owner with an operation in progress or waiting.
    turns: Mutex<HashMap<BudgetHolder, Weak<Semaphore>>>,
}

/// The permit of one operation, held until it is done.
#[derive(Debug)]
pub struct OwnerTurn {
    _permit: Option<OwnedSemaphorePermit>,
}

impl OwnerTurns {
    /// Allows this many concurrent operations per owner.
    pub fn new(at_once: usize) -> Self {
        Self { at_once, turns: Mutex::default() }
    }

    pub async fn turn(&self, holder: BudgetHolder) -> OwnerTurn {
        // A semaphore is never closed.
        OwnerTurn { _permit: self.of(holder).acquire_owned().await.ok() }
    }

    fn of(&self, holder: BudgetHolder) -> Arc<Semaphore> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(&holder).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::new(Semaphore::new(self.at_once));
        turns.insert(holder, Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn holder(number: u8) -> BudgetHolder {
        BudgetHolder::network([10, 0, 0, number].into())
    }

    #[tokio::test]
    async fn only_work_of_the_same_owner_waits() {
        let turns = OwnerTurns::new(2);
        let turn = |number| tokio::time::timeout(Duration::from_millis(50), turns.turn(holder(number)));
        let (first, _second) = (turn(1).await.expect("the first"), turn(1).await.expect("the second"));
        assert!(turn(1).await.is_err(), "the third has to wait");
        assert!(turn(2).await.is_ok(), "that of another owner has not");
        drop(first);
        assert!(turn(1).await.is_ok(), "its turn");
        assert!(turn(3).await.is_ok());
        assert_eq!(turns.turns.lock().expect("the turns").len(), 2, "nothing is kept of owners without work, except for the last");
    }
}
