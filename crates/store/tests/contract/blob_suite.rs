//! The contract of every implementation of `Blobs`, each promise a function that takes a place to store blobs in.

use crate::place::Place;
use heapstead_store::blobs::{Blob, BlobDefect, BlobError, BlobFolder, BlobMetadata, BlobName, Blobs, GetRequest, LocalFile, OpenBlob};
use std::cell::Cell;
use std::fs::File;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

/// Object stores report times in whole seconds.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(2);

fn name(text: &str) -> BlobName {
    text.parse().expect("a name")
}

fn content(fill: u8) -> BlobName {
    BlobName::of_content(&[fill; 32])
}

fn metadata(value: &str) -> BlobMetadata {
    BlobMetadata::default().with("engine", value.into()).expect("metadata")
}

fn get(blobs: &dyn Blobs, name: &BlobName) -> Result<Blob, BlobError> {
    blobs.get(name, &GetRequest { bytes_max: u64::MAX, verify: &|_| Ok(Ok(())) })
}

fn listed(blobs: &dyn Blobs, folder: &BlobFolder) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let list = blobs.list(folder, &mut |blob| {
        found.push((blob.name.to_string(), blob.bytes));
        ControlFlow::Continue(())
    });
    list.expect("list");
    found.sort();
    found
}

fn is_not_found<T: std::fmt::Debug>(answer: Result<T, BlobError>, asked: &BlobName) -> bool {
    matches!(&answer, Err(BlobError::NotFound { name }) if name == asked)
}

pub fn a_blob_comes_back_with_its_metadata(place: &dyn Place) {
    let blobs = place.blobs();
    let large = vec![7; 5 << 20];
    let cases: [(BlobName, &[&[u8]]); 5] = [
        (name("empty"), &[]),
        (name("one.part"), &[b"bytes"]),
        (name("ab/in_a-folder.out"), &[b"two ", b"parts"]),
        (content(1), &[b"header", b"", b"payload"]),
        (content(2), &[&large]),
    ];
    for (name, parts) in cases {
        for metadata in [metadata("v8-14.6/x86_64"), metadata("another one")] {
            blobs.put(&name, parts, &metadata).expect("put");
            assert!(place.raw(name.as_str()) == Some(parts.concat()), "{name}: stored as it is");
            for blobs in [blobs.clone(), place.blobs()] {
                let blob = get(&*blobs, &name).expect("get");
                assert!(blob.bytes == parts.concat(), "{name}: the same bytes");
                assert_eq!(blob.metadata, metadata, "{name}: the metadata of the last put");
                assert_eq!(blobs.describe(&name).expect("described").metadata, metadata, "{name}");
            }
        }
    }
    blobs.put(&name("bare"), &[b"bytes"], &BlobMetadata::default()).expect("put");
    assert!(get(&*blobs, &name("bare")).expect("get").metadata.is_empty());
}

pub fn another_blob_of_the_same_name_replaces_it(place: &dyn Place) {
    let blobs = place.blobs();
    for text in ["first", "second, which is longer", "3rd"] {
        blobs.put(&name("ab/name"), &[text.as_bytes()], &metadata(text)).expect("put");
        let blob = get(&*blobs, &name("ab/name")).expect("get");
        assert_eq!((blob.bytes.as_slice(), blob.metadata.get("engine")), (text.as_bytes(), Some(text)));
    }
    assert_eq!(listed(&*blobs, &"ab".parse().expect("a folder")), [("ab/name".to_owned(), 3)]);
}

