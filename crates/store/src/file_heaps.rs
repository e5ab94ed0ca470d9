//! Heaps as files: `<folder>/<key>`, with the engine's id in `<folder>/.meta/<key>.json`. Several processes may share the folder.

use crate::heap_file::{self, Defect, HEADER_BYTES, PAYLOAD_BYTES_MAX};
use crate::{HeapStore, HeapStoreError, StoredHeap, atomic_file, sidecar};
use heapstead_types::{EngineId, HeapKey};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const META: &str = ".meta";

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
}

impl FileHeaps {
    /// Opens the folder, and makes it if it is missing.
    pub fn open(folder: &Path, owner: Owner) -> Result<Self, HeapStoreError> {
        atomic_file::make_folder(folder)?;
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
        Ok(Self { folder: folder.into() })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether heaps could be put here now.
    pub fn check_writable(&self) -> Result<(), HeapStoreError> {
        atomic_file::probe(&self.folder)
    }

    fn heap_path(&self, key: &HeapKey) -> PathBuf {
        self.folder.join(key.to_string())
    }

    fn sidecar_path(&self, key: &HeapKey) -> PathBuf {
        self.folder.join(META).join(sidecar_name(key))
    }

    fn read_heap(&self, key: &HeapKey) -> Result<Vec<u8>, HeapStoreError> {
        let path = self.heap_path(key);
        match read_bounded(&path, HEADER_BYTES + PAYLOAD_BYTES_MAX) {
            Ok(file) => Ok(file),
            Err(Unread::NotAFile) => Err(HeapStoreError::Damaged { key: *key, defect: Defect::NotAFile }),
            Err(Unread::TooLong { bytes }) => {
                Err(HeapStoreError::Damaged { key: *key, defect: Defect::TooLong { bytes: bytes - HEADER_BYTES as u64 } })
            }
            // A folder that is gone, as when a disk is not mounted, says nothing about what is in it.
            Err(Unread::Failed(error)) if error.kind() == ErrorKind::NotFound && self.folder.is_dir() => {
                Err(HeapStoreError::NotFound { key: *key })
            }
            Err(Unread::Failed(error)) => Err(HeapStoreError::unavailable("read", path)(error)),
        }
    }

    fn read_engine(&self, key: &HeapKey) -> Result<Option<EngineId>, HeapStoreError> {
        let path = self.sidecar_path(key);
        let damaged = |defect| HeapStoreError::Damaged { key: *key, defect };
        match read_bounded(&path, sidecar::BYTES_MAX) {
            Ok(bytes) => sidecar::decode(&bytes).map(Some).map_err(damaged),
            Err(Unread::NotAFile) => Err(damaged(Defect::Sidecar { why: "it is not a regular file".into() })),
            Err(Unread::TooLong { bytes }) => Err(damaged(Defect::Sidecar { why: format!("it has {bytes} bytes") })),
            Err(Unread::Failed(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(Unread::Failed(error)) => Err(HeapStoreError::unavailable("read", path)(error)),
        }
    }

    /// Whether the heap is there already, by its header and length: enough to tell it from a damaged one in almost every case, at no cost.
    fn holds(&self, key: &HeapKey, payload_bytes: usize) -> bool {
        let Ok(mut file) = open(&self.heap_path(key)) else { return false };
        let whole = file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == (HEADER_BYTES + payload_bytes) as u64);
        let mut header = [0; HEADER_BYTES];
        whole && file.read_exact(&mut header).is_ok() && header == heap_file::header(key)
    }

    fn write_sidecar(&self, key: &HeapKey, engine: &EngineId) -> Result<(), HeapStoreError> {
        let meta = self.folder.join(META);
        atomic_file::make_folder(&meta)?;
        atomic_file::write(&meta, &sidecar_name(key), &[&sidecar::encode(engine)])
    }
}

impl HeapStore for FileHeaps {
    fn get(&self, key: &HeapKey) -> Result<StoredHeap, HeapStoreError> {
        let file = self.read_heap(key)?;
        heap_file::verify(&file, key).map_err(|defect| HeapStoreError::Damaged { key: *key, defect })?;
        Ok(StoredHeap::verified(file, self.read_engine(key)?))
    }

    fn put(&self, payload: &[u8], engine: &EngineId) -> Result<HeapKey, HeapStoreError> {
        let key = heap_file::key_of(payload).map_err(HeapStoreError::NotAHeap)?;
        if self.holds(&key, payload.len()) {
            if !self.sidecar_path(&key).exists() {
                self.write_sidecar(&key, engine)?;
            }
            // Another process may have named it a moment ago and not have synced the folder yet.
            atomic_file::sync_folder(&self.folder)?;
            return Ok(key);
        }
        // First the sidecar: a heap that can be seen can be judged.
        self.write_sidecar(&key, engine)?;
        atomic_file::write(&self.folder, &key.to_string(), &[&heap_file::header(&key), payload])?;
        Ok(key)
    }
}

fn sidecar_name(key: &HeapKey) -> String {
    format!("{key}.json")
}

/// Why a file was not read.
enum Unread {
    NotAFile,
    TooLong { bytes: u64 },
    Failed(io::Error),
}

fn read_bounded(path: &Path, bytes_max: usize) -> Result<Vec<u8>, Unread> {
    let file = open(path).map_err(Unread::Failed)?;
    let metadata = file.metadata().map_err(Unread::Failed)?;
    if !metadata.is_file() {
        return Err(Unread::NotAFile);
    }
    if metadata.len() > bytes_max as u64 {
        return Err(Unread::TooLong { bytes: metadata.len() });
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    // A file that grows meanwhile is not one of ours, and fails its checks.
    file.take(metadata.len()).read_to_end(&mut bytes).map_err(Unread::Failed)?;
    Ok(bytes)
}

/// Without waiting for a writer, should the path turn out to be a pipe.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)
}
