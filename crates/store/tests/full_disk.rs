//! A disk that is full in the middle of a heap: the put fails, and no trace of it is left. Alone in its process, because the limit that
//! plays the full disk holds for the whole of it.

use heapstead_store::{FileHeaps, HeapStore, HeapStoreError, Owner, PAYLOAD_BYTES_MIN, key_of};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn a_write_that_fails_half_way_leaves_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let heaps = FileHeaps::open(folder.path(), Owner::Us).expect("store");
    let engine = "v8-14.6/x86_64/flags-0000001a/natives-3-0000005e".parse().expect("an engine id");
    let payload = vec![1; PAYLOAD_BYTES_MIN];
    let key = key_of(&payload).expect("a heap");

    // SAFETY: only this thread runs; with the signal ignored, a write past the limit is an error instead of death.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let unlimited = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(PAYLOAD_BYTES_MIN as u64 / 2), ..unlimited }).expect("limit");

    let put = heaps.put(&payload, &engine);
    assert!(matches!(put, Err(HeapStoreError::Unavailable { operation: "write", .. })), "{put:?}");
    assert!(matches!(heaps.get(&key), Err(HeapStoreError::NotFound { .. })));
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("folder").map(|entry| entry.expect("entry").file_name()).collect();
    assert_eq!(left, [".meta"]);

    setrlimit(Resource::Fsize, unlimited).expect("limit");
    heaps.put(&payload, &engine).expect("there is room again");
    assert!(heaps.get(&key).is_ok());
}
