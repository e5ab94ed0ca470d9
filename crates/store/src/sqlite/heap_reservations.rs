//! Reservations and removals of heaps in SQLite.

use super::columns::{heap_key, optional_server_id, timestamp};
use super::{Durability, Sqlite, heaps, owners};
use crate::records::{
    HeapReservationRecords, NewReservation, RecordsError, Released, Removal, Reservation, ReservationId, Reserved, ReservedHeap,
};
use async_trait::async_trait;
use heapstead_types::{HeapKey, Principal, ServerId};
use rusqlite::{Connection, OptionalExtension, Row, params};

#[async_trait]
impl HeapReservationRecords for Sqlite {
    async fn reserve_heap(&self, new: NewReservation, bytes_max: Option<u64>) -> Result<Reserved, RecordsError> {
        let (server, stored_max) = (self.server().clone(), self.stored_bytes_max_of(&new.principal).await);
        self.write(Durability::Process, move |db| {
            if !owners::has_storage_for(db, new.principal.as_str(), new.bytes, stored_max)? {
                return Ok(Reserved::StorageQuotaExceeded);
            }
            reserve(db, &new, bytes_max, &server)
        })
        .await
    }

    async fn grow_reservation(
        &self,
        principal: &Principal,
        id: &ReservationId,
        bytes: u64,
        bytes_max: Option<u64>,
    ) -> Result<Reserved, RecordsError> {
        let (id, stored_max) = (id.clone(), self.stored_bytes_max_of(principal).await);
        self.write(Durability::Process, move |db| {
            let Some((principal, has)) = owner_and_size(db, &id)? else { return Ok(Reserved::Gone) };
            let more = bytes.saturating_sub(has);
            if !owners::has_room_for(db, &principal, more, bytes_max)? {
                return Ok(Reserved::QuotaExceeded);
            }
            if !owners::has_storage_for(db, &principal, more, stored_max)? {
                return Ok(Reserved::StorageQuotaExceeded);
            }
            db.prepare_cached("UPDATE heap_reservations SET bytes = ? WHERE id = ?")?.execute(params![bytes as i64, id.as_str()])?;
            Ok(Reserved::Done)
        })
        .await
    }

    async fn name_reservation(&self, id: &ReservationId, heap: ReservedHeap, bytes: u64) -> Result<Reserved, RecordsError> {
        let id = id.clone();
        self.write(Durability::Process, move |db| {
            let Some((principal, has)) = owner_and_size(db, &id)? else { return Ok(Reserved::Gone) };
            let is_ours = match adopt_removal(db, &heap)? {
                Ok(is_ours) => is_ours,
                Err(removal) => return Ok(Reserved::BeingRemoved(removal)),
            };
            let bytes = if owns(db, &principal, &heap.key)? { 0 } else { bytes.min(has) };
            db.prepare_cached("UPDATE heap_reservations SET key = ?, ours = ?, bytes = ? WHERE id = ?")?.execute(params![
                heap.key.to_string(),
                is_ours,
                bytes as i64,
                id.as_str()
            ])?;
            Ok(Reserved::Done)
        })
        .await
    }

    async fn release_reservation(&self, id: &ReservationId, is_new: Option<bool>) -> Result<Released, RecordsError> {
        let (id, server) = (id.clone(), self.server().clone());
        self.write(Durability::Process, move |db| release(db, &id, is_new, &server)).await
    }

    async fn reservations(&self) -> Result<Vec<Reservation>, RecordsError> {
        self.read(|db| {
            db.prepare_cached("SELECT id, key, process, created_at FROM heap_reservations")?.query_map([], read_reservation)?.collect()
        })
        .await
    }

    async fn remove_unowned_heap(&self, key: HeapKey) -> Result<Option<Removal>, RecordsError> {
        let server = self.server().clone();
        self.write(Durability::Process, move |db| begin_removal_if_last(db, &key, true, &server)).await
    }

    async fn removals(&self) -> Result<Vec<Removal>, RecordsError> {
        self.read(|db| {
            db.prepare_cached("SELECT id, key, only_old, process FROM heap_removals ORDER BY id")?.query_map([], read_removal)?.collect()
        })
        .await
    }

    async fn take_over_removal(&self, removal: &Removal) -> Result<Option<Removal>, RecordsError> {
        let (removal, server) = (removal.clone(), self.server().clone());
        self.write(Durability::Process, move |db| {
            if !delete_removal(db, &removal)? {
                return Ok(None);
            }
            insert_removal(db, &removal.key, removal.only_old, Some(&server)).map(Some)
        })
        .await
    }

    async fn end_removal(&self, removal: &Removal) -> Result<(), RecordsError> {
        let removal = removal.clone();
        self.write(Durability::Process, move |db| delete_removal(db, &removal).map(drop)).await
    }

    async fn give_up_removal(&self, removal: &Removal) -> Result<(), RecordsError> {
        let id = removal.id;
        self.write(Durability::Process, move |db| {
            db.prepare_cached("UPDATE heap_removals SET process = NULL WHERE id = ?")?.execute([id]).map(drop)
        })
        .await
    }
}