pub fn a_range_ends_where_the_blob_ends(place: &dyn Place) {
    let blobs = place.blobs();
    for name in [name("ab/text.out"), content(1)] {
        blobs.put(&name, &[b"0123", b"456789"], &metadata("x")).expect("put");
        for (range, expected) in [
            (0..10, "0123456789"),
            (0..1, "0"),
            (3..5, "34"),
            (9..10, "9"),
            (8..20, "89"),
            (10..11, ""),
            (1_000_000..1_000_001, ""),
            (5..5, ""),
            (0..u64::from(u32::MAX), "0123456789"),
        ] {
            let bytes = blobs.get_range(&name, range.clone()).unwrap_or_else(|error| panic!("{name}, {range:?}: {error}"));
            assert_eq!(String::from_utf8_lossy(&bytes), expected, "{name}, {range:?}");
        }
        blobs.remove(&name).expect("removed");
        assert!(is_not_found(blobs.get_range(&name, 0..1), &name));
    }
    blobs.put(&name("empty"), &[], &BlobMetadata::default()).expect("put");
    assert_eq!(blobs.get_range(&name("empty"), 0..1).expect("nothing"), b"");
}

pub fn a_blob_that_fails_verification_is_not_returned(place: &dyn Place) {
    let blobs = place.blobs();
    for name in [name("a"), content(1)] {
        blobs.put(&name, &[b"bytes"], &metadata("x")).expect("put");
        let seen = Cell::new(0);
        let verify = |blob: &OpenBlob| {
            seen.set(seen.get() + 1);
            Ok(if blob.read()? == b"other bytes" { Ok(()) } else { Err("these are not the bytes".into()) })
        };
        let answer = blobs.get(&name, &GetRequest { bytes_max: 100, verify: &verify });
        assert!(matches!(&answer, Err(BlobError::Rejected { why, .. }) if why.to_string() == "these are not the bytes"), "{answer:?}");
        assert!(seen.get() >= 1);
        assert_eq!(place.raw(name.as_str()).as_deref(), Some(&b"bytes"[..]), "left for inspection");
        let answer = blobs.get(&name, &GetRequest { bytes_max: 4, verify: &|_| Ok(Ok(())) });
        assert!(matches!(answer, Err(BlobError::Damaged { defect: BlobDefect::TooLong { bytes: 5 }, .. })), "{answer:?}");
        assert_eq!(get(&*blobs, &name).expect("get").bytes, b"bytes");
    }
}

pub fn a_blob_is_described_without_being_read(place: &dyn Place) {
    let blobs = place.blobs();
    let bytes: Vec<u8> = (0..200).collect();
    for name in [name("ab/name"), content(1)] {
        let before = SystemTime::now();
        blobs.put(&name, &[&bytes], &metadata("x")).expect("put");
        for info in [blobs.describe(&name), blobs.glance(&name)] {
            let info = info.expect("described");
            assert_eq!((info.bytes, &info.metadata), (200, &metadata("x")));
            assert!(info.modified > before - CLOCK_TOLERANCE && info.modified < SystemTime::now() + CLOCK_TOLERANCE);
            assert!(info.start.is_none_or(|start| start.len() >= 42 && bytes.starts_with(&start)));
        }
    }
}

pub fn a_missing_blob_is_not_found(place: &dyn Place) {
    let blobs = place.blobs();
    for name in [name("none"), name("no/folder"), content(9)] {
        assert!(is_not_found(get(&*blobs, &name), &name));
        assert!(is_not_found(blobs.get_range(&name, 0..1), &name));
        assert!(is_not_found(blobs.describe(&name), &name));
        assert!(is_not_found(blobs.glance(&name), &name));
        blobs.remove(&name).expect("nothing to remove");
    }
}

pub fn a_folder_lists_its_own_blobs(place: &dyn Place) {
    let blobs = place.blobs();
    let folder: BlobFolder = "ab".parse().expect("a folder");
    assert_eq!(listed(&*blobs, &BlobFolder::ROOT), []);
    assert_eq!(listed(&*blobs, &folder), []);
    let names = ["a", "b.out", "ab/a", "ab/c", "abc/d"];
    for (number, text) in names.iter().enumerate() {
        blobs.put(&name(text), &[&vec![0; number]], &metadata("x")).expect("put");
    }
    for foreign in [".hidden", "two words", "ab/.writing-1", "ab/two words", "deep/er/still"] {
        place.plant_foreign(foreign);
    }
    let entry = |text: &str, bytes| (text.to_owned(), bytes);
    assert_eq!(listed(&*blobs, &BlobFolder::ROOT), [entry("a", 0), entry("b.out", 1)]);
    assert_eq!(listed(&*blobs, &folder), [entry("ab/a", 2), entry("ab/c", 3)]);
    assert_eq!(listed(&*blobs, &"deep".parse().expect("a folder")), []);
    let mut seen = 0;
    let stopped = blobs.list(&folder, &mut |_| {
        seen += 1;
        ControlFlow::Break(())
    });
    assert!(stopped.is_ok());
    assert_eq!(seen, 1);
}

