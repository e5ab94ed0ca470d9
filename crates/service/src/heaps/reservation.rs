//! Room for a heap that is being stored, from before its first byte gets a name until a record names it. `store/src/records/heap_reservations.rs`
//! describes the states of a heap file.

use super::removal;
use super::{HeapCache, Heaps};
use crate::executions::RETRY_PAUSE;
use crate::{ServiceError, Stores};
use heapstead_engine::HeapImage;
use heapstead_store::RecordsError;
use heapstead_store::peers::Question;
use heapstead_store::records::{
    NewHeap, NewHeapEngine, NewReservation, Released, Removal, Reservation, ReservationId, Reserved, ReservedHeap,
};
use heapstead_types::{ErrorCode, HeapKey, Principal};
use jiff::{SignedDuration, Timestamp};
use tokio::runtime::Handle;

/// Object stores report times in whole seconds, of another clock.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(60);

/// A reservation of this process. Unless a record has taken its place, dropping it releases it, and removes the file if nothing else names the
/// heap. Whoever writes the file holds it until the write has ended.
pub struct HeapReservation {
    stores: Stores,
    id: ReservationId,
    runtime: Handle,
    is_recorded: bool,
}

impl HeapReservation {
    pub fn id(&self) -> &ReservationId {
        &self.id
    }

    /// A record has taken its place.
    pub fn recorded(mut self) {
        self.is_recorded = true;
    }
}

impl Drop for HeapReservation {
    fn drop(&mut self) {
        if self.is_recorded {
            return;
        }
        let (stores, id) = (self.stores.clone(), self.id.clone());
        // If the runtime is shutting down, the next server finds a reservation of a server that died.
        self.runtime.spawn(async move {
            while let Err(error) = release(&stores, &id, None).await {
                tracing::warn!(%error, "the reservation of a heap can't be released");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        });
    }
}

impl Heaps<'_> {
    /// Stores a heap that this engine has produced. The caller records it, with its reservation.
    pub(crate) async fn store_produced(
        &self,
        heaps: &HeapCache,
        principal: &Principal,
        image: HeapImage,
    ) -> Result<(NewHeap, HeapReservation), ServiceError> {
        let bytes = image.length();
        let reservation = self.reserve_for(principal, image.key(), bytes).await?;
        let stored = heaps.store_reserved(image, reservation).await;
        let (key, reservation) = stored.map_err(|failure| ServiceError::Unavailable(failure.to_string()))?;
        let engine = NewHeapEngine::Produced(heaps.engine_id().clone());
        Ok((NewHeap { key, bytes, engine, reservation: Some(reservation.id().clone()) }, reservation))
    }

    /// Reserves room for a heap. An error if the quota of its owner would be exceeded.
    pub(crate) async fn reserve(
        &self,
        principal: &Principal,
        bytes: u64,
        heap: Option<ReservedHeap>,
    ) -> Result<HeapReservation, ServiceError> {
        let id = ReservationId::new();
        let new = NewReservation { id: id.clone(), principal: principal.clone(), bytes, heap, at: Timestamp::now() };
        // From here on: the caller may stop waiting while the reservation is written.
        let reservation = HeapReservation { stores: self.0.clone(), id, runtime: Handle::current(), is_recorded: false };
        self.settled(|| self.0.records.reserve_heap(new.clone(), self.0.policy.quotas.heap_bytes_max)).await?;
        Ok(reservation)
    }

    /// As `reserve`, for a heap whose key is known.
    pub(crate) async fn reserve_for(&self, principal: &Principal, key: HeapKey, bytes: u64) -> Result<HeapReservation, ServiceError> {
        let is_new = self.is_new(key).await?;
        self.reserve(principal, bytes, Some(ReservedHeap { key, is_new })).await
    }

    /// Changes the size of a reservation whose heap is not known yet.
    pub(crate) async fn grow(&self, principal: &Principal, reservation: &HeapReservation, bytes: u64) -> Result<(), ServiceError> {
        let max = self.0.policy.quotas.heap_bytes_max;
        self.settled(|| self.0.records.grow_reservation(principal, &reservation.id, bytes, max)).await
    }

    /// Sets the heap of a reservation.
    pub(crate) async fn name(&self, reservation: &HeapReservation, key: HeapKey, bytes: u64) -> Result<(), ServiceError> {
        let heap = ReservedHeap { key, is_new: self.is_new(key).await? };
        self.settled(|| self.0.records.name_reservation(&reservation.id, heap, bytes)).await
    }

    async fn is_new(&self, key: HeapKey) -> Result<Option<bool>, ServiceError> {
        let store = self.0.heaps.clone();
        crate::error::blocking(move || Ok(store.is_new(&key)?)).await
    }