fn reserve(db: &Connection, new: &NewReservation, bytes_max: Option<u64>, server: &ServerId) -> rusqlite::Result<Reserved> {
    let (mut bytes, mut is_ours) = (new.bytes, None);
    if let Some(heap) = &new.heap {
        is_ours = match adopt_removal(db, heap)? {
            Ok(is_ours) => is_ours,
            Err(removal) => return Ok(Reserved::BeingRemoved(removal)),
        };
        if owns(db, new.principal.as_str(), &heap.key)? {
            bytes = 0;
        }
    }
    if !owners::has_room_for(db, new.principal.as_str(), bytes, bytes_max)? {
        return Ok(Reserved::QuotaExceeded);
    }
    db.prepare_cached("INSERT INTO heap_reservations (id, principal, key, bytes, ours, process, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)")?
        .execute(params![
            new.id.as_str(),
            new.principal.as_str(),
            new.heap.map(|heap| heap.key.to_string()),
            bytes as i64,
            is_ours,
            server.as_str(),
            new.at.as_microsecond(),
        ])?;
    Ok(Reserved::Done)
}

fn release(db: &Connection, id: &ReservationId, is_new: Option<bool>, server: &ServerId) -> rusqlite::Result<Released> {
    let found = db
        .prepare_cached("SELECT id, key, process, created_at, ours FROM heap_reservations WHERE id = ?")?
        .query_row([id.as_str()], |row| Ok((read_reservation(row)?, row.get::<_, Option<bool>>(4)?)))
        .optional()?;
    let Some((reservation, is_ours)) = found else { return Ok(Released::Done) };
    let is_ours = is_new.or(is_ours);
    let Some(key) = reservation.key else { return delete_reservation(db, id).map(|()| Released::Done) };
    let named_by = db
        .prepare_cached("SELECT 1 FROM heaps WHERE key = ?1 UNION ALL SELECT 1 FROM heap_reservations WHERE key = ?1 AND id <> ?2")?
        .exists(params![key.to_string(), id.as_str()])?;
    if !named_by && is_ours.is_none() {
        db.prepare_cached("UPDATE heap_reservations SET process = NULL WHERE id = ?")?.execute([id.as_str()])?;
        return Ok(Released::Undecided(Reservation { server: None, ..reservation }));
    }
    delete_reservation(db, id)?;
    if is_ours != Some(true) {
        return Ok(Released::Done);
    }
    Ok(begin_removal_if_last(db, &key, false, server)?.map_or(Released::Done, Released::Removing))
}

/// Begins to remove the file of a heap from which a name was taken, unless something else names it. A reservation that does is then
/// responsible for the file.
pub fn begin_removal_if_last(db: &Connection, key: &HeapKey, only_old: bool, server: &ServerId) -> rusqlite::Result<Option<Removal>> {
    db.prepare_cached("UPDATE heap_reservations SET ours = 1 WHERE key = ?")?.execute([key.to_string()])?;
    match heaps::is_named(db, key)? {
        true => Ok(None),
        false => insert_removal(db, key, only_old, Some(server)).map(Some),
    }
}

/// What `ours` of a reservation is if it took the place of a removal of a file that may be another database's.
pub const ADOPTED: i64 = 2;

/// A removal that nobody is carrying out ends when its heap is stored again. Returns whether the new reservation is responsible for the file.
fn adopt_removal(db: &Connection, heap: &ReservedHeap) -> rusqlite::Result<Result<Option<i64>, Removal>> {
    let removal = db
        .prepare_cached("SELECT id, key, only_old, process FROM heap_removals WHERE key = ?")?
        .query_row([heap.key.to_string()], read_removal)
        .optional()?;
    Ok(match removal {
        None => Ok(heap.is_new.map(i64::from)),
        Some(removal) if removal.server.is_some() => Err(removal),
        Some(removal) => {
            delete_removal(db, &removal)?;
            Ok(Some(if removal.only_old && heap.is_new != Some(true) { ADOPTED } else { 1 }))
        }
    })
}

/// Without a server, the removal is taken over by the first one that tries.
pub fn insert_removal(db: &Connection, key: &HeapKey, only_old: bool, server: Option<&ServerId>) -> rusqlite::Result<Removal> {
    db.prepare_cached("INSERT INTO heap_removals (key, only_old, process) VALUES (?, ?, ?)")?.execute(params![
        key.to_string(),
        only_old,
        server.map(ServerId::as_str)
    ])?;
    Ok(Removal { id: db.last_insert_rowid(), key: *key, only_old, server: server.cloned() })
}

fn delete_removal(db: &Connection, removal: &Removal) -> rusqlite::Result<bool> {
    Ok(db.prepare_cached("DELETE FROM heap_removals WHERE id = ?")?.execute([removal.id])? > 0)
}

fn delete_reservation(db: &Connection, id: &ReservationId) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM heap_reservations WHERE id = ?")?.execute([id.as_str()]).map(drop)
}

fn owner_and_size(db: &Connection, id: &ReservationId) -> rusqlite::Result<Option<(String, u64)>> {
    db.prepare_cached("SELECT principal, bytes FROM heap_reservations WHERE id = ?")?
        .query_row([id.as_str()], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.max(0) as u64)))
        .optional()
}

fn owns(db: &Connection, principal: &str, key: &HeapKey) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM heaps WHERE principal = ? AND key = ?")?.exists(params![principal, key.to_string()])
}

fn read_reservation(row: &Row<'_>) -> rusqlite::Result<Reservation> {
    Ok(Reservation {
        id: ReservationId::stored(row.get(0)?),
        key: heap_key(row, 1)?,
        server: optional_server_id(row, 2)?,
        created_at: timestamp(row, 3)?,
    })
}

fn read_removal(row: &Row<'_>) -> rusqlite::Result<Removal> {
    Ok(Removal {
        id: row.get(0)?,
        key: heap_key(row, 1)?.ok_or(rusqlite::Error::InvalidQuery)?,
        only_old: row.get(2)?,
        server: optional_server_id(row, 3)?,
    })
}
