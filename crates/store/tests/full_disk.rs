//! A disk that becomes full during a put: the put fails and leaves nothing behind. In its own process, because the file size limit that
//! simulates the full disk applies to the whole process.

use heapstead_store::{BlobError, HeapLabel, HeapStore, HeapStoreError, Owner, PAYLOAD_BYTES_MIN, key_of};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn a_write_that_fails_partway_leaves_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let heaps = HeapStore::in_folder(folder.path(), Owner::Us).expect("store");
    let engine: heapstead_types::EngineId = "v8-14.6/x86_64/flags-0000001a/natives-3-0000005e".parse().expect("an engine id");
    let payload = vec![1; PAYLOAD_BYTES_MIN];
    let key = key_of(&payload).expect("a heap");

    // SAFETY: only this thread runs; with the signal ignored, a write past the limit is an error instead of death.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let unlimited = getrlimit(Resource::Fsize);
    // In the sidecar: at its first byte, within it. In the heap: in its header, right after it, within the payload, at its last byte.
    for room in [0, 10, 30, 42, 200, PAYLOAD_BYTES_MIN / 2, PAYLOAD_BYTES_MIN + 41] {
        setrlimit(Resource::Fsize, Rlimit { current: Some(room as u64), ..unlimited }).expect("limit");
        let put = heaps.put(&key, &payload, &HeapLabel::unsigned(Some(engine.clone())));
        assert!(matches!(put, Err(HeapStoreError::Blobs(BlobError::Unavailable { operation: "write", .. }))), "{room}: {put:?}");
        assert!(matches!(heaps.get(&key), Err(HeapStoreError::NotFound { .. })), "{room}");
        let left: Vec<_> = std::fs::read_dir(folder.path()).expect("folder").map(|entry| entry.expect("entry").file_name()).collect();
        assert_eq!(left, [".meta"], "{room}");
    }

    setrlimit(Resource::Fsize, unlimited).expect("limit");
    heaps.put(&key, &payload, &HeapLabel::unsigned(Some(engine.clone()))).expect("there is room again");
    assert!(heaps.get(&key).is_ok());
}
