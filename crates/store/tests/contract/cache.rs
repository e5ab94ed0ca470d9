//! The cache beyond the contract: reads without the store, a size limit, and copies that are always verified.

use crate::place::{Cached, Place, engine, heap, heap_of, label, signer};
use crate::proxy::Fault;
use heapstead_store::blobs::{BlobMetadata, BlobName, GetRequest};
use heapstead_store::{BlobError, Blobs, CachedBlobs, FolderBlobs, HeapStore, HeapStoreError, Owner};
use heapstead_types::HeapKey;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const MB: usize = 1 << 20;
/// Older than any unfinished write.
const LONG_AGO: Duration = Duration::from_secs(100_000);

/// A cache over files, which needs no server.
struct OverFiles {
    root: tempfile::TempDir,
    inner: Arc<FolderBlobs>,
}

impl OverFiles {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("folder");
        let inner = Arc::new(FolderBlobs::open(&root.path().join("inner"), Owner::Us).expect("store"));
        Self { root, inner }
    }

    fn copies(&self) -> PathBuf {
        self.root.path().join("copies")
    }

    fn open(&self, max_mb: u64) -> HeapStore {
        HeapStore::new(Arc::new(CachedBlobs::open(self.inner.clone(), &self.copies(), max_mb).expect("cache")))
    }

    fn put(&self, store: &HeapStore, fill: u8) -> HeapKey {
        let (key, payload) = heap_of(fill, MB);
        store.put(&key, &payload, &label(1)).expect("put");
        key
    }

    fn has_copy(&self, key: &HeapKey) -> bool {
        self.copies().join(key.to_string()).exists()
    }
}

fn age(file: &Path, by: Duration) {
    File::open(file).and_then(|file| file.set_modified(SystemTime::now() - by)).expect("time");
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").metadata().expect("metadata"));
    entries.filter(|metadata| metadata.is_file()).map(|metadata| metadata.len()).sum()
}

#[test]
fn a_heap_that_was_put_or_read_is_read_from_the_cache() {
    let place = Cached::new();
    let store = place.open();
    let ((put, put_payload), (read, read_payload)) = (heap(1), heap(2));
    store.put(&put, &put_payload, &label(1)).expect("put");
    place.bucket.open().put(&read, &read_payload, &label(2)).expect("put by another machine");
    assert!(store.get(&read).is_ok());
    place.bucket.proxy.do_always(Fault::Refuse);
    for store in [store, place.open()] {
        assert!(store.get(&put).expect("cached").payload() == put_payload);
        assert_eq!(store.get(&read).expect("cached").engine(), Some(&engine(2)));
    }
    assert_eq!(place.bucket.proxy.requests(), 0);
}

#[test]
fn a_heap_that_the_store_refused_is_not_in_the_cache() {
    let place = Cached::new();
    let store = place.open();
    let (key, payload) = heap(1);
    place.bucket.proxy.do_always(Fault::Forbidden);
    assert!(matches!(store.put(&key, &payload, &label(1)), Err(HeapStoreError::Blobs(BlobError::Unavailable { .. }))));
    assert!(!place.copy(&key).exists());
}

#[test]
fn a_damaged_copy_is_fetched_again() {
    let place = Cached::new();
    let store = place.open();
    let (key, payload) = heap(1);
    store.put(&key, &payload, &label(1)).expect("put");
    let whole = fs::read(place.copy(&key)).expect("copy");
    let mut flipped = whole.clone();
    flipped[5000] ^= 1;
    for damaged in [&flipped[..], &whole[..1000], b""] {
        fs::write(place.copy(&key), damaged).expect("damage");
        assert!(store.get(&key).expect("fetched").payload() == payload);
        assert!(fs::read(place.copy(&key)).expect("copy") == whole, "and whole again");
    }
    fs::write(place.copies().join(".meta").join(format!("{key}.json")), "{").expect("damage");
    assert_eq!(store.get(&key).expect("fetched").engine(), Some(&engine(1)));
}

