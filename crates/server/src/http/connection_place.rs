//! The place of a TCP connection among those of its port. It counts for its address until a request on it is authenticated, then for the owner:
//! behind a proxy all owners have one address, and the connections of one of them must not take the places of the others.

use super::Problem;
use heapstead_service::Portion;
use heapstead_types::BudgetHolder;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone)]
pub struct ConnectionPlace(Arc<Mutex<Portion>>);

impl ConnectionPlace {
    pub fn new(place: Portion) -> Self {
        Self(Arc::new(Mutex::new(place)))
    }

    /// Counts the connection for this holder from now on.
    pub fn count_for(&self, holder: &BudgetHolder) -> Result<(), Problem> {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        place.reassign(holder).map_err(|_| {
            let count = place.budget().taken_by(holder);
            Problem::busy(format!("{count} connections of yours are open, as many as are left for other owners: close some")).closing()
        })
    }
}
