//! Blobs of another store, with copies of those used last in a local folder. The other store is authoritative: it is written first, and asked
//! for everything but bytes that are here and pass verification.
//!
//! Only blobs named after the SHA-256 of their content are copied: they never change, so a copy is never out of date. Copies are files as
//! [`FolderBlobs`] writes them, but not synced; the time of a file is when it was used last. Several processes may share the folder.

use super::error::BlobError;
use super::folder::FolderBlobs;
use super::metadata::BlobMetadata;
use super::name::{BlobFolder, BlobName};
use super::{Blob, BlobInfo, Blobs, GetRequest, ListedBlob, LocalFile};
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The share of the limit that is freed at once when it is reached, so that not every further blob has to list the folder. Also how much one
/// process writes before it counts what others wrote meanwhile.
const SLACK_SHARE: u64 = 16;

#[derive(Clone)]
pub struct CachedBlobs {
    inner: Arc<dyn Blobs>,
    copies: FolderBlobs,
    bytes_max: u64,
    usage: Arc<Mutex<Usage>>,
}

/// How full the folder is, as far as this process knows.
#[derive(Debug, Default)]
struct Usage {
    used_bytes: u64,
    /// How much may be written before the folder has to be listed again.
    uncounted_bytes: u64,
}

impl CachedBlobs {
    /// Opens the folder, and creates it if it is missing. `max_mb` limits the copies in it.
    pub fn open(inner: Arc<dyn Blobs>, folder: &Path, max_mb: u64) -> Result<Self, BlobError> {
        let copies = FolderBlobs::open_for_copies(folder)?;
        Ok(Self { inner, copies, bytes_max: max_mb.saturating_mul(1 << 20), usage: Arc::default() })
    }

    /// A verified copy with metadata. A copy without is being written or removed, or its blob has none; then the store is asked.
    fn copy(&self, name: &BlobName, request: &GetRequest<'_>) -> Option<Blob> {
        if !name.is_content_hash() {
            return None;
        }
        match self.copies.get(name, request) {
            Ok(blob) if !blob.metadata.is_empty() => {
                // If it fails, the copy is gone, or seems older than it is.
                let _ = self.copies.touch(name);
                Some(blob)
            }
            Ok(_) | Err(BlobError::NotFound { .. }) => None,
            Err(damaged @ (BlobError::Damaged { .. } | BlobError::Rejected { .. })) => {
                tracing::warn!("a copy in the cache is removed: {damaged}");
                let _ = self.copies.remove(name);
                None
            }
            Err(error) => {
                tracing::warn!("the cache can't be read: {error}");
                None
            }
        }
    }

    /// Stores a copy, if it fits at all. A failure costs a download later, and nothing else.
    fn keep_copy(&self, name: &BlobName, parts: &[&[u8]], metadata: &BlobMetadata) {
        if !name.is_content_hash() || metadata.is_empty() {
            return;
        }
        let keep = || {
            // Someone may have removed the folder to free space.
            self.copies.make_again()?;
            match self.make_room(parts.iter().map(|part| part.len() as u64).sum())? {
                true => self.copies.put(name, parts, metadata),
                false => Ok(()),
            }
        };
        if let Err(error) = keep() {
            tracing::warn!("the cache can't keep `{name}`: {error}");
        }
    }

    /// Removes the least recently used copies until this one fits.
    fn make_room(&self, bytes: u64) -> Result<bool, BlobError> {
        let slack_bytes = self.bytes_max / SLACK_SHARE;
        if bytes > self.bytes_max {
            return Ok(false);
        }
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        if usage.uncounted_bytes < bytes || usage.used_bytes + bytes > self.bytes_max {
            let goal = self.bytes_max.saturating_sub(bytes);
            usage.used_bytes = self.shrink_to(goal, goal.saturating_sub(slack_bytes))?;
            usage.uncounted_bytes = slack_bytes.max(bytes);
        }
        usage.used_bytes += bytes;
        usage.uncounted_bytes -= bytes;
        Ok(true)
    }

    /// If the copies have more bytes than `bytes_max`, removes the oldest until they have at most `goal_bytes`. Returns how many are left.
    fn shrink_to(&self, bytes_max: u64, goal_bytes: u64) -> Result<u64, BlobError> {
        let mut copies = Vec::new();
        self.copies.list(&BlobFolder::ROOT, &mut |copy| {
            // Any other file is not a copy.
            if copy.name.is_content_hash() {
                copies.push(copy);
            }
            ControlFlow::Continue(())
        })?;
        self.copies.tidy()?;
        let mut used_bytes = copies.iter().map(|copy| copy.bytes).sum::<u64>();
        if used_bytes <= bytes_max {
            return Ok(used_bytes);
        }
        copies.sort_unstable_by_key(|copy| copy.modified);
        for copy in copies {
            if used_bytes <= goal_bytes {
                break;
            }
            self.copies.remove(&copy.name)?;
            used_bytes -= copy.bytes;
        }
        Ok(used_bytes)
    }
}

impl Blobs for CachedBlobs {
    fn backend(&self) -> &'static str {
        self.inner.backend()
    }

    fn get(&self, name: &BlobName, request: &GetRequest<'_>) -> Result<Blob, BlobError> {
        if let Some(copy) = self.copy(name, request) {
            return Ok(copy);
        }
        let blob = self.inner.get(name, request)?;
        self.keep_copy(name, &[&blob.bytes], &blob.metadata);
        Ok(blob)
    }

    /// Not from a copy: only whole blobs can be verified.
    fn get_range(&self, name: &BlobName, range: Range<u64>) -> Result<Vec<u8>, BlobError> {
        self.inner.get_range(name, range)
    }

    fn put(&self, name: &BlobName, parts: &[&[u8]], metadata: &BlobMetadata) -> Result<(), BlobError> {
        self.inner.put(name, parts, metadata)?;
        self.keep_copy(name, parts, metadata);
        Ok(())
    }

    fn adopt(&self, files: &[LocalFile<'_>]) -> Result<(), BlobError> {
        self.inner.adopt(files)
    }

    fn describe(&self, name: &BlobName) -> Result<BlobInfo, BlobError> {
        self.inner.describe(name)
    }

    fn glance(&self, name: &BlobName) -> Result<BlobInfo, BlobError> {
        let copy = if name.is_content_hash() { self.copies.describe(name).ok() } else { None };
        match copy {
            Some(copy) if !copy.metadata.is_empty() => Ok(copy),
            _ => self.inner.describe(name),
        }
    }

    fn list(&self, folder: &BlobFolder, each: &mut dyn FnMut(ListedBlob) -> ControlFlow<()>) -> Result<(), BlobError> {
        self.inner.list(folder, each)
    }

    fn remove(&self, name: &BlobName) -> Result<(), BlobError> {
        self.inner.remove(name)?;
        // A file of any other name is not a copy.
        if name.is_content_hash()
            && let Err(error) = self.copies.remove(name)
        {
            tracing::warn!("the cache can't remove `{name}`: {error}");
        }
        Ok(())
    }

    fn tidy(&self) -> Result<(), BlobError> {
        self.inner.tidy()
    }

    /// The cache is not checked: without it everything is slower, but works.
    fn check(&self) -> Result<(), BlobError> {
        self.inner.check()
    }

    fn until(&self, deadline: Instant) -> Arc<dyn Blobs> {
        Arc::new(Self { inner: self.inner.until(deadline), ..self.clone() })
    }
}
