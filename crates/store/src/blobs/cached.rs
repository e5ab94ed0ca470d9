//! Blobs of another store, with copies of those used last in a local folder. The other store is authoritative: it is written first, and asked
//! for everything but bytes that are here and pass verification.
//!
//! Only blobs named after the SHA-256 of their content are copied: they never change, so a copy is never out of date. Copies are files as
//! [`FolderBlobs`] writes them, but not synced; the time of a file is when it was used last. Several processes may share the folder.
//!
//! Each user has copies of its own, in a folder below, also of the same blob: a copy that one user caused would make the other's read fast, and
//! so tell that both have the blob. All copies share the size limit.

use super::error::BlobError;
use super::folder::FolderBlobs;
use super::metadata::BlobMetadata;
use super::name::{BlobFolder, BlobName};
use super::{BlobInfo, Blobs, GetRequest, ListedBlob, LocalFile, OpenBlob, StagedFile};
use heapstead_types::is_lowercase_hex;
use sha2::{Digest, Sha256};
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The share of the limit that is freed at once when it is reached, so that not every further blob has to list the folder. Also how much one
/// process writes before it counts what others wrote meanwhile.
const SLACK_SHARE: u64 = 16;
/// Separates these digests from any other.
const USER_DOMAIN: &[u8] = b"heapstead copies 1\0";
const USER_PREFIX: &str = "of-";
const USER_DIGEST_BYTES: usize = 16;

#[derive(Clone)]
pub struct CachedBlobs {
    inner: Arc<dyn Blobs>,
    copies: FolderBlobs,
    /// The folder of the user's copies.
    user: BlobFolder,
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
        Ok(Self { inner, copies, user: BlobFolder::ROOT, bytes_max: max_mb.saturating_mul(1 << 20), usage: Arc::default() })
    }

    /// The name of the user's copy. None for a blob that is not copied.
    fn copy_name(&self, name: &BlobName) -> Option<BlobName> {
        if name.is_content_hash() { self.user.name(name.as_str()).ok() } else { None }
    }

    /// A verified copy with metadata. A copy without is being written or removed, or its blob has none; then the store is asked.
    fn copy(&self, name: &BlobName, request: &GetRequest<'_>) -> Option<OpenBlob> {
        let name = self.copy_name(name)?;
        match self.copies.open(&name, request) {
            Ok(blob) if !blob.metadata.is_empty() => {
                // If it fails, the copy is gone, or seems older than it is.
                let _ = self.copies.touch(&name);
                Some(blob)
            }
            Ok(_) | Err(BlobError::NotFound { .. }) => None,
            Err(damaged @ (BlobError::Damaged { .. } | BlobError::Rejected { .. })) => {
                tracing::warn!("a copy in the cache is removed: {damaged}");
                let _ = self.copies.remove(&name);
                None
            }
            Err(error) => {
                tracing::warn!("the cache can't be read: {error}");
                None
            }
        }
    }

    /// Stores a copy of this name with `put`, if it fits at all. A failure costs a download later, and nothing else.
    fn keep_copy(
        &self,
        name: &BlobName,
        bytes: u64,
        metadata: &BlobMetadata,
        put: impl FnOnce(&FolderBlobs, &BlobName) -> Result<(), BlobError>,
    ) {
        let Some(name) = self.copy_name(name).filter(|_| !metadata.is_empty()) else { return };
        let keep = || {
            // Someone may have removed the folder to free space.
            self.copies.make_again()?;
            if self.make_room(bytes)? { put(&self.copies, &name) } else { Ok(()) }
        };
        if let Err(error) = keep() {
            tracing::warn!("the cache can't keep `{name}`: {error}");
        }
    }

    /// Copies an opened blob into the folder of copies.
    fn keep_opened(&self, name: &BlobName, open: &OpenBlob) {
        self.keep_copy(name, open.bytes, &open.metadata, |copies, name| {
            let mut copy = StagedFile::create_in(&copies.staging())?;
            let copied = open.read_pieces(0, &mut |piece| copy.write(piece).map_err(io::Error::other));
            copied.map_err(BlobError::unavailable("copy", name.as_str()))?;
            copies.put_staged(name, copy, &open.metadata).map(drop)
        });
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
        for folder in self.users()? {
            self.copies.list(&folder, &mut |copy| {
                // Any other file is not a copy.
                if is_copy(&folder, &copy.name) {
                    copies.push(copy);
                }
                ControlFlow::Continue(())
            })?;
        }
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

    /// The folders of all users.
    fn users(&self) -> Result<Vec<BlobFolder>, BlobError> {
        let mut folders = self.copies.folders()?;
        folders.retain(is_of_user);
        folders.push(BlobFolder::ROOT);
        Ok(folders)
    }

    /// Removes the copies that users have of a blob.
    fn remove_copies(&self, name: &BlobName) -> Result<(), BlobError> {
        let copies = self.users()?.into_iter().filter_map(|folder| folder.name(name.as_str()).ok());
        copies.map(|copy| self.copies.remove(&copy)).fold(Ok(()), Result::and)
    }
}