pub fn a_removed_blob_is_gone_with_its_metadata(place: &dyn Place) {
    let blobs = place.blobs();
    for (removed, kept) in [(name("a"), name("b")), (name("ab/a"), name("ab/b")), (content(1), content(2))] {
        for name in [&removed, &kept] {
            blobs.put(name, &[b"bytes"], &metadata("x")).expect("put");
        }
        blobs.remove(&removed).expect("removed");
        blobs.remove(&removed).expect("removed already");
        assert!(is_not_found(get(&*blobs, &removed), &removed));
        assert!(is_not_found(blobs.describe(&removed), &removed));
        assert_eq!(get(&*blobs, &kept).expect("get").metadata, metadata("x"));
        blobs.put(&removed, &[b"bytes"], &BlobMetadata::default()).expect("put");
        assert!(get(&*blobs, &removed).expect("get").metadata.is_empty(), "{removed}: nothing is left of the old one");
    }
}

pub fn names_that_leave_the_store_are_refused(place: &dyn Place) {
    for bad in ["", ".", "..", "../a", "a/../b", "/etc/passwd", "a/b/c", ".meta", ".meta/a.json", ".heapstead-check", "a\0b", "a b", "a%2e"]
    {
        assert!(bad.parse::<BlobName>().is_err(), "{bad:?}");
    }
    // The longest names work everywhere, with metadata.
    let blobs = place.blobs();
    let longest = "x".repeat(200);
    let name = name(&format!("{longest}/{longest}"));
    blobs.put(&name, &[b"bytes"], &metadata("x")).expect("put");
    assert_eq!(get(&*blobs, &name).expect("get").metadata, metadata("x"));
    blobs.remove(&name).expect("removed");
}