/// Story: `heapstead heaps sign` on another machine changes the object in the bucket, and not the copies that servers have of it.
#[test]
fn a_copy_with_another_signature_is_fetched_again() {
    let place = Cached::new();
    let (store, signer) = (place.open(), signer(&[1]));
    let (key, payload) = heap(1);
    store.put(&key, &payload, &label(1)).expect("put");
    let signed = signer.label(&key, Some(engine(1)));
    place.bucket.open().put(&key, &payload, &signed).expect("signed by another machine");
    assert!(store.glance(&key).expect("from the copy").label.mac.is_none());
    assert_eq!(*store.get_signed(&key, &signer).expect("fetched").label(), signed);
    assert_eq!(store.glance(&key).expect("from the copy").label, signed);
}

#[test]
fn a_copy_without_its_engine_is_fetched_again() {
    let place = Cached::new();
    let store = place.open();
    let (key, payload) = heap(1);
    store.put(&key, &payload, &label(1)).expect("put");
    fs::remove_file(place.copies().join(".meta").join(format!("{key}.json"))).expect("remove");
    assert_eq!(store.get(&key).expect("fetched").engine(), Some(&engine(1)));
}

#[test]
fn the_least_recently_used_copies_are_evicted_at_the_size_limit() {
    let place = OverFiles::new();
    let store = place.open(4);
    let keys = [1, 2, 3].map(|fill| place.put(&store, fill));
    for (key, hours) in keys.iter().zip([1, 3, 2]) {
        age(&place.copies().join(key.to_string()), Duration::from_secs(hours * 3600));
    }
    assert!(store.get(&keys[1]).is_ok(), "the oldest is used again");
    // Another process continues, with the order of use from the files.
    let store = place.open(4);
    let new = [4, 5].map(|fill| place.put(&store, fill));
    assert!(!place.has_copy(&keys[2]), "now this one was not used for longest");
    assert!(place.has_copy(&keys[1]) && new.iter().all(|key| place.has_copy(key)));
    for fill in 10..40 {
        place.put(&store, fill);
        assert!(bytes_in(&place.copies()) <= 4 * (MB as u64 + 42), "{}", bytes_in(&place.copies()));
    }
    let sidecars = fs::read_dir(place.copies().join(".meta")).expect("folder").count();
    assert!(sidecars <= 4, "{sidecars} sidecars");
    assert!(keys.iter().all(|key| store.get(key).is_ok()), "the store has them all");
}

#[test]
fn two_caches_in_one_folder_share_its_size_limit() {
    let place = OverFiles::new();
    let (one, other) = (place.open(8), place.open(8));
    for fill in 0..15 {
        place.put(&one, fill * 2);
        place.put(&other, fill * 2 + 1);
        // Each may write a sixteenth of the limit, or one heap, between checks.
        assert!(bytes_in(&place.copies()) <= 10 * (MB as u64 + 42), "{}", bytes_in(&place.copies()));
    }
}

#[test]
fn a_heap_larger_than_the_cache_is_stored_without_a_copy() {
    let place = OverFiles::new();
    let store = place.open(1);
    let (key, payload) = heap_of(1, 2 * MB);
    store.put(&key, &payload, &label(1)).expect("put");
    assert!(store.get(&key).expect("get").payload() == payload);
    assert!(!place.has_copy(&key));
}

#[test]
fn a_broken_cache_fails_no_call() {
    let place = OverFiles::new();
    let store = place.open(8);
    let old = place.put(&store, 1);
    fs::remove_dir_all(place.copies()).expect("remove");
    fs::write(place.copies(), "not a folder").expect("in its way");
    let new = place.put(&store, 2);
    assert!(store.get(&old).is_ok() && store.get(&new).is_ok());
    store.check().expect("the store works");
    store.remove(&old).expect("removed");
    assert!(matches!(store.get(&old), Err(HeapStoreError::NotFound { .. })));
    fs::remove_file(place.copies()).expect("remove");
    assert!(store.get(&new).is_ok());
    assert!(place.has_copy(&new), "and it mends itself");
}

