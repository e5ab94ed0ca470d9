//! Reservations of heaps that are being stored, and removals of their files. Together they make sure that every heap file has a name in the
//! database, whichever process dies when:
//!
//! ```text
//! reserve ─► store the file ─► record the heap (the reservation ends in the same transaction)
//!    └─────► release: if nothing else names the heap, it becomes a removal
//! collect or delete the last record of a heap ─► it becomes a removal
//! removal ─► remove the file ─► end the removal
//! ```
//! A heap with a removal can't be reserved: whoever wants to store it waits for the removal. A heap with a reservation can't become a removal.
//! So a file is never removed after it was stored for a record. Both hold between processes, because they are decided in transactions.
//!
//! A reservation survives the death of its process, not a power failure: it is not synced before the file gets its name. The file of a
//! run that was storing when the power failed may therefore stay without a record; it looks like a heap of another server on the same store,
//! and is collected like those.

use super::RecordsError;
use async_trait::async_trait;
use heapstead_types::{HeapKey, Principal, ServerId};
use jiff::Timestamp;
use std::fmt;
use uuid::Uuid;

/// 32 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReservationId(String);

impl ReservationId {
    pub fn new() -> Self {
        Self(Uuid::new_v4().simple().to_string())
    }

    pub(crate) fn stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ReservationId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for ReservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Room for a heap, for as long as it is being stored.
#[derive(Debug, Clone)]
pub struct NewReservation {
    pub id: ReservationId,
    pub principal: Principal,
    pub bytes: u64,
    /// None if the key is not known yet.
    pub heap: Option<ReservedHeap>,
    pub at: Timestamp,
}

/// The heap of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReservedHeap {
    pub key: HeapKey,
    /// Whether the store had no such file. None if that is not known.
    pub is_new: Option<bool>,
}

/// Result of reserving, growing or naming.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    Done,
    /// The heaps of the owner would take up more than their quota. Nothing was written.
    QuotaExceeded,
    /// All that the owner has stored would exceed its quota. Nothing was written.
    StorageQuotaExceeded,
    /// The file of this heap is being removed. Nothing was written.
    BeingRemoved(Removal),
    /// There is no such reservation: another server took this one for dead.
    Gone,
}

/// One attempt to remove the file of a heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    pub id: i64,
    pub key: HeapKey,
    /// Whether a file that was stored within the retention of heaps stays: another database may have it.
    pub only_old: bool,
    /// The server that is removing it. None if it has to be tried again.
    pub server: Option<ServerId>,
}

/// Result of releasing a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    /// There is nothing more to do.
    Done,
    /// The file has to be removed by this server.
    Removing(Removal),
    /// It is not known whether there is a file to remove: the reservation stays, without a server, until it is released with an answer.
    Undecided(Reservation),
}

/// A reservation as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    pub id: ReservationId,
    pub key: Option<HeapKey>,
    /// None if its server gave it up.
    pub server: Option<ServerId>,
    pub created_at: Timestamp,
}

#[async_trait]
pub trait HeapReservationRecords: Send + Sync {
    /// Reserves room for a heap in the quota of its owner, on this server. A heap that the owner has already takes no further room.
    async fn reserve_heap(&self, new: NewReservation, bytes_max: Option<u64>) -> Result<Reserved, RecordsError>;

    /// Changes the size of a reservation of this owner.
    async fn grow_reservation(
        &self,
        principal: &Principal,
        id: &ReservationId,
        bytes: u64,
        bytes_max: Option<u64>,
    ) -> Result<Reserved, RecordsError>;

    /// Sets the heap of a reservation, and its size, which must not have grown.
    async fn name_reservation(&self, id: &ReservationId, heap: ReservedHeap, bytes: u64) -> Result<Reserved, RecordsError>;

    /// Ends a reservation without a record. `is_new` replaces what was not known when it was made. Idempotent.
    async fn release_reservation(&self, id: &ReservationId, is_new: Option<bool>) -> Result<Released, RecordsError>;

    /// All reservations.
    async fn reservations(&self) -> Result<Vec<Reservation>, RecordsError>;

    /// Removes the file of a heap that is not in this database. None if it is, by now.
    async fn remove_unowned_heap(&self, key: HeapKey) -> Result<Option<Removal>, RecordsError>;

    /// All removals.
    async fn removals(&self) -> Result<Vec<Removal>, RecordsError>;

    /// Makes this server the one that tries a removal again. None if it has ended, or another server was faster.
    async fn take_over_removal(&self, removal: &Removal) -> Result<Option<Removal>, RecordsError>;

    /// The file is gone. Idempotent.
    async fn end_removal(&self, removal: &Removal) -> Result<(), RecordsError>;

    /// The attempt is over and the file may still be there. Idempotent.
    async fn give_up_removal(&self, removal: &Removal) -> Result<(), RecordsError>;
}
