//! The contract of heaps on every implementation of `Blobs`, each promise a function that takes a place to store them in.

use crate::place::{Place, engine, heap, heap_of, label, signer};
use crate::processes;
use heapstead_store::{
    BlobError, Defect, HEADER_BYTES, HeapLabel, HeapStore, HeapStoreError, ListedHeap, PAYLOAD_BYTES_MIN, S3_PART_BYTES, StoredHeap,
    Unsigned, header,
};
use heapstead_types::HeapKey;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

/// Object stores report times in whole seconds.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(2);

pub fn a_heap_comes_back_with_its_engine(place: &dyn Place) {
    let store = place.open();
    for (fill, bytes, engine) in [(1, PAYLOAD_BYTES_MIN, engine(1)), (2, PAYLOAD_BYTES_MIN + 1, engine(2)), (3, 5 << 20, engine(1))] {
        let (key, payload) = heap_of(fill, bytes);
        store.put(&key, &payload, &HeapLabel::unsigned(Some(engine.clone()))).expect("put");
        for store in [store.clone(), place.open()] {
            let heap = store.get(&key).expect("get");
            assert!(heap.payload() == payload, "the same bytes");
            assert_eq!(heap.engine(), Some(&engine));
        }
    }
}

/// Longer than one part of an upload, so that in S3 it is a multipart upload.
pub fn a_long_heap_is_stored_and_opened_piece_by_piece(place: &dyn Place) {
    let (store, signer) = (place.open(), signer(&[1]));
    let (key, payload) = heap_of(1, 2 * S3_PART_BYTES as usize + 7);
    let label = signer.label(&key, Some(engine(1)));
    let staged = store.stage(&key, |write| payload.chunks(1 << 20).try_for_each(write)).expect("staged");
    store.store(staged, &label).expect("stored");
    for store in [store, place.open()] {
        let heap = store.open_signed(&key, &signer).expect("opened");
        assert_eq!((heap.label(), store.describe(&key).expect("described").label), (&label, label.clone()));
        let (mut read, mut file) = (Vec::new(), Vec::new());
        heap.read_payload(&mut |piece| {
            read.extend_from_slice(piece);
            Ok(())
        })
        .expect("read");
        assert!(read == payload);
        while (file.len() as u64) < heap.file_bytes() {
            let piece = heap.piece(file.len() as u64).expect("a piece");
            assert!(piece.len() <= 1 << 20);
            file.extend(piece);
        }
        assert!(file == [&header(&key)[..], &payload].concat());
    }
    let heap = place.open().open(&key).expect("opened");
    place.open().remove(&key).expect("removed");
    assert!(heap.piece(0).is_ok(), "an opened heap stays readable");
}

pub fn stored_bytes_are_exactly_the_file_format(place: &dyn Place) {
    let (key, payload) = heap(1);
    place.open().put(&key, &payload, &label(1)).expect("put");
    let raw = place.raw(&key.to_string()).expect("it is kept under its key");
    assert_eq!(raw[..10], *b"MCPV8SNAP\0");
    assert_eq!(raw[10..42], *key.digest());
    assert!(raw[42..] == payload);
}

pub fn putting_a_heap_again_changes_nothing(place: &dyn Place) {
    let store = place.open();
    let (key, payload) = heap(1);
    store.put(&key, &payload, &label(1)).expect("put");
    let before = place.raw(&key.to_string());
    store.put(&key, &payload, &label(1)).expect("put again");
    place.open().put(&key, &payload, &label(1)).expect("put by another");
    assert!(place.raw(&key.to_string()) == before);
    assert!(store.get(&key).expect("get").payload() == payload);
    assert_eq!(listed(&store).len(), 1);
}

pub fn the_engine_of_the_last_put_is_returned(place: &dyn Place) {
    let store = place.open();
    let (key, payload) = heap(1);
    for engine in [engine(1), engine(2)] {
        store.put(&key, &payload, &HeapLabel::unsigned(Some(engine.clone()))).expect("put");
        assert_eq!(store.get(&key).expect("get").engine(), Some(&engine));
        assert_eq!(store.describe(&key).expect("described").label.engine, Some(engine));
    }
}

