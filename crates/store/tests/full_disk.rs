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
    // In the sidecar: at its first byte, within it. In the heap: in its header, right after it, within the payload, at its last byte.
    for room in [0, 10, 30, 42, 200, PAYLOAD_BYTES_MIN / 2, PAYLOAD_BYTES_MIN + 41] {
        setrlimit(Resource::Fsize, Rlimit { current: Some(room as u64), ..unlimited }).expect("limit");
        let put = heaps.put(&key, &payload, Some(&engine));
        assert!(matches!(put, Err(HeapStoreError::Unavailable { operation: "write", .. })), "{room}: {put:?}");
        assert!(matches!(heaps.get(&key), Err(HeapStoreError::NotFound { .. })), "{room}");
        let left: Vec<_> = std::fs::read_dir(folder.path()).expect("folder").map(|entry| entry.expect("entry").file_name()).collect();
        assert_eq!(left, [".meta"], "{room}");
    }

    setrlimit(Resource::Fsize, unlimited).expect("limit");
    heaps.put(&key, &payload, Some(&engine)).expect("there is room again");
    assert!(heaps.get(&key).is_ok());
}