/// Named by a digest, because any text can name a user.
fn folder_of(user: &str) -> BlobFolder {
    let digest = Sha256::new().chain_update(USER_DOMAIN).chain_update(user).finalize();
    format!("{USER_PREFIX}{}", hex::encode(&digest[..USER_DIGEST_BYTES])).parse().unwrap_or(BlobFolder::ROOT)
}

fn is_of_user(folder: &BlobFolder) -> bool {
    folder.as_str().strip_prefix(USER_PREFIX).is_some_and(|digest| is_lowercase_hex(digest, USER_DIGEST_BYTES))
}

fn is_copy(folder: &BlobFolder, name: &BlobName) -> bool {
    let prefix = folder.prefix().unwrap_or_default();
    name.as_str().strip_prefix(&prefix).and_then(|name| name.parse::<BlobName>().ok()).is_some_and(|name| name.is_content_hash())
}

impl Blobs for CachedBlobs {
    fn backend(&self) -> &'static str {
        self.inner.backend()
    }

    fn open(&self, name: &BlobName, request: &GetRequest<'_>) -> Result<OpenBlob, BlobError> {
        if let Some(copy) = self.copy(name, request) {
            return Ok(copy);
        }
        let blob = self.inner.open(name, request)?;
        self.keep_opened(name, &blob);
        Ok(blob)
    }

    /// Not from a copy: only whole blobs can be verified.
    fn get_range(&self, name: &BlobName, range: Range<u64>) -> Result<Vec<u8>, BlobError> {
        self.inner.get_range(name, range)
    }

    fn put(&self, name: &BlobName, parts: &[&[u8]], metadata: &BlobMetadata) -> Result<(), BlobError> {
        self.inner.put(name, parts, metadata)?;
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        self.keep_copy(name, bytes, metadata, |copies, name| copies.put(name, parts, metadata));
        Ok(())
    }

    fn staging(&self) -> PathBuf {
        self.inner.staging()
    }

    fn put_staged(&self, name: &BlobName, staged: StagedFile, metadata: &BlobMetadata) -> Result<Option<StagedFile>, BlobError> {
        let left = self.inner.put_staged(name, staged, metadata)?;
        if let Some(staged) = &left {
            self.keep_opened(name, &OpenBlob { file: staged.reopened()?, bytes: staged.bytes(), metadata: metadata.clone() });
        }
        Ok(left)
    }

    fn adopt(&self, files: &[LocalFile<'_>]) -> Result<(), BlobError> {
        self.inner.adopt(files)
    }

    fn describe(&self, name: &BlobName) -> Result<BlobInfo, BlobError> {
        self.inner.describe(name)
    }

    fn glance(&self, name: &BlobName) -> Result<BlobInfo, BlobError> {
        match self.copy_name(name).and_then(|name| self.copies.describe(&name).ok()) {
            // The time of a copy changes with its use.
            Some(copy) if !copy.metadata.is_empty() => Ok(BlobInfo { file: None, ..copy }),
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
            && let Err(error) = self.remove_copies(name)
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

    fn for_user(&self, user: &str) -> Arc<dyn Blobs> {
        Arc::new(Self { inner: self.inner.for_user(user), user: folder_of(user), ..self.clone() })
    }
}
