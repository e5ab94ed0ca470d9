//! Heaps across processes: chains of runs, and every problem a heap or its folder can have.

mod common;

use common::{Place, Ran};
use std::fs;

#[test]
fn a_heap_is_continued_in_another_process() {
    let place = Place::new();
    let (_, first) = place.completed("let n = 40; const add = by => n += by", &[]);
    let (result, second) = place.completed("add(1)", &["--heap", &first]);
    assert_eq!(result, "41");
    assert_eq!(place.completed("add(1)", &["--heap", &second]).0, "42");
    assert_eq!(place.completed("add(1)", &["--heap", &first]).0, "41", "a heap does not change when a run continues from it");
    assert_eq!(place.completed("typeof n", &["--heap", ""]).0, "\"undefined\"", "empty means fresh");
}

#[test]
fn a_missing_heap_is_fresh_with_a_warning_or_a_failure() {
    let place = Place::new();
    let key = "0123456789abcdef".repeat(4);
    let fresh = place.ran(["run", "-e", "1", "--heap", &key]);
    assert_eq!((fresh.code, fresh.out.as_str()), (Some(0), "1\n"));
    assert!(fresh.err.contains(&format!("warning: heap {key} was not found: the run began with a fresh heap")), "{fresh:?}");
    let failed = place.ran(["run", "-e", "console.log('ran')", "--heap", &key, "--on-missing-heap", "fail"]);
    assert_eq!((failed.code, failed.out.as_str()), (Some(1), ""));
    assert!(failed.err.contains(&format!("error: heap {key} was not found")), "{failed:?}");
}

/// Runs code on an unusable heap: the run fails, and the code does not run.
fn check_unusable(place: &Place, key: &str, parts: &[&str]) {
    // Even with `--on-missing-heap fresh`: an existing but unusable heap is never skipped.
    let ran = place.ran(["run", "-e", "console.log('ran')", "--heap", key, "--on-missing-heap", "fresh"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.heap()), (Some(1), "", None), "{ran:?}");
    for part in parts {
        assert!(ran.err.contains(part), "`{part}` is not in {ran:?}");
    }
}

#[test]
fn a_damaged_heap_fails_the_run_and_its_file_is_unchanged() {
    let place = Place::new();
    let (_, key) = place.completed("let n = 1", &[]);
    let whole = fs::read(place.heap_file(&key)).expect("heap");
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let mut unmarked = whole.clone();
    unmarked[0] ^= 1;
    for (bytes, why) in [
        (&flipped[..], "its payload does not match its checksum"),
        (&unmarked, "does not begin with the mark"),
        (&whole[..middle], "its payload does not match its checksum"),
        (&whole[..5000], "its payload has 4958 bytes"),
        (&[], "does not begin with the mark"),
    ] {
        fs::write(place.heap_file(&key), bytes).expect("damage");
        check_unusable(&place, &key, &[&format!("error: heap {key} is damaged: "), why, "next: the file is left as it is"]);
        assert!(fs::read(place.heap_file(&key)).expect("heap") == bytes);
    }
    fs::write(place.heap_file(&key), whole).expect("mended");
    assert_eq!(place.completed("n", &["--heap", &key]).0, "1");
}

#[test]
fn a_heap_of_another_engine_is_refused_before_v8_sees_it() {
    let place = Place::new();
    let (_, key) = place.completed("1", &[]);
    let sidecar = fs::read_to_string(place.sidecar(&key)).expect("sidecar");
    let engine = serde_json::from_str::<serde_json::Value>(&sidecar).expect("JSON")["engine"].as_str().expect("an id").to_owned();
    let other = engine.replacen("v8-", "v8-9", 1);
    fs::write(place.sidecar(&key), sidecar.replace(&engine, &other)).expect("sidecar");
    check_unusable(
        &place,
        &key,
        &[&format!("heap was written by engine {other}, this is {engine}"), "next: use the heapstead that wrote the heap"],
    );
    fs::write(place.sidecar(&key), "{").expect("sidecar");
    check_unusable(&place, &key, &["is damaged: its sidecar can't be understood"]);
}

