//! What every heap store promises, as one suite that takes any of them.

use heapstead_store::{FileHeaps, HeapStore, HeapStoreError, Owner, PAYLOAD_BYTES_MIN, key_of};
use heapstead_types::{EngineId, HeapKey};

/// `store` is empty at first.
fn check(store: &dyn HeapStore) {
    a_heap_comes_back_with_its_engine(store);
    putting_it_again_changes_nothing(store);
    what_is_not_there_is_not_found(store);
    what_can_not_be_a_heap_is_not_kept(store);
    many_may_put_and_get_at_once(store);
}

fn a_heap_comes_back_with_its_engine(store: &dyn HeapStore) {
    for (fill, bytes, engine) in [(1, PAYLOAD_BYTES_MIN, engine(1)), (2, PAYLOAD_BYTES_MIN + 1, engine(2)), (3, 5 << 20, engine(1))] {
        let payload = payload(fill, bytes);
        let key = store.put(&payload, &engine).expect("put");
        assert_eq!(key, key_of(&payload).expect("a heap"), "the key is the hash of the payload");
        let heap = store.get(&key).expect("get");
        assert!(heap.payload() == payload, "the same bytes");
        assert_eq!(heap.engine(), Some(&engine));
    }
}

fn putting_it_again_changes_nothing(store: &dyn HeapStore) {
    let payload = payload(4, PAYLOAD_BYTES_MIN);
    let key = store.put(&payload, &engine(1)).expect("put");
    assert_eq!(store.put(&payload, &engine(1)).expect("put again"), key);
    assert!(store.get(&key).expect("get").payload() == payload);
}

fn what_is_not_there_is_not_found(store: &dyn HeapStore) {
    let asked = HeapKey::from_digest([0xab; 32]);
    match store.get(&asked) {
        Err(HeapStoreError::NotFound { key }) => assert_eq!(key, asked),
        other => panic!("{other:?}"),
    }
}

fn what_can_not_be_a_heap_is_not_kept(store: &dyn HeapStore) {
    for bytes in [0, 1, PAYLOAD_BYTES_MIN - 1] {
        let put = store.put(&payload(5, bytes), &engine(1));
        assert!(matches!(put, Err(HeapStoreError::NotAHeap(_))), "{put:?}");
    }
}

fn many_may_put_and_get_at_once(store: &dyn HeapStore) {
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                // Half of the threads put the same heaps, the others their own.
                for fill in if thread < 4 { 100..104 } else { 110 + thread * 4..114 + thread * 4 } {
                    let payload = payload(fill, PAYLOAD_BYTES_MIN);
                    let key = store.put(&payload, &engine(1)).expect("put");
                    assert!(store.get(&key).expect("get").payload() == payload);
                }
            });
        }
    });
}

fn payload(fill: u8, bytes: usize) -> Vec<u8> {
    vec![fill; bytes]
}

fn engine(natives: u32) -> EngineId {
    EngineId { v8: "14.6.202.34-node.18".into(), arch: "x86_64".into(), flags: 0x1a2b, natives, natives_digest: 0x5e6f }
}

#[test]
fn files() {
    let folder = tempfile::tempdir().expect("folder");
    check(&FileHeaps::open(folder.path(), Owner::Us).expect("store"));
}
