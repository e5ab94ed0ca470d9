//! The place of a TCP connection among those of its port. It counts for its address until a request on it is authenticated, then for the owner:
//! behind a proxy all owners have one address, and the connections of one of them must not take the places of the others.
//!
//! A connection on which no request was authenticated yet has its place only as long as nobody else needs it: if there is none for a new
//! connection, the oldest such one is closed. So connections that send nothing keep nobody out, however many they are.

use super::Problem;
use heapstead_service::{Budget, Exhausted, Portion};
use heapstead_types::BudgetHolder;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio_util::sync::CancellationToken;

/// The places of a port.
pub struct ConnectionPlaces {
    places: Arc<Budget>,
    waiting: Arc<Waiting>,
}

/// Connections without an authenticated request, the oldest first.
#[derive(Default)]
struct Waiting(Mutex<(u64, BTreeMap<u64, Weak<Held>>)>);

#[derive(Clone)]
pub struct ConnectionPlace(Arc<Held>);

struct Held {
    number: u64,
    address: BudgetHolder,
    state: Mutex<State>,
    closed: CancellationToken,
    waiting: Arc<Waiting>,
}

enum State {
    Waiting(Portion),
    Authenticated(Portion),
    /// Its place was given to another connection.
    Closed,
}

impl ConnectionPlaces {
    pub fn new(connections_max: u64) -> Self {
        Self { places: Budget::new(connections_max), waiting: Arc::default() }
    }

    /// A place for a connection from this address.
    pub fn take(&self, address: IpAddr) -> Result<ConnectionPlace, String> {
        let address = BudgetHolder::network(address);
        let taken = self.places.take(address.clone(), 1).or_else(|exhausted| self.take_over(&address, exhausted));
        let portion = taken.map_err(|exhausted| match exhausted {
            Exhausted::ByAll => format!("{} connections are open, which is the maximum", self.places.total()),
            Exhausted::ByHolder => {
                let count = self.places.taken_by(&address);
                format!("{count} connections from your address are open, as many as are left for others")
            }
        })?;
        Ok(ConnectionPlace(self.waiting.add(address, portion)))
    }

    /// The place of the oldest connection without an authenticated request: of this address, if it has as many as it may.
    fn take_over(&self, address: &BudgetHolder, exhausted: Exhausted) -> Result<Portion, Exhausted> {
        let is_eligible = |held: &Arc<Held>| exhausted == Exhausted::ByAll || held.address == *address;
        let mut portion = self.waiting.oldest().filter(is_eligible).find_map(|held| held.close()).ok_or(exhausted)?;
        portion.reassign(address)?;
        Ok(portion)
    }
}

impl Waiting {
    fn add(self: &Arc<Self>, address: BudgetHolder, portion: Portion) -> Arc<Held> {
        let mut waiting = self.lock();
        waiting.0 += 1;
        let (number, state) = (waiting.0, Mutex::new(State::Waiting(portion)));
        let held = Arc::new(Held { number, address, state, closed: CancellationToken::new(), waiting: self.clone() });
        waiting.1.insert(number, Arc::downgrade(&held));
        held
    }

    fn remove(&self, number: u64) {
        self.lock().1.remove(&number);
    }

    fn oldest(&self) -> impl Iterator<Item = Arc<Held>> {
        // Collected, because closing one needs the lock again.
        let held: Vec<_> = self.lock().1.values().filter_map(Weak::upgrade).collect();
        held.into_iter()
    }

    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Weak<Held>>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection and returns its place, unless a request on it was authenticated.
    fn close(&self) -> Option<Portion> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Closed) {
            State::Waiting(portion) => {
                self.closed.cancel();
                Some(portion)
            }
            other => {
                *state = other;
                None
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.waiting.remove(self.number);
    }
}

impl ConnectionPlace {
    /// Returns when the connection has to close, because another one needs its place.
    pub async fn closed(&self) {
        self.0.closed.cancelled().await;
    }

    /// Counts the connection for this holder from now on: a request on it was authenticated.
    pub fn count_for(&self, holder: &BudgetHolder) -> Result<(), Problem> {
        let mut state = self.0.state();
        let (mut portion, was_waiting) = match std::mem::replace(&mut *state, State::Closed) {
            State::Waiting(portion) => (portion, true),
            State::Authenticated(portion) => (portion, false),
            State::Closed => {
                return Err(Problem::busy("the connection is being closed, because others need its place: connect again").closing());
            }
        };
        let counted = portion.reassign(holder).map_err(|_| {
            let count = portion.budget().taken_by(holder);
            Problem::busy(format!("{count} connections of yours are open, as many as are left for other owners: close some")).closing()
        });
        *state = if was_waiting && counted.is_err() { State::Waiting(portion) } else { State::Authenticated(portion) };
        drop(state);
        if was_waiting && counted.is_ok() {
            self.0.waiting.remove(self.0.number);
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn owner(number: u8) -> BudgetHolder {
        BudgetHolder::network([10, 1, 0, number].into())
    }

    fn is_closed(place: &ConnectionPlace) -> bool {
        place.0.closed.is_cancelled()
    }

    /// Regression: idle connections from an address took all its places, and every tenant at that address was refused.
    #[test]
    fn the_oldest_connection_without_a_request_makes_room() {
        let places = ConnectionPlaces::new(8);
        let mut idle: Vec<_> = (0..4).map(|_| places.take(ADDRESS).expect("a place")).collect();
        let authenticated = idle.remove(0);
        authenticated.count_for(&owner(1)).unwrap_or_else(|_| panic!("its owner has room"));
        let mut newer: Vec<_> = (0..20).map(|_| places.take(ADDRESS).expect("a place")).collect();
        assert!(idle.iter().all(is_closed) && !is_closed(&authenticated));
        let last = newer.pop().expect("the last");
        assert!(!is_closed(&last));
        last.count_for(&owner(2)).unwrap_or_else(|_| panic!("its owner has room"));
        assert!(newer[0].count_for(&owner(3)).is_err(), "it is being closed");
        drop((idle, newer, authenticated, last));
        assert!(places.waiting.lock().1.is_empty(), "nothing is kept of connections that have ended");
        assert_eq!(places.places.taken_by(&BudgetHolder::network(ADDRESS)), 0);
    }

    #[test]
    fn authenticated_connections_are_not_closed() {
        let places = ConnectionPlaces::new(8);
        let kept: Vec<_> = std::iter::from_fn(|| {
            let place = places.take(ADDRESS).ok()?;
            place.count_for(&BudgetHolder::network(ADDRESS)).ok().map(|()| place)
        })
        .collect();
        assert_eq!(kept.len(), 4);
        let refused = places.take(ADDRESS).err().expect("no place");
        assert!(refused.contains("4 connections from your address"), "{refused}");
        assert!(!kept.iter().any(is_closed));
    }
}
