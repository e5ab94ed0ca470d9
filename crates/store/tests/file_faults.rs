//! A disk that fails at each step of a write: the put fails, nothing partial is stored under the key, and a later put works.
//!
//! A seccomp filter on one thread makes individual system calls fail.

use heapstead_store::{BlobError, HeapLabel, HeapStore, HeapStoreError, Owner, PAYLOAD_BYTES_MIN, key_of};
use heapstead_types::{EngineId, HeapKey};
use seccompiler::{BpfProgram, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule};
use std::path::{Path, PathBuf};

struct Disk {
    _root: tempfile::TempDir,
    folder: PathBuf,
    heaps: HeapStore,
}

impl Disk {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("folder");
        let folder = root.path().join("heaps");
        let heaps = HeapStore::in_folder(&folder, Owner::Us).expect("store");
        Self { _root: root, folder, heaps }
    }

    fn put(&self) -> Result<(), HeapStoreError> {
        let (key, payload, engine) = heap();
        self.heaps.put(&key, &payload, &HeapLabel::unsigned(Some(engine.clone())))
    }

    /// No heap, and no leftovers of an unfinished write.
    fn is_clean(&self) -> bool {
        let (key, ..) = heap();
        let is_temporary = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten();
            entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(".writing-"))
        };
        let not_found = matches!(self.heaps.get(&key), Err(HeapStoreError::NotFound { .. }));
        not_found && !is_temporary(&self.folder) && !is_temporary(&self.folder.join(".meta"))
    }
}

fn heap() -> (HeapKey, Vec<u8>, EngineId) {
    let payload = vec![1; PAYLOAD_BYTES_MIN];
    (key_of(&payload).expect("a heap"), payload, "v8-14.6/x86_64/flags-0000001a/natives-3-0000005e".parse().expect("an engine id"))
}

/// Runs a closure in a thread in which these calls fail with this error.
fn where_fails<T: Send>(calls: Vec<(i64, Vec<SeccompRule>)>, errno: i32, act: impl FnOnce() -> T + Send) -> T {
    let rules = calls.into_iter().collect();
    let arch = std::env::consts::ARCH.try_into().expect("a known architecture");
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno as u32), arch).expect("filter");
    let program: BpfProgram = filter.try_into().expect("program");
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            seccompiler::apply_filter(&program).expect("filter");
            act()
        });
        thread.join().expect("thread")
    })
}

fn always(call: i64) -> (i64, Vec<SeccompRule>) {
    (call, Vec::new())
}

fn renames() -> Vec<(i64, Vec<SeccompRule>)> {
    #[cfg(target_arch = "x86_64")]
    let old = [always(libc::SYS_rename)];
    #[cfg(not(target_arch = "x86_64"))]
    let old = [];
    [always(libc::SYS_renameat), always(libc::SYS_renameat2)].into_iter().chain(old).collect()
}

fn creating() -> Vec<(i64, Vec<SeccompRule>)> {
    let flags = libc::O_CREAT as u64;
    let condition = SeccompCondition::new(2, Dword, SeccompCmpOp::MaskedEq(flags), flags).expect("condition");
    vec![(libc::SYS_openat, vec![SeccompRule::new(vec![condition]).expect("rule")])]
}

fn making_folders() -> Vec<(i64, Vec<SeccompRule>)> {
    #[cfg(target_arch = "x86_64")]
    let old = [always(libc::SYS_mkdir)];
    #[cfg(not(target_arch = "x86_64"))]
    let old = [];
    [always(libc::SYS_mkdirat)].into_iter().chain(old).collect()
}

#[test]
fn a_put_with_a_failing_step_fails_and_leaves_nothing() {
    for (operation, calls, errno) in [
        ("make the folder", making_folders(), libc::ENOSPC),
        ("write in the folder", creating(), libc::EROFS),
        ("write", vec![always(libc::SYS_write)], libc::ENOSPC),
        ("sync", vec![always(libc::SYS_fsync)], libc::EIO),
        ("name the file", renames(), libc::EIO),
    ] {
        let disk = Disk::new();
        if operation == "make the folder" {
            assert!(!disk.folder.join(".meta").exists());
        } else {
            std::fs::create_dir(disk.folder.join(".meta")).expect("folder");
        }
        match where_fails(calls, errno, || disk.put()) {
            Err(HeapStoreError::Blobs(BlobError::Unavailable { operation: failed, error, .. })) => {
                assert_eq!(failed, operation);
                let error = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
                assert_eq!(error, Some(errno), "{operation}");
            }
            other => panic!("{operation}: {other:?}"),
        }
        assert!(disk.is_clean(), "{operation}");
        disk.put().unwrap_or_else(|error| panic!("after it could not {operation}: {error}"));
        assert!(disk.heaps.get(&heap().0).is_ok());
    }
}

/// The sidecar already exists, so the steps of the heap fail.
#[test]
fn a_put_with_a_failing_rename_leaves_nothing() {
    let disk = Disk::new();
    let (key, ..) = heap();
    let in_its_way = disk.folder.join(key.to_string());
    std::fs::create_dir(&in_its_way).expect("folder");
    let put = disk.put();
    assert!(matches!(put, Err(HeapStoreError::Blobs(BlobError::Unavailable { operation: "name the file", .. }))), "{put:?}");
    std::fs::remove_dir(in_its_way).expect("remove");
    assert!(disk.is_clean());
    disk.put().expect("put");
}

#[test]
fn a_folder_that_disappeared_is_not_created_again() {
    let disk = Disk::new();
    let away = disk.folder.with_file_name("away");
    std::fs::rename(&disk.folder, &away).expect("rename");
    let put = disk.put();
    assert!(matches!(put, Err(HeapStoreError::Blobs(BlobError::Unavailable { operation: "make the folder", .. }))), "{put:?}");
    assert!(!disk.folder.exists(), "what was there may come back, and must not be hidden");
    std::fs::rename(&away, &disk.folder).expect("rename");
    assert!(disk.is_clean());
    disk.put().expect("put");
}

#[test]
fn a_read_error_is_not_reported_as_not_found() {
    let disk = Disk::new();
    disk.put().expect("put");
    let (key, ..) = heap();
    let (get, describe) =
        where_fails(vec![always(libc::SYS_read)], libc::EIO, || (disk.heaps.get(&key).map(drop), disk.heaps.describe(&key).map(drop)));
    for answer in [get, describe] {
        assert!(matches!(answer, Err(HeapStoreError::Blobs(BlobError::Unavailable { operation: "read", .. }))), "{answer:?}");
    }
    assert!(disk.heaps.get(&key).is_ok());
}

/// The files of an output stay where they are when it ends, so all that is left to do is to sync them: each file once, and their folder once.
#[test]
fn an_output_that_can_not_be_synced_does_not_end() {
    for (call, expected) in [(libc::SYS_fdatasync, "can't sync "), (libc::SYS_fsync, "can't sync the folder ")] {
        let folder = tempfile::tempdir().expect("folder");
        let outputs = heapstead_store::Outputs::new(folder.path().into());
        let id = heapstead_types::ExecutionId::from_random([7; 16]);
        let mut writer = outputs.writer(&id);
        writer.append(vec![b'x'; 10_000]).expect("written");
        let error = where_fails(vec![always(call)], libc::EIO, || writer.finish()).expect_err("not synced").to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(outputs.recover(&id).expect("recovered").bytes, 10_000, "nothing is lost");
    }
}
