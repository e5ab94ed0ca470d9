//! A concurrency limit per owner, for operations that occupy a thread: those of one owner wait for each other, and never delay those of
//! another owner.

use heapstead_types::BudgetHolder;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
pub struct OwnerPermits {
    at_once: usize,
    /// One semaphore for each owner with an operation in progress or waiting.
    semaphores: Mutex<HashMap<BudgetHolder, Weak<Semaphore>>>,
}

/// The permit of one operation, held until it is done.
#[derive(Debug)]
pub struct OwnerPermit {
    _permit: Option<OwnedSemaphorePermit>,
}

impl OwnerPermits {
    /// Allows this many concurrent operations per owner.
    pub fn new(at_once: usize) -> Self {
        Self { at_once, semaphores: Mutex::default() }
    }

    pub async fn acquire(&self, holder: BudgetHolder) -> OwnerPermit {
        // A semaphore is never closed.
        OwnerPermit { _permit: self.of(holder).acquire_owned().await.ok() }
    }

    fn of(&self, holder: BudgetHolder) -> Arc<Semaphore> {
        let mut semaphores = self.semaphores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(semaphore) = semaphores.get(&holder).and_then(Weak::upgrade) {
            return semaphore;
        }
        semaphores.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(self.at_once));
        semaphores.insert(holder, Arc::downgrade(&semaphore));
        semaphore
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
        let permits = OwnerPermits::new(2);
        let acquire = |number| tokio::time::timeout(Duration::from_millis(50), permits.acquire(holder(number)));
        let (first, _second) = (acquire(1).await.expect("the first"), acquire(1).await.expect("the second"));
        assert!(acquire(1).await.is_err(), "the third has to wait");
        assert!(acquire(2).await.is_ok(), "that of another owner has not");
        drop(first);
        assert!(acquire(1).await.is_ok(), "it has a permit now");
        assert!(acquire(3).await.is_ok());
        assert_eq!(
            permits.semaphores.lock().expect("the semaphores").len(),
            2,
            "nothing is kept of owners without work, except for the last"
        );
    }
}
