//! Calls under faults of the network or the bucket: they succeed after a retry, or fail in time with an error that says why.

use crate::place::{Bucket, DEADLINE, Place, heap, heaps_in, label, settings};
use crate::proxy::Fault;
use heapstead_store::blobs::BlobName;
use heapstead_store::{BlobError, Defect, HeapStoreError, S3Settings};
use std::time::{Duration, Instant};

/// Short enough for a test to wait for it.
const SHORT: Duration = Duration::from_secs(2);

/// With a margin for a busy machine.
const IN_TIME: Duration = Duration::from_secs(4);

/// A bucket with one heap.
fn bucket() -> Bucket {
    let bucket = Bucket::new();
    let (key, payload) = heap(1);
    bucket.store(DEADLINE).put(&key, &payload, &label(1)).expect("put");
    bucket
}

fn unavailable<T: std::fmt::Debug>(answer: Result<T, HeapStoreError>) -> String {
    match answer {
        Err(error @ HeapStoreError::Blobs(BlobError::Unavailable { .. })) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// The text of the error, which must come in time.
fn fails_in_time<T: std::fmt::Debug>(call: impl FnOnce() -> Result<T, HeapStoreError>) -> String {
    let began = Instant::now();
    let text = unavailable(call());
    assert!(began.elapsed() < IN_TIME, "{:?}: {text}", began.elapsed());
    text
}

#[test]
fn temporary_faults_are_retried() {
    let bucket = bucket();
    let store = bucket.store(DEADLINE);
    let ((key, payload), (new, new_payload)) = (heap(1), heap(2));
    for fault in [Fault::Refuse, Fault::Busy, Fault::CutRequest] {
        bucket.proxy.do_times(fault, 2);
        store.put(&new, &new_payload, &label(1)).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert_eq!(bucket.proxy.requests(), 3, "{fault:?}");
    }
    for fault in [Fault::Refuse, Fault::Busy, Fault::CutAnswer] {
        bucket.proxy.do_times(fault, 2);
        let heap = store.get(&key).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert!(heap.payload() == payload, "{fault:?}");
        assert_eq!(bucket.proxy.requests(), 3, "{fault:?}");
    }
}

#[test]
fn an_unanswered_request_is_retried_after_half_of_the_deadline() {
    std::thread::scope(|scope| {
        for fault in [Fault::Silence, Fault::StallAnswer] {
            scope.spawn(move || {
                let (bucket, (key, payload)) = (bucket(), heap(1));
                bucket.proxy.do_times(fault, 1);
                assert!(bucket.store(DEADLINE).get(&key).unwrap_or_else(|error| panic!("{fault:?}: {error}")).payload() == payload);
                assert_eq!(bucket.proxy.requests(), 2, "{fault:?}");
            });
        }
        scope.spawn(|| {
            let (bucket, (key, payload)) = (bucket(), heap(2));
            bucket.proxy.do_times(Fault::Silence, 1);
            bucket.store(DEADLINE).put(&key, &payload, &label(1)).expect("put");
            assert_eq!(bucket.proxy.requests(), 2);
        });
    });
}

#[test]
fn lasting_faults_fail_within_the_deadline() {
    std::thread::scope(|scope| {
        for fault in [Fault::Refuse, Fault::Busy, Fault::Silence, Fault::CutRequest] {
            scope.spawn(move || a_put_fails_in_time_and_leaves_nothing(fault));
        }
        for fault in [Fault::Refuse, Fault::Busy, Fault::Silence, Fault::CutAnswer, Fault::StallAnswer] {
            scope.spawn(move || a_get_fails_in_time(fault));
        }
    });
}

fn a_put_fails_in_time_and_leaves_nothing(fault: Fault) {
    let bucket = bucket();
    let store = bucket.store(SHORT);
    let (key, payload) = heap(2);
    bucket.proxy.do_always(fault);
    let text = fails_in_time(|| store.put(&key, &payload, &label(1)));
    assert!(text.starts_with(&format!("can't write `{key}` in the bucket `{}`: ", bucket.name)), "{text}");
    assert!(bucket.raw(&key.to_string()).is_none(), "{fault:?}: nothing partial is there");
    bucket.proxy.do_always(Fault::None);
    let store = bucket.store(DEADLINE);
    assert!(matches!(store.get(&key), Err(HeapStoreError::NotFound { .. })), "{fault:?}");
    store.put(&key, &payload, &label(1)).expect("available again");
}

fn a_get_fails_in_time(fault: Fault) {
    let bucket = bucket();
    let store = bucket.store(SHORT);
    let (key, payload) = heap(1);
    bucket.proxy.do_always(fault);
    let text = fails_in_time(|| store.get(&key));
    assert!(fault != Fault::Busy || text.contains("503"), "the error of the store is reported: {text}");
    bucket.proxy.do_always(Fault::None);
    assert!(bucket.store(DEADLINE).get(&key).expect("available again").payload() == payload);
}

#[test]
fn an_upload_whose_response_is_lost_is_stored_whole_or_not_at_all() {
    let bucket = bucket();
    let store = bucket.store(SHORT);
    let (key, payload) = heap(2);
    bucket.proxy.do_always(Fault::StallAnswer);
    let _ = store.put(&key, &payload, &label(1));
    bucket.proxy.do_always(Fault::None);
    match bucket.store(DEADLINE).get(&key) {
        Ok(heap) => assert!(heap.payload() == payload),
        Err(error) => assert!(matches!(error, HeapStoreError::NotFound { .. }), "{error}"),
    }
}

#[test]
fn a_corrupted_response_body_is_damage() {
    let bucket = bucket();
    let store = bucket.store(DEADLINE);
    let (key, _) = heap(1);
    for (fault, expected) in [(Fault::FlipAnswer, Defect::Checksum), (Fault::ShortAnswer, Defect::TooShort { bytes: 51_179 })] {
        bucket.proxy.do_times(fault, 1);
        match store.get(&key) {
            Err(HeapStoreError::Damaged { defect, .. }) => assert_eq!(defect, expected),
            other => panic!("{fault:?}: {other:?}"),
        }
    }
    assert!(store.get(&key).is_ok());
}

#[test]
fn only_a_missing_object_is_reported_as_not_found() {
    let bucket = bucket();
    let (key, payload) = heap(1);
    let no_bucket = heaps_in(&settings(&bucket.proxy.endpoint(), "no-such-bucket"));
    for text in [
        unavailable(no_bucket.get(&key)),
        unavailable(no_bucket.describe(&key)),
        unavailable(no_bucket.put(&key, &payload, &label(1))),
        unavailable(no_bucket.list(&mut |_| std::ops::ControlFlow::Continue(()))),
        unavailable(no_bucket.remove(&key)),
        unavailable(no_bucket.check()),
    ] {
        assert!(text.contains("NoSuchBucket"), "{text}");
    }
    let store = bucket.store(DEADLINE);
    for fault in [Fault::NoSuchPage, Fault::Forbidden] {
        bucket.proxy.do_always(fault);
        unavailable(store.get(&key));
        unavailable(store.describe(&key));
        unavailable(store.remove(&key));
    }
    assert_eq!(bucket.proxy.requests(), 3, "lasting errors are not retried");
}

#[test]
fn an_unreachable_host_fails_in_time() {
    let (key, _) = heap(1);
    // A closed port, and a network reserved for documentation, which is unreachable or does not answer.
    for endpoint in ["http://127.0.0.1:1", "http://192.0.2.1:9"] {
        let settings = S3Settings { deadline: SHORT, ..settings(endpoint, "heaps") };
        let store = heaps_in(&settings);
        fails_in_time(|| store.get(&key));
    }
}

#[test]
fn foreign_objects_in_the_bucket_are_skipped() {
    let bucket = bucket();
    let (key, _) = heap(1);
    for name in ["notes.txt", "folder/inside", &format!("folder/{key}"), &key.to_string()[1..], &key.to_string().to_uppercase()] {
        bucket.plant_object(name, b"something", None);
    }
    let listed = crate::heap_suite::listed(&bucket.store(DEADLINE));
    assert_eq!(listed.iter().map(|heap| heap.key).collect::<Vec<_>>(), [key]);
}

#[test]
fn a_callers_deadline_ends_a_call_before_the_stores_own() {
    let bucket = bucket();
    bucket.proxy.do_always(Fault::Silence);
    let ((key, _), (new, payload)) = (heap(1), heap(2));
    let store = || bucket.store(DEADLINE).until(Instant::now() + Duration::from_secs(1));
    fails_in_time(|| store().get(&key));
    fails_in_time(|| store().put(&new, &payload, &label(1)));
    fails_in_time(|| store().describe(&key));
}

#[test]
fn range_reads_are_retried_as_whole_reads_are() {
    let bucket = bucket();
    let (key, payload) = heap(1);
    let name = BlobName::of_content(key.digest());
    let blobs = bucket.blobs();
    for fault in [Fault::Refuse, Fault::Busy, Fault::CutAnswer] {
        bucket.proxy.do_times(fault, 2);
        let bytes = blobs.get_range(&name, 42..10_042).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert!(bytes == payload[..10_000], "{fault:?}");
        assert_eq!(bucket.proxy.requests(), 3, "{fault:?}");
    }
    for fault in [Fault::NoSuchPage, Fault::Forbidden] {
        bucket.proxy.do_always(fault);
        let answer = blobs.get_range(&name, 0..1);
        assert!(matches!(answer, Err(BlobError::Unavailable { .. })), "{fault:?}: {answer:?}");
    }
}

/// Story: a heap that the bucket did not have was asked for twice. The time of an import told whether another owner had stored the same heap.
#[test]
fn a_heap_takes_as_many_requests_whether_or_not_the_bucket_has_it() {
    let bucket = bucket();
    let store = bucket.store(DEADLINE);
    for number in [1, 2] {
        let (key, payload) = heap(number);
        let requests = |call: &dyn Fn()| {
            bucket.proxy.do_times(Fault::Refuse, 0);
            call();
            bucket.proxy.requests()
        };
        assert_eq!(requests(&|| assert_eq!(store.describe(&key).is_ok(), number == 1)), 1);
        assert_eq!(requests(&|| assert_eq!(store.is_new(&key).expect("answered"), None)), 0);
        let stage = || store.stage(&key, |write| write(&payload)).expect("staged");
        assert_eq!(requests(&|| store.store(stage(), &label(1)).expect("stored")), 1);
    }
}
