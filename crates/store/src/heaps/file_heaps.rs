//! Heaps as files: `<folder>/<key>`, with the engine's id in `<folder>/.meta/<key>.json`. Several processes may share the folder.

use super::atomic_file::{self, Syncing};
use super::bounded_file::{self, Unread};
use super::heap_file::{self, Defect, HEADER_BYTES, PAYLOAD_BYTES_MAX};
use super::heap_store::{HeapInfo, HeapStore, HeapStoreError, ListedHeap, StoredHeap};
use super::sidecar;
use heapstead_types::{EngineId, HeapKey};
use std::fs;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

const META: &str = ".meta";
const SIDECAR_SUFFIX: &str = ".json";

/// Whose folder it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// For a well-known path where anybody could have put a folder before us.
    Us,
    /// For a path that somebody chose.
    Anyone,
}

#[derive(Debug, Clone)]
pub struct FileHeaps {
    folder: PathBuf,
    syncing: Syncing,
}

impl FileHeaps {
    /// Opens the folder, and makes it if it is missing.
    pub fn open(folder: &Path, owner: Owner) -> Result<Self, HeapStoreError> {
        atomic_file::make_folders(folder)?;
        // Not through a link where it has to be ours: a link may lead anywhere.
        let metadata = match owner {
            Owner::Us => folder.symlink_metadata(),
            Owner::Anyone => folder.metadata(),
        };
        let metadata = metadata.map_err(HeapStoreError::unavailable("read", folder))?;
        if !metadata.is_dir() {
            return Err(HeapStoreError::NotAFolder { path: folder.into() });
        }
        let us = rustix::process::geteuid().as_raw();
        if owner == Owner::Us && metadata.uid() != us {
            return Err(HeapStoreError::ForeignFolder { path: folder.into(), owner: metadata.uid(), us });
        }
        Ok(Self { folder: folder.into(), syncing: Syncing::Always })
    }