    /// Repeats an attempt until the heap is not being removed.
    async fn settled<F: Future<Output = Result<Reserved, RecordsError>>>(&self, attempt: impl Fn() -> F) -> Result<(), ServiceError> {
        loop {
            match attempt().await? {
                Reserved::Done => return Ok(()),
                Reserved::QuotaExceeded => return Err(heap_quota_exceeded(self.0.policy.quotas.heap_bytes_max)),
                Reserved::StorageQuotaExceeded => return Err(storage_quota_exceeded(self.0.policy.quotas.stored_bytes_max)),
                Reserved::Gone => return Err(ServiceError::Unavailable("another server took this one for dead".into())),
                Reserved::BeingRemoved(removal) => self.wait_for(&removal).await?,
            }
        }
    }

    /// Waits until an attempt to remove a heap is over, here or on another server.
    async fn wait_for(&self, removal: &Removal) -> Result<(), ServiceError> {
        let Some(server) = &removal.server else { return Ok(()) };
        let is_over = if server == self.0.peers.server() {
            drop(self.0.removing.lock().await);
            true
        } else if self.0.peers.is_alive(server) {
            self.0.peers.ask(server, &Question::RemovalOver).await.is_ok()
        } else {
            true
        };
        match is_over {
            // If its row is still there, it failed, or its server died: the heap may be stored again.
            true => Ok(self.0.records.give_up_removal(removal).await?),
            false => {
                tokio::time::sleep(RETRY_PAUSE).await;
                Ok(())
            }
        }
    }
}

fn heap_quota_exceeded(bytes_max: Option<u64>) -> ServiceError {
    let mb = bytes_max.unwrap_or_default() >> 20;
    let text = format!("your heaps would take up more than {mb} MB, which is as much as an owner may have: delete or collect old ones");
    ServiceError::busy(ErrorCode::HeapQuotaExceeded, text)
}

fn storage_quota_exceeded(bytes_max: Option<u64>) -> ServiceError {
    let mb = bytes_max.unwrap_or_default() >> 20;
    let text = format!(
        "with this heap you would have more than {mb} MB stored, which is as much as an owner may have: delete executions, sessions, heaps, \
         tags or contexts"
    );
    ServiceError::busy(ErrorCode::StorageQuotaExceeded, text)
}

/// Releases a reservation, and removes the file if nothing else names the heap.
async fn release(stores: &Stores, id: &ReservationId, is_new: Option<bool>) -> Result<(), ServiceError> {
    let (owned, id) = (stores.clone(), id.clone());
    removal::alone(stores, async move {
        match owned.records.release_reservation(&id, is_new).await? {
            Released::Removing(removal) => removal::carry_out(&owned, removal).await,
            // One that is undecided is left to the next sweep: the store may not answer now.
            Released::Done | Released::Undecided(_) => Ok(()),
        }
    })
    .await
}

/// Releases the reservations of servers that died, and those that could not be decided before.
pub(crate) async fn release_orphans(stores: &Stores) -> Result<(), ServiceError> {
    for reservation in stores.records.reservations().await? {
        if !reservation.server.as_ref().is_some_and(|server| stores.peers.is_alive(server)) {
            release_orphan(stores, &reservation).await;
        }
    }
    Ok(())
}

/// Releases a reservation that no server holds. If that can't be decided yet, a later sweep tries it again.
pub(super) async fn release_orphan(stores: &Stores, reservation: &Reservation) {
    let is_new = match &reservation.server {
        Some(_) => Ok(None),
        None => is_new(stores, reservation).await,
    };
    let released = match is_new {
        Ok(is_new) => release(stores, &reservation.id, is_new).await,
        Err(error) => Err(error),
    };
    if let Err(error) = released {
        tracing::warn!(%error, "the reservation of a heap can't be released");
    }
}

/// Whether the file of a heap is there because of a reservation that was given up. None if that can't be decided yet: if the store does not tell
/// whether a file is new, it may be another database's. Then it is removed only when it is past the retention of heaps, and counts for its
/// owner until then.
async fn is_new(stores: &Stores, reservation: &Reservation) -> Result<Option<bool>, ServiceError> {
    let Some(key) = reservation.key else { return Ok(Some(false)) };
    Ok(match removal::stored_at(stores, key).await? {
        None => Some(false),
        Some(stored_at) if stored_at < reservation.created_at - CLOCK_TOLERANCE => Some(false),
        Some(stored_at) if stored_at < removal::since(stores) => Some(true),
        Some(_) => None,
    })
}
