//! A heap in memory: its bytes in a descriptor that is sealed against writing, and the key they hash to.

use heapstead_types::HeapKey;
use heapstead_wire::Written;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, memfd_create};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

const SEALS: SealFlags = SealFlags::WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::SEAL);
/// In each attempt the kernel waits up to 150 ms for references to pages to be released.
const SEAL_TRIES_MAX: usize = 7;
/// Read buffer for hashing: small enough for the allocator to reuse it, without new pages from the kernel each time.
const CHUNK_BYTES: usize = 64 << 10;

#[derive(Debug, Clone)]
pub struct HeapImage {
    descriptor: Arc<OwnedFd>,
    length: u64,
    key: HeapKey,
}

impl HeapImage {
    /// A descriptor for a worker to write a snapshot to.
    pub(crate) fn blank() -> rustix::io::Result<OwnedFd> {
        memfd_create("heap", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
    }

    pub fn from_payload(payload: &[u8]) -> std::io::Result<Self> {
        Self::from_pieces(|write| write(payload))
    }

    /// From a payload that is passed piece by piece.
    pub fn from_pieces(pieces: impl FnOnce(&mut dyn FnMut(&[u8]) -> std::io::Result<()>) -> std::io::Result<()>) -> std::io::Result<Self> {
        let descriptor = Self::blank()?;
        pieces(&mut |mut rest| {
            while !rest.is_empty() {
                let written = rustix::io::retry_on_intr(|| rustix::io::write(&descriptor, rest))?;
                rest = &rest[written..];
            }
            Ok(())
        })?;
        Ok(Self::seal(descriptor)?)
    }

    /// Seals the descriptor against every further change, then hashes its content, which can't change between the two.
    pub(crate) fn seal(descriptor: OwnedFd) -> rustix::io::Result<Self> {
        add_seals(&descriptor)?;
        let length = u64::try_from(fstat(&descriptor)?.st_size).map_err(|_| Errno::INVAL)?;
        let key = HeapKey::from_digest(digest(&descriptor, length)?);
        Ok(Self { descriptor: Arc::new(descriptor), length, key })
    }

    /// As `seal`, for a heap that a worker has written and announced. An error says what the worker did wrong.
    pub(crate) async fn seal_announced(descriptor: OwnedFd, announced: Written) -> Result<Self, String> {
        // On a blocking thread, because a cancel must take effect while a large heap is hashed.
        let sealed = tokio::task::spawn_blocking(move || Self::seal(descriptor)).await;
        match sealed.unwrap_or(Err(Errno::CANCELED)) {
            Ok(heap) if heap.length() != announced.length || heap.key().digest() != &announced.sha256 => {
                Err("the heap it wrote is not the one it announced".into())
            }
            Ok(heap) => Ok(heap),
            Err(error) => Err(format!("the heap it wrote can't be sealed: {error}")),
        }
    }

    pub fn key(&self) -> HeapKey {
        self.key
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads the payload in chunks.
    pub fn read_chunks(&self, mut each: impl FnMut(&[u8]) -> std::io::Result<()>) -> std::io::Result<()> {
        read_chunks(&self.descriptor, self.length, &mut each)
    }

    pub fn payload(&self) -> std::io::Result<Vec<u8>> {
        let mut payload = Vec::with_capacity(usize::try_from(self.length).unwrap_or(0));
        self.read_chunks(|chunk| {
            payload.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(payload)
    }
}

impl AsFd for HeapImage {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Retries while the kernel holds a page for a moment, to reclaim or move it. If a worker still has a writable mapping, every attempt fails
/// immediately.
fn add_seals(descriptor: &OwnedFd) -> rustix::io::Result<()> {
    let mut sealed = fcntl_add_seals(descriptor, SEALS);
    for _ in 1..SEAL_TRIES_MAX {
        if sealed != Err(Errno::BUSY) {
            break;
        }
        sealed = fcntl_add_seals(descriptor, SEALS);
    }
    sealed
}

fn digest(descriptor: &OwnedFd, length: u64) -> rustix::io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    read_chunks(descriptor, length, &mut |chunk| {
        hasher.update(chunk);
        Ok(())
    })
    .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(hasher.finalize().into())
}

fn read_chunks(descriptor: &OwnedFd, length: u64, each: &mut dyn FnMut(&[u8]) -> std::io::Result<()>) -> std::io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES.min(usize::try_from(length).unwrap_or(CHUNK_BYTES))];
    let mut offset = 0;
    while offset < length {
        match rustix::io::retry_on_intr(|| rustix::io::pread(descriptor, &mut *buffer, offset))? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => {
                each(&buffer[..count])?;
                offset += count as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::time::Duration;

    #[test]
    fn an_image_has_the_key_of_its_bytes_and_is_immutable() {
        let payload = vec![7; CHUNK_BYTES * 2 + 3];
        let image = HeapImage::from_payload(&payload).expect("image");
        assert_eq!(image.key(), HeapKey::from_digest(Sha256::digest(&payload).into()));
        assert_eq!(image.length(), payload.len() as u64);
        assert_eq!(image.payload().expect("payload"), payload);
        assert_eq!(rustix::io::write(&image, b"x"), Err(Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(&image, 0), Err(Errno::PERM));
    }
    /// A pipe holds a reference to a page that was spliced into it, as the kernel does while it reclaims or moves a page.
    #[test]
    fn sealing_waits_for_a_page_that_is_held_for_a_moment() {
        let descriptor = HeapImage::blank().expect("memory");
        rustix::io::write(&descriptor, &[7; 4096]).expect("write");
        let (from, to) = std::io::pipe().expect("pipe");
        // SAFETY: both descriptors are open, and the offset lives through the call.
        let spliced = unsafe { libc::splice(descriptor.as_raw_fd(), &mut 0, to.as_raw_fd(), std::ptr::null_mut(), 4096, 0) };
        assert_eq!(spliced, 4096);
        assert_eq!(fcntl_add_seals(&descriptor, SEALS), Err(Errno::BUSY), "the page is held");
        let letting_go = std::thread::spawn(move || {
            // Longer than the kernel waits.
            std::thread::sleep(Duration::from_millis(200));
            drop((from, to));
        });
        assert_eq!(HeapImage::seal(descriptor).expect("sealed").length(), 4096);
        letting_go.join().expect("let go");
    }
}