    /// The same, for heaps that are kept elsewhere too: nothing is synced.
    pub(super) fn open_as_copies(folder: &Path) -> Result<Self, HeapStoreError> {
        Ok(Self { syncing: Syncing::Never, ..Self::open(folder, Owner::Anyone)? })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes a heap as young as a new one.
    pub(super) fn touch(&self, key: &HeapKey) -> io::Result<()> {
        bounded_file::open(&self.heap_path(key))?.set_modified(SystemTime::now())
    }

    fn heap_path(&self, key: &HeapKey) -> PathBuf {
        self.folder.join(key.to_string())
    }

    fn sidecar_path(&self, key: &HeapKey) -> PathBuf {
        self.folder.join(META).join(sidecar_name(key))
    }

    fn unread_heap(&self, key: &HeapKey) -> impl FnOnce(Unread) -> HeapStoreError {
        let path = self.heap_path(key);
        let damaged = HeapStoreError::damaged(key);
        let error_of_missing = self.missing(key);
        move |unread| match unread {
            Unread::NotAFile => damaged(Defect::NotAFile),
            Unread::TooLong { bytes } => damaged(Defect::TooLong { bytes: bytes.saturating_sub(HEADER_BYTES as u64) }),
            Unread::Failed(error) if error.kind() == ErrorKind::NotFound => error_of_missing(error),
            Unread::Failed(error) => HeapStoreError::unavailable("read", path)(error),
        }
    }

    /// A folder that is gone, as when a disk is not mounted, says nothing about what is in it.
    fn missing(&self, key: &HeapKey) -> impl FnOnce(io::Error) -> HeapStoreError {
        let (folder, key) = (self.folder.clone(), *key);
        move |error| match folder.is_dir() {
            true => HeapStoreError::NotFound { key },
            false => HeapStoreError::unavailable("read in the folder", folder)(error),
        }
    }

    fn read_engine(&self, key: &HeapKey) -> Result<Option<EngineId>, HeapStoreError> {
        let path = self.sidecar_path(key);
        let damaged = |why: String| HeapStoreError::damaged(key)(Defect::Sidecar { why });
        match bounded_file::read(&path, sidecar::BYTES_MAX) {
            Ok(bytes) => sidecar::decode(&bytes).map(Some).map_err(HeapStoreError::damaged(key)),
            Err(Unread::NotAFile) => Err(damaged("it is not a regular file".into())),
            Err(Unread::TooLong { bytes }) => Err(damaged(format!("it has {bytes} bytes"))),
            Err(Unread::Failed(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(Unread::Failed(error)) => Err(HeapStoreError::unavailable("read", path)(error)),
        }
    }

    /// The engine of a heap that was just read. Heaps are removed before their sidecars, so a sidecar that is missing while the heap is there
    /// never was; else the heap is going away, and must not be taken for one whose engine is not known.
    fn engine_of_read(&self, key: &HeapKey) -> Result<Option<EngineId>, HeapStoreError> {
        let engine = self.read_engine(key)?;
        if engine.is_none() {
            bounded_file::open(&self.heap_path(key)).map_err(|error| self.unread_heap(key)(Unread::Failed(error)))?;
        }
        Ok(engine)
    }

    /// Whether the heap is there already, whole: a damaged one is written anew.
    fn holds(&self, key: &HeapKey, payload: &[u8]) -> bool {
        let Ok(file) = bounded_file::read(&self.heap_path(key), HEADER_BYTES + payload.len()) else { return false };
        file.split_at_checked(HEADER_BYTES).is_some_and(|(header, kept)| header == heap_file::header(key) && kept == payload)
    }

    fn write_sidecar(&self, key: &HeapKey, engine: &EngineId) -> Result<(), HeapStoreError> {
        let meta = self.folder.join(META);
        atomic_file::make_folder(&meta)?;
        atomic_file::write(&meta, &sidecar_name(key), &[&sidecar::encode(engine)], self.syncing)
    }

    fn sync(&self) -> Result<(), HeapStoreError> {
        match self.syncing {
            Syncing::Always => atomic_file::sync_folder(&self.folder),
            Syncing::Never => Ok(()),
        }
    }
}

impl HeapStore for FileHeaps {
    fn backend(&self) -> &'static str {
        "folder"
    }

    fn get(&self, key: &HeapKey) -> Result<StoredHeap, HeapStoreError> {
        let file = bounded_file::read(&self.heap_path(key), HEADER_BYTES + PAYLOAD_BYTES_MAX).map_err(self.unread_heap(key))?;
        heap_file::verify(&file, key).map_err(HeapStoreError::damaged(key))?;
        Ok(StoredHeap::verified(file, self.engine_of_read(key)?))
    }

    fn put(&self, key: &HeapKey, payload: &[u8], engine: Option<&EngineId>) -> Result<(), HeapStoreError> {
        heap_file::check_length(payload.len() as u64).map_err(HeapStoreError::NotAHeap)?;
        if self.holds(key, payload) {
            if let Some(engine) = engine
                && !matches!(self.read_engine(key), Ok(Some(known)) if known == *engine)
            {
                self.write_sidecar(key, engine)?;
            }
            // In a folder that can only be read it stays as old as it is.
            let _ = self.touch(key);
            // Another process may have named it a moment ago and not have synced the folder yet.
            return self.sync();
        }
        // First the sidecar: a heap that can be seen can be judged.
        if let Some(engine) = engine {
            self.write_sidecar(key, engine)?;
        }
        atomic_file::write(&self.folder, &key.to_string(), &[&heap_file::header(key), payload], self.syncing)
    }

    fn describe(&self, key: &HeapKey) -> Result<HeapInfo, HeapStoreError> {
        let start = bounded_file::read_start::<HEADER_BYTES>(&self.heap_path(key)).map_err(self.unread_heap(key))?;
        let payload_bytes = heap_file::check_start(&start.bytes, start.file_bytes, key).map_err(HeapStoreError::damaged(key))?;
        Ok(HeapInfo { key: *key, payload_bytes, stored_at: start.modified, engine: self.engine_of_read(key)? })
    }

    fn list(&self, each: &mut dyn FnMut(ListedHeap) -> ControlFlow<()>) -> Result<(), HeapStoreError> {
        let failed = || HeapStoreError::unavailable("list", &self.folder);
        for entry in fs::read_dir(&self.folder).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let Some(key) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let metadata = match entry.metadata() {
                Ok(metadata) if metadata.is_file() => metadata,
                Ok(_not_a_heap) => continue,
                // Removed meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(failed()(error)),
            };
            let stored_at = metadata.modified().map_err(failed())?;
            let payload_bytes = metadata.len().saturating_sub(HEADER_BYTES as u64);
            if each(ListedHeap { key, payload_bytes, stored_at }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn remove(&self, key: &HeapKey) -> Result<(), HeapStoreError> {
        // First the heap, and for good: a sidecar without a heap is harmless, a heap without its sidecar can't be judged.
        let path = self.heap_path(key);
        match fs::remove_file(&path) {
            Ok(()) => self.sync()?,
            Err(error) if error.kind() == ErrorKind::NotFound => match self.missing(key)(error) {
                HeapStoreError::NotFound { .. } => {}
                gone => return Err(gone),
            },
            Err(error) => return Err(HeapStoreError::unavailable("remove", path)(error)),
        }
        let path = self.sidecar_path(key);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(HeapStoreError::unavailable("remove", path)(error)),
            _ => Ok(()),
        }
    }

    fn tidy(&self) -> Result<(), HeapStoreError> {
        atomic_file::sweep(&self.folder, |_| false)?;
        let meta = self.folder.join(META);
        match meta.is_dir() {
            true => atomic_file::sweep(&meta, |name| {
                let key = name.strip_suffix(SIDECAR_SUFFIX).and_then(|key| key.parse().ok());
                key.is_some_and(|key| matches!(self.heap_path(&key).try_exists(), Ok(false)))
            }),
            false => Ok(()),
        }
    }

    fn check(&self) -> Result<(), HeapStoreError> {
        atomic_file::probe(&self.folder)
    }

    fn until(&self, _: Instant) -> Arc<dyn HeapStore> {
        Arc::new(self.clone())
    }
}

fn sidecar_name(key: &HeapKey) -> String {
    format!("{key}{SIDECAR_SUFFIX}")
}