#[test]
fn old_unfinished_copies_are_removed() {
    let place = OverFiles::new();
    let store = place.open(2);
    place.put(&store, 1);
    let (stale, fresh) = (place.copies().join(".writing-1"), place.copies().join(".writing-2"));
    for file in [&stale, &fresh] {
        fs::write(file, "half a heap").expect("left behind");
    }
    age(&stale, LONG_AGO);
    for fill in [2, 3, 4] {
        place.put(&store, fill);
    }
    assert!(!stale.exists());
    assert!(fresh.exists(), "another process may be writing it");
}

#[test]
fn foreign_files_in_the_folder_are_not_touched() {
    let place = OverFiles::new();
    let store = place.open(2);
    let foreign = [place.copies().join("notes.txt"), place.copies().join("ab")];
    for file in &foreign {
        fs::write(file, vec![0; 3 * MB]).expect("file");
        age(file, LONG_AGO);
    }
    let keys = [1, 2, 3, 4].map(|fill| place.put(&store, fill));
    assert!(foreign.iter().all(|file| file.exists()));
    assert!(place.has_copy(&keys[3]), "nor do they count");
}

/// Only a copy of a blob that is named after its content can never be out of date.
#[test]
fn only_blobs_named_after_their_content_are_copied() {
    let place = OverFiles::new();
    let blobs = CachedBlobs::open(place.inner.clone(), &place.copies(), 8).expect("cache");
    let metadata = BlobMetadata::default().with("engine", "x".into()).expect("metadata");
    let names = [BlobName::of_content(&[1; 32]), "plain".parse().expect("a name"), "ab/1.out".parse().expect("a name")];
    for name in &names {
        blobs.put(name, &[b"bytes"], &metadata).expect("put");
        blobs.get(name, &GetRequest { bytes_max: 5, verify: &|_| Ok(Ok(())) }).expect("get");
    }
    let copies = names.each_ref().map(|name| place.copies().join(name.as_str()));
    assert_eq!(copies.each_ref().map(|copy| copy.exists()), [true, false, false]);
    fs::write(&copies[1], "a file of another program").expect("file");
    for name in &names {
        blobs.remove(name).expect("removed");
    }
    assert_eq!(copies.map(|copy| copy.exists()), [false, true, false]);
}

/// Story: a heap that one owner had just read was in the cache for all. The time of another owner's read told that both had the same heap.
#[test]
fn owners_have_copies_of_their_own_within_one_size_limit() {
    let place = OverFiles::new();
    let store = place.open(4);
    let owners = ["acme/ann", "umbra/bob"].map(|owner| store.for_owner(&owner.parse().expect("an owner")));
    let [ann, bob] = &owners;
    let key = place.put(ann, 1);
    let inner = HeapStore::new(place.inner.clone());
    inner.remove(&key).expect("removed behind the cache");
    assert!(ann.get(&key).is_ok() && ann.glance(&key).is_ok(), "from its copy");
    for other in [bob, &store] {
        assert!(matches!(other.get(&key), Err(HeapStoreError::NotFound { .. })), "another owner's copy");
        assert!(matches!(other.glance(&key), Err(HeapStoreError::NotFound { .. })), "another owner's copy");
    }
    place.put(bob, 1);
    assert!(ann.get(&key).is_ok() && bob.get(&key).is_ok());
    store.remove(&key).expect("removed");
    for owner in &owners {
        assert!(matches!(owner.glance(&key), Err(HeapStoreError::NotFound { .. })), "a copy outlived its heap");
    }
    for fill in 10..30 {
        place.put(&owners[usize::from(fill % 2)], fill);
        let used: u64 = fs::read_dir(place.copies()).expect("folder").map(|entry| entry.expect("entry").path()).map(in_folder).sum();
        assert!((MB as u64..=4 * (MB as u64 + 42)).contains(&used), "{used}");
    }
}

/// The bytes of the copies of one owner.
fn in_folder(path: PathBuf) -> u64 {
    let is_of_owner = path.is_dir() && !path.ends_with(".meta");
    if is_of_owner { bytes_in(&path) } else { 0 }
}