#[test]
fn a_heap_without_a_sidecar_is_tried_and_a_crash_fails_only_the_run() {
    let place = Place::new();
    let (_, key) = place.completed("let n = 7", &[]);
    fs::remove_file(place.sidecar(&key)).expect("remove");
    check_unusable(&place, &key, &["is not restored: it has no signature", "next: name the database of the server that wrote it"]);
    assert_eq!(place.ran(["heaps", "sign", &key]).code, Some(0));
    assert_eq!(place.completed("n", &["--heap", &key]).0, "7");

    // A valid V8 version header, followed by garbage.
    let mut garbage = fs::read(place.heap_file(&key)).expect("heap").split_off(42);
    garbage[200..].fill(0x5a);
    let key = heapstead_store::key_of(&garbage).expect("long enough");
    fs::write(place.heap_file(&key.to_string()), [&heapstead_store::header(&key)[..], &garbage].concat()).expect("heap");
    assert_eq!(place.ran(["heaps", "sign", &key.to_string()]).code, Some(0));
    check_unusable(&place, &key.to_string(), &["error: "]);
}

#[test]
fn a_folder_that_can_not_be_written_fails_the_run() {
    let place = Place::new();
    let (_, key) = place.completed("let n = 1", &[]);
    let before = fs::read_dir(place.heaps()).expect("folder").count();
    let ran: Ran = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            forbid_writing_in_this_thread(&place.path("sessions"));
            place.command(["run", "-e", "console.log('ran'); ++n", "--heap", &key]).output().expect("it runs").into()
        });
        running.join().expect("no panic")
    });
    assert_eq!((ran.code, ran.out.as_str(), ran.heap()), (Some(1), "ran\n", None), "{ran:?}");
    assert!(ran.err.contains("error: storage: can't write in the folder"), "{ran:?}");
    assert!(ran.err.contains("Permission denied") && ran.err.contains("--directory-path DIR"), "{ran:?}");
    assert_eq!(fs::read_dir(place.heaps()).expect("folder").count(), before, "no partial file is left");
}

/// Removes write access outside of the database from this thread and its child processes with Landlock, which affects root too, unlike a
/// folder's mode.
fn forbid_writing_in_this_thread(database: &std::path::Path) {
    use landlock::{ABI, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr};
    let writing = AccessFs::from_write(ABI::V2);
    // The engine starts with its output redirected to /dev/null.
    let null = PathBeneath::new(PathFd::new("/dev/null").expect("/dev/null"), AccessFs::WriteFile);
    let ruleset = Ruleset::default().handle_access(writing).and_then(|ruleset| ruleset.create()).and_then(|ruleset| ruleset.add_rule(null));
    let database = PathBeneath::new(PathFd::new(database).expect("the database"), writing);
    let ruleset = ruleset.and_then(|ruleset| ruleset.add_rule(database));
    ruleset.expect("rules").restrict_self().expect("restricted");
}

#[test]
fn an_invalid_folder_fails_before_anything_runs() {
    let place = Place::new();
    let file = place.file("file", "");
    for (folder, part) in [(file.clone(), "is not a folder"), (format!("{file}/below"), "can't make the folder")] {
        let ran = place.ran(["run", "-e", "console.log('ran')", "--directory-path", &folder]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.err.contains(part) && ran.err.contains("next: `heapstead doctor`"), "{ran:?}");
    }
}

#[test]
fn processes_may_share_a_folder() {
    let place = Place::new();
    // Some runs produce the same heap, some different ones.
    let codes: Vec<String> = (0..8).map(|process| format!("let n = {}; n", process % 4)).collect();
    let children: Vec<_> = codes.iter().map(|code| place.command(["run", "-e", code]).spawn().expect("it starts")).collect();
    for (process, child) in children.into_iter().enumerate() {
        let ran = Ran::from(child.wait_with_output().expect("it ends"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let heap = ran.heap().expect("a heap");
        assert_eq!(place.completed("n", &["--heap", &heap]).0, (process % 4).to_string());
    }
    let other_files: Vec<_> = fs::read_dir(place.heaps())
        .expect("folder")
        .map(|entry| entry.expect("entry").file_name().into_string().expect("name"))
        .filter(|name| name != ".meta" && name.parse::<heapstead_types::HeapKey>().is_err())
        .collect();
    assert_eq!(other_files, [""; 0], "only heaps are in the folder");
}