pub fn a_heap_may_be_stored_without_an_engine(place: &dyn Place) {
    let store = place.open();
    let (key, payload) = heap(1);
    store.put(&key, &payload, &HeapLabel::default()).expect("put");
    for store in [store.clone(), place.open()] {
        let heap = store.get(&key).expect("get");
        assert!(heap.payload() == payload && heap.engine().is_none());
        assert_eq!(store.describe(&key).expect("described").label.engine, None);
    }
    store.put(&key, &payload, &label(1)).expect("put with its engine");
    assert_eq!(store.get(&key).expect("get").engine(), Some(&engine(1)));
}

pub fn a_missing_heap_is_not_found(place: &dyn Place) {
    let store = place.open();
    let asked = HeapKey::from_digest([0xab; 32]);
    let not_found = |error| matches!(error, HeapStoreError::NotFound { key } if key == asked);
    assert!(not_found(store.get(&asked).expect_err("nothing")));
    assert!(not_found(store.describe(&asked).expect_err("nothing")));
    store.remove(&asked).expect("removing a missing heap succeeds");
}

pub fn a_payload_that_is_too_short_is_refused(place: &dyn Place) {
    let store = place.open();
    let key = HeapKey::from_digest([0xab; 32]);
    for bytes in [0, 1, PAYLOAD_BYTES_MIN - 1] {
        let put = store.put(&key, &vec![5; bytes], &label(1));
        assert!(matches!(put, Err(HeapStoreError::NotAHeap(_))), "{put:?}");
    }
    assert!(place.raw(&key.to_string()).is_none());
}

pub fn damage_is_reported_by_kind_and_left_for_inspection(place: &dyn Place) {
    let store = place.open();
    let (key, payload) = heap(1);
    let whole = [&header(&key)[..], &payload].concat();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let too_short = |bytes| Defect::TooShort { bytes };
    for (bytes, defect) in [
        (flipped(0), Defect::Magic),
        (flipped(20), Defect::Checksum),
        (flipped(5000), Defect::Checksum),
        (whole[..whole.len() - 1].to_vec(), too_short(PAYLOAD_BYTES_MIN as u64 - 1)),
        (whole[..HEADER_BYTES].to_vec(), too_short(0)),
        (Vec::new(), Defect::Magic),
        ([&whole[..], b"\0"].concat(), Defect::Checksum),
    ] {
        place.plant(&key.to_string(), &bytes, Some(&engine(1).to_string()));
        assert_eq!(defect_of(store.get(&key), &key), defect);
        assert!(place.raw(&key.to_string()).as_ref() == Some(&bytes), "left for inspection");
        if bytes.len() < whole.len() {
            defect_of(store.describe(&key), &key);
        }
    }
    store.put(&key, &payload, &label(1)).expect("another put repairs it");
    assert!(store.get(&key).is_ok());
}

pub fn a_heap_under_another_key_is_damage(place: &dyn Place) {
    let store = place.open();
    let ((key, payload), (other, _)) = (heap(1), heap(2));
    place.plant(&other.to_string(), &[&header(&key)[..], &payload].concat(), Some(&engine(1).to_string()));
    assert_eq!(defect_of(store.get(&other), &other), Defect::AnotherHeap { holds: key });
}

pub fn an_engine_id_may_be_missing_but_not_invalid(place: &dyn Place) {
    let store = place.open();
    let (key, payload) = heap(1);
    let whole = [&header(&key)[..], &payload].concat();
    place.plant(&key.to_string(), &whole, None);
    for _again in 0..2 {
        assert_eq!(store.get(&key).expect("get").engine(), None);
        assert_eq!(store.describe(&key).expect("described").label.engine, None);
    }
    place.plant(&key.to_string(), &whole, Some("node"));
    assert!(matches!(defect_of(store.get(&key), &key), Defect::Sidecar { .. }));
    assert!(matches!(defect_of(store.describe(&key), &key), Defect::Sidecar { .. }));
}

