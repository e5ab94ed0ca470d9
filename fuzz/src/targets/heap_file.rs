//! Heap files: only a file whose magic, length, checksum and key are right gives a payload, also if it is received in pieces; any single change
//! is refused.

use heapstead_store::fuzzing::check_start;
use heapstead_store::{HEADER_BYTES, HeapStore, Owner, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, header, key_of, verify};
use heapstead_types::HeapKey;
use std::sync::LazyLock;
use tempfile::TempDir;

/// Bytes that claim to be a heap file, the length of the file, and the key that is asked for.
type Raw<'a> = (&'a [u8], u64, [u8; 32]);
/// A valid file of this content with one byte changed, cut, and extended.
type Changed<'a> = (u8, u32, u8, u32, &'a [u8]);

static STORE: LazyLock<(HeapStore, TempDir)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    (HeapStore::in_folder(folder.path(), Owner::Anyone).expect("a folder for heaps"), folder)
});

pub fn run(input: Result<Changed<'_>, Raw<'_>>) {
    match input {
        Ok((seed, at, with, cut, more)) => changed(seed, at, with, cut, more),
        Err((file, file_bytes, asked)) => raw(file, file_bytes, &HeapKey::from_digest(asked)),
    }
}

fn raw(file: &[u8], file_bytes: u64, asked: &HeapKey) {
    if let Ok(payload) = verify(file, asked) {
        assert_eq!([&header(asked)[..], payload].concat(), file);
        assert!((PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&payload.len()));
    }
    if let Ok(bytes) = check_start(file, file_bytes, asked) {
        assert_eq!(file[..HEADER_BYTES], header(asked));
        assert_eq!(bytes, file_bytes - HEADER_BYTES as u64);
        assert!((PAYLOAD_BYTES_MIN as u64..=PAYLOAD_BYTES_MAX as u64).contains(&bytes));
    }
    if let Some((key, payload_bytes)) = received(file, file_bytes as usize) {
        assert_eq!(verify(file, &key).map(<[u8]>::len), Ok(payload_bytes as usize));
    }
}

fn changed(seed: u8, at: u32, with: u8, cut: u32, more: &[u8]) {
    let payload = vec![seed; PAYLOAD_BYTES_MIN];
    let key = key_of(&payload).expect("a heap");
    let whole = [&header(&key)[..], &payload].concat();
    let mut file = whole.clone();
    let position = at as usize % file.len();
    file[position] ^= with;
    file.truncate(file.len() - cut as usize % 64);
    file.extend_from_slice(more);
    assert_eq!(verify(&file, &key).is_ok(), file == whole);
    assert_eq!(received(&file, at as usize).map(|(key, _)| key), (file == whole).then_some(key));
    raw(&file, file.len() as u64, &key);
}

/// The key and the length of a heap that is received in two pieces, if it is one.
fn received(file: &[u8], cut: usize) -> Option<(HeapKey, u64)> {
    let mut incoming = STORE.0.receive().expect("a file");
    let (first, second) = file.split_at(cut % (file.len() + 1));
    incoming.write(first).and_then(|()| incoming.write(second)).ok()?;
    let heap = incoming.finish().ok()?;
    assert!(heap.start().len() <= file.len());
    Some((heap.key(), heap.payload_bytes()))
}
