//! Import of heap files. A file is received piece by piece into the store's staging folder, so that memory is bounded by one piece, and gets its
//! name only if it is a heap and its owner has room for it.

use super::{HeapReservation, Heaps};
use crate::error::blocking;
use crate::{Caller, ServiceError, Stores, crash_point};
use heapstead_engine::EngineInfo;
use heapstead_store::records::{NewHeap, NewHeapEngine};
use heapstead_store::{HEADER_BYTES, HeapSigner, HeapStore, HeapStoreError, IncomingHeap};
use heapstead_types::{EngineId, HeapKey, Principal};
use jiff::Timestamp;
use serde::Serialize;

/// How much is received before it is written. If the length of a file is not known, as much room is reserved at once.
const PIECE_BYTES: usize = 256 << 10;

/// The key of a heap that was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ImportedHeap {
    pub heap: HeapKey,
}

/// A heap file that is being imported. Dropping it leaves nothing.
pub struct HeapImport {
    stores: Stores,
    principal: Principal,
    engine: Option<EngineId>,
    reservation: HeapReservation,
    reserved_bytes: u64,
    received_bytes: u64,
    incoming: IncomingHeap,
    piece: Vec<u8>,
}

impl Heaps<'_> {
    /// Begins to import a heap file as `export` returned it. If its engine is not known, the V8 version inside decides when it is used. Reserves room
    /// for the announced length.
    pub async fn begin_import(
        &self,
        caller: &Caller,
        engine: Option<EngineId>,
        announced_bytes: Option<u64>,
    ) -> Result<HeapImport, ServiceError> {
        self.check_may_import(caller)?;
        let reserved_bytes = announced_bytes.unwrap_or_default().saturating_sub(HEADER_BYTES as u64);
        let reservation = self.reserve(&caller.principal, reserved_bytes, None).await?;
        crash_point::pass("import-reserved");
        let store = self.0.heaps.clone();
        Ok(HeapImport {
            stores: self.0.clone(),
            principal: caller.principal.clone(),
            engine,
            reservation,
            reserved_bytes,
            received_bytes: 0,
            incoming: blocking(move || Ok(store.receive()?)).await?,
            piece: Vec::new(),
        })
    }

    /// Imports a heap file that is in memory.
    pub async fn import(&self, caller: &Caller, file: Vec<u8>, engine: Option<EngineId>) -> Result<ImportedHeap, ServiceError> {
        self.begin_import(caller, engine, Some(file.len() as u64)).await?.write(&file).await?.finish().await
    }
}

impl HeapImport {
    /// Appends bytes of the file.
    pub async fn write(mut self, mut bytes: &[u8]) -> Result<Self, ServiceError> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.piece.len()));
            self.piece.extend_from_slice(now);
            bytes = later;
            if self.piece.len() == PIECE_BYTES {
                self = self.flush().await?;
            }
        }
        Ok(self)
    }

    async fn flush(mut self) -> Result<Self, ServiceError> {
        self.received_bytes += self.piece.len() as u64;
        let payload_bytes = self.received_bytes.saturating_sub(HEADER_BYTES as u64);
        if payload_bytes > self.reserved_bytes {
            self.reserved_bytes = payload_bytes;
            self.stores.heaps().grow(&self.principal, &self.reservation, self.reserved_bytes).await?;
        }
        blocking(move || {
            self.incoming.write(&self.piece).map_err(not_a_heap)?;
            self.piece.clear();
            Ok(self)
        })
        .await
    }

    /// The file is complete. From here on the import is carried out even if the caller leaves.
    pub async fn finish(self) -> Result<ImportedHeap, ServiceError> {
        let done = tokio::spawn(async move {
            let HeapImport { stores, principal, engine, reservation, incoming, .. } = self.flush().await?;
            let named = engine.clone();
            let staged = blocking(move || {
                let staged = incoming.finish().map_err(not_a_heap)?;
                engine.iter().try_for_each(|engine| check_written_by(engine, staged.start()))?;
                Ok(staged)
            });
            let staged = staged.await?;
            let (key, bytes) = (staged.key(), staged.payload_bytes());
            let heaps = stores.heaps();
            let (store, signer) = (stores.heaps.for_owner(&principal), heaps.signer().await?);
            // Looked up while the reservation is written, so that the time does not tell whether the file is there.
            let in_store = blocking({
                let (store, signer) = (store.clone(), signer.clone());
                move || Ok(known_engine(&store, &key, &signer)?)
            });
            let (is_named, known) = tokio::join!(heaps.name(&reservation, key, bytes), in_store);
            is_named?;
            crash_point::pass("heap-reserved");
            // The engine that is stored with a file that exists already can't be changed.
            let label = signer.label(&key, known?.or(named.clone()));
            let reservation = blocking(move || Ok(store.store(staged, &label).map(|()| reservation)?)).await?;
            crash_point::pass("import-stored");
            let heap = NewHeap { key, bytes, engine: NewHeapEngine::Named(named), reservation: Some(reservation.id().clone()) };
            stores.records.own_heap(&principal, heap, Timestamp::now()).await?;
            reservation.recorded();
            Ok(ImportedHeap { heap: key })
        });
        done.await.unwrap_or_else(|error| Err(ServiceError::Unavailable(error.to_string())))
    }
}

fn not_a_heap(error: HeapStoreError) -> ServiceError {
    match error {
        HeapStoreError::NotAHeap(defect) => ServiceError::BadInput(format!("`file` is not a heap: {defect}")),
        other => other.into(),
    }
}

/// Checks that the V8 version in a snapshot is that of the engine.
fn check_written_by(engine: &EngineId, payload: &[u8]) -> Result<(), ServiceError> {
    let named = EngineInfo { id: engine.clone(), natives: Vec::new() };
    named.check_payload(payload).map_err(|mismatch| {
        ServiceError::bad_value(
            "engine",
            format!("`{engine}`"),
            format!("the heap itself says that it was written by engine {}", mismatch.heap),
        )
    })
}

/// The engine of a signed heap that exists already.
fn known_engine(store: &HeapStore, key: &HeapKey, signer: &HeapSigner) -> Result<Option<EngineId>, HeapStoreError> {
    match store.describe(key) {
        Ok(heap) => Ok(heap.label.engine.clone().filter(|_| signer.check(key, &heap.label).is_ok())),
        Err(HeapStoreError::NotFound { .. } | HeapStoreError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