pub fn an_unavailable_store_is_not_reported_as_not_found(place: &dyn Place) {
    let store = place.open();
    let ((key, payload), (new, new_payload)) = (heap(1), heap(2));
    store.put(&key, &payload, &label(1)).expect("put");
    place.down();
    let all = |store: &HeapStore| {
        std::thread::scope(|scope| {
            // At once, because each may take its whole deadline.
            let calls = [
                scope.spawn(|| ("get", store.get(&key).map(drop))),
                scope.spawn(|| ("put", store.put(&new, &new_payload, &label(1)))),
                scope.spawn(|| ("describe", store.describe(&key).map(drop))),
                scope.spawn(|| ("list", store.list(&mut |_| ControlFlow::Continue(())))),
                scope.spawn(|| ("remove", store.remove(&key))),
                scope.spawn(|| ("check", store.check())),
            ];
            calls.map(|call| call.join().expect("call"))
        })
    };
    for (call, answer) in all(&store) {
        assert!(matches!(answer, Err(HeapStoreError::Blobs(BlobError::Unavailable { .. }))), "{call}: {answer:?}");
    }
    place.up();
    assert!(store.get(&key).expect("available again").payload() == payload);
    assert!(matches!(store.get(&new), Err(HeapStoreError::NotFound { .. })), "the failed put stored nothing");
    store.put(&new, &new_payload, &label(1)).expect("put");
    store.check().expect("healthy");
}

pub fn a_heap_is_described_without_its_payload(place: &dyn Place) {
    let store = place.open();
    let (key, payload) = heap_of(1, PAYLOAD_BYTES_MIN + 5);
    let before = SystemTime::now();
    store.put(&key, &payload, &label(1)).expect("put");
    let info = store.describe(&key).expect("described");
    assert_eq!((info.key, info.payload_bytes, info.label.engine), (key, PAYLOAD_BYTES_MIN as u64 + 5, Some(engine(1))));
    assert!(info.stored_at > before - CLOCK_TOLERANCE && info.stored_at < SystemTime::now() + CLOCK_TOLERANCE);
    let damaged_inside = [&header(&key)[..], &vec![9; payload.len()]].concat();
    place.plant(&key.to_string(), &damaged_inside, Some(&engine(1).to_string()));
    assert!(store.describe(&key).is_ok(), "the payload was not read");
}

pub fn listing_stops_when_the_caller_breaks(place: &dyn Place) {
    let store = place.open();
    assert_eq!(listed(&store), []);
    let heaps = [heap(1), heap_of(2, PAYLOAD_BYTES_MIN + 7), heap(3)];
    for (key, payload) in &heaps {
        store.put(key, payload, &label(1)).expect("put");
    }
    store.check().expect("healthy");
    let found = listed(&store);
    let mut expected: Vec<_> = heaps.iter().map(|(key, payload)| (*key, payload.len() as u64)).collect();
    expected.sort();
    assert_eq!(found.iter().map(|heap| (heap.key, heap.payload_bytes)).collect::<Vec<_>>(), expected);
    assert!(found.iter().all(|heap| heap.stored_at.elapsed().unwrap_or_default() < Duration::from_secs(60)));
    let mut seen = 0;
    let stopped = store.list(&mut |_| {
        seen += 1;
        if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(stopped.is_ok());
    assert_eq!(seen, 2);
}

/// More than an object store lists at once.
pub fn thousands_of_heaps_are_listed(place: &dyn Place) {
    const HEAPS: usize = 1100;
    let store = place.open();
    let keys: Vec<_> = (0..HEAPS)
        .map(|number| {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&(number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
            HeapKey::from_digest(digest)
        })
        .collect();
    std::thread::scope(|scope| {
        for part in keys.chunks(HEAPS / 8 + 1) {
            scope.spawn(move || part.iter().for_each(|key| place.plant(&key.to_string(), b"listed by its name", None)));
        }
    });
    let mut expected = keys;
    expected.sort();
    assert_eq!(listed(&store).iter().map(|heap| heap.key).collect::<Vec<_>>(), expected);
}

pub fn a_removed_heap_is_not_found(place: &dyn Place) {
    let store = place.open();
    let ((key, payload), (kept, kept_payload)) = (heap(1), heap(2));
    store.put(&key, &payload, &label(1)).expect("put");
    store.put(&kept, &kept_payload, &label(1)).expect("put");
    store.remove(&key).expect("removed");
    store.remove(&key).expect("removed already");
    assert!(matches!(store.get(&key), Err(HeapStoreError::NotFound { .. })));
    assert!(matches!(store.describe(&key), Err(HeapStoreError::NotFound { .. })));
    assert_eq!(listed(&store).iter().map(|heap| heap.key).collect::<Vec<_>>(), [kept]);
    store.put(&key, &payload, &label(2)).expect("put again");
    assert_eq!(store.get(&key).expect("get").engine(), Some(&engine(2)), "nothing of the old one is left");
}

pub fn a_check_leaves_nothing_behind(place: &dyn Place) {
    let store = place.open();
    store.check().expect("healthy");
    store.tidy().expect("tidied");
    assert_eq!(listed(&store), []);
}

pub fn concurrent_puts_and_gets_succeed(place: &dyn Place) {
    let store = &place.open();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                // Half of the threads put the same heaps, the others their own.
                for fill in if thread < 4 { 100..104 } else { 110 + thread * 4..114 + thread * 4 } {
                    let (key, payload) = heap(fill);
                    store.put(&key, &payload, &label(1)).expect("put");
                    assert!(store.get(&key).expect("get").payload() == payload);
                }
            });
        }
    });
}