pub fn concurrent_puts_of_one_name_store_exactly_one_of_them(place: &dyn Place) {
    const WRITERS: u8 = 4;
    let (name, done) = (name("ab/contended"), AtomicBool::new(false));
    let is_whole = |bytes: &[u8]| bytes.len() == 300_000 && bytes[0] < WRITERS && bytes.iter().all(|byte| *byte == bytes[0]);
    place.blobs().put(&name, &[&[0; 300_000]], &metadata("x")).expect("put");
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let blobs = place.blobs();
            while !done.load(Relaxed) {
                let blob = get(&*blobs, &name).expect("get");
                assert!(is_whole(&blob.bytes) && blob.metadata == metadata("x"));
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|fill| {
                let name = &name;
                scope.spawn(move || {
                    let blobs = place.blobs();
                    for _ in 0..8 {
                        blobs.put(name, &[&[fill; 100_000], &[fill; 200_000]], &metadata("x")).expect("put");
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("writer"));
        done.store(true, Relaxed);
        reader.join().expect("reader");
    });
    assert!(is_whole(&get(&*place.blobs(), &name).expect("get").bytes));
    assert_eq!(listed(&*place.blobs(), &"ab".parse().expect("a folder")).len(), 1, "nothing else is left");
}

pub fn an_unavailable_store_does_not_report_not_found(place: &dyn Place) {
    let blobs = place.blobs();
    let (stored, new) = (name("a"), name("b"));
    blobs.put(&stored, &[b"bytes"], &metadata("x")).expect("put");
    place.down();
    std::thread::scope(|scope| {
        // At the same time, because each may take its whole deadline.
        let calls = [
            scope.spawn(|| ("get", get(&*blobs, &stored).map(drop))),
            scope.spawn(|| ("get_range", blobs.get_range(&stored, 0..1).map(drop))),
            scope.spawn(|| ("put", blobs.put(&new, &[b"bytes"], &metadata("x")))),
            scope.spawn(|| ("describe", blobs.describe(&stored).map(drop))),
            scope.spawn(|| ("glance", blobs.glance(&stored).map(drop))),
            scope.spawn(|| ("list", blobs.list(&BlobFolder::ROOT, &mut |_| ControlFlow::Continue(())))),
            scope.spawn(|| ("list a folder", blobs.list(&"ab".parse().expect("a folder"), &mut |_| ControlFlow::Continue(())))),
            scope.spawn(|| ("remove", blobs.remove(&stored))),
            scope.spawn(|| ("check", blobs.check())),
        ];
        for (call, answer) in calls.map(|call| call.join().expect("call")) {
            assert!(matches!(answer, Err(BlobError::Unavailable { .. })), "{call}: {answer:?}");
        }
    });
    place.up();
    assert_eq!(get(&*blobs, &stored).expect("it is back").bytes, b"bytes");
    assert!(is_not_found(get(&*blobs, &new), &new));
    blobs.check().expect("it works again");
}

pub fn a_callers_deadline_does_not_affect_others(place: &dyn Place) {
    let blobs = place.blobs();
    blobs.put(&name("a"), &[b"bytes"], &metadata("x")).expect("put");
    let (late, began) = (blobs.until(Instant::now()), Instant::now());
    for answer in [get(&*late, &name("a")).map(|blob| blob.bytes), late.get_range(&name("a"), 0..5)] {
        // Disk operations ignore the deadline.
        assert!(matches!(&answer, Ok(bytes) if bytes == b"bytes") || matches!(answer, Err(BlobError::Unavailable { .. })), "{answer:?}");
    }
    assert!(began.elapsed() < Duration::from_secs(5));
    let in_time = blobs.until(Instant::now() + Duration::from_secs(60));
    assert_eq!(in_time.backend(), blobs.backend());
    assert!(get(&*in_time, &name("a")).is_ok() && get(&*blobs, &name("a")).is_ok());
}

pub fn local_files_become_blobs(place: &dyn Place) {
    let (blobs, spool) = (place.blobs(), tempfile::tempdir().expect("folder"));
    let file = |file: &str, text: &str| {
        let path = spool.path().join(file);
        std::fs::write(&path, text).expect("written");
        (File::open(&path).expect("opened"), path)
    };
    let ((text, text_path), (index, index_path)) = (file("text", "some text"), file("index", ""));
    let files = |text_path| {
        [
            LocalFile { name: name("ab/1.lines"), path: &index_path, file: &index },
            LocalFile { name: name("ab/1.out"), path: text_path, file: &text },
        ]
    };
    blobs.adopt(&files(&text_path)).expect("adopted");
    assert!(!text_path.exists() && !index_path.exists(), "they are moved");
    assert_eq!(get(&*blobs, &name("ab/1.out")).expect("get").bytes, b"some text");
    assert_eq!(get(&*blobs, &name("ab/1.lines")).expect("get").bytes, b"");
    let answer = blobs.adopt(&files(&text_path));
    assert!(matches!(answer, Err(BlobError::Unavailable { .. })), "there is no file: {answer:?}");
}

pub fn checking_and_tidying_add_no_blobs(place: &dyn Place) {
    let blobs = place.blobs();
    blobs.check().expect("it works");
    blobs.put(&name("ab/a"), &[b"bytes"], &metadata("x")).expect("put");
    blobs.tidy().expect("tidied");
    assert_eq!(listed(&*blobs, &BlobFolder::ROOT), []);
    assert_eq!(get(&*blobs, &name("ab/a")).expect("get").metadata, metadata("x"));
}