pub fn partial_heaps_are_never_visible(place: &dyn Place) {
    const SIGHTINGS: usize = 50;
    const TIMEOUT: Duration = Duration::from_secs(120);
    let (key, payload) = heap_of(1, 1 << 20);
    let sightings = AtomicUsize::new(0);
    let read = || {
        let (store, began) = (place.open(), Instant::now());
        while sightings.load(Relaxed) < SIGHTINGS && began.elapsed() < TIMEOUT {
            match store.get(&key) {
                Ok(heap) => {
                    assert!(heap.payload() == payload && heap.engine().is_some());
                    sightings.fetch_add(1, Relaxed);
                }
                Err(HeapStoreError::NotFound { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    };
    std::thread::scope(|scope| {
        let readers = [scope.spawn(read), scope.spawn(read)];
        let store = place.open();
        while readers.iter().any(|reader| !reader.is_finished()) {
            store.put(&key, &payload, &label(1)).expect("put");
            assert!(store.get(&key).is_ok());
            store.remove(&key).expect("remove");
        }
    });
    assert!(sightings.into_inner() >= SIGHTINGS, "too few reads for a result");
}

pub fn processes_share_a_store(place: &dyn Place) {
    let Some(address) = place.address() else { return };
    processes::put_and_get_from_several(&address);
    let store = place.open();
    assert_eq!(listed(&store).len(), processes::heaps().count());
    for (key, payload) in processes::heaps() {
        assert!(store.get(&key).expect("get").payload() == payload);
    }
}

fn defect_of<T: std::fmt::Debug>(answer: Result<T, HeapStoreError>, asked: &HeapKey) -> Defect {
    match answer {
        Err(HeapStoreError::Damaged { key, defect }) if key == *asked => defect,
        other => panic!("{other:?}"),
    }
}

/// In the order of their keys.
pub fn listed(store: &HeapStore) -> Vec<ListedHeap> {
    let mut heaps = Vec::new();
    let list = store.list(&mut |heap| {
        heaps.push(heap);
        ControlFlow::Continue(())
    });
    list.expect("list");
    heaps.sort_by_key(|heap| heap.key);
    heaps
}

/// Story: the checksum of a heap is its own, so anyone can write a file that passes it. Only the signature tells where a heap comes from.
pub fn only_a_signed_heap_is_returned_for_restoring(place: &dyn Place) {
    let (store, ours, other) = (place.open(), signer(&[1]), signer(&[2]));
    let (key, payload) = heap(1);
    place.plant(&key.to_string(), &[&header(&key)[..], &payload].concat(), Some(&engine(1).to_string()));
    assert_eq!(unsigned(store.get_signed(&key, &ours)), Unsigned::Missing);
    assert!(store.get(&key).is_ok(), "its file is intact");
    let signed = ours.label(&key, Some(engine(1)));
    let swapped = HeapLabel { engine: Some(engine(2)), ..signed.clone() };
    store.put(&key, &payload, &swapped).expect("put");
    assert_eq!(unsigned(store.get_signed(&key, &ours)), Unsigned::Invalid, "the engine is signed too");
    store.put(&key, &payload, &signed).expect("put");
    assert!(matches!(unsigned(store.get_signed(&key, &other)), Unsigned::UnknownKey { .. }));
    for store in [store, place.open()] {
        let heap = store.get_signed(&key, &ours).expect("signed");
        assert!(heap.payload() == payload && *heap.label() == signed);
        assert_eq!(store.describe(&key).expect("described").label, signed);
    }
}

fn unsigned(got: Result<StoredHeap, HeapStoreError>) -> Unsigned {
    match got {
        Err(HeapStoreError::Unsigned { why, .. }) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was returned"),
    }
}
