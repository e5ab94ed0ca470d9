//! The file backend beyond the contract: file layout, permissions, and the error for each kind of damage.

use heapstead_store::blobs::{BlobMetadata, BlobName};
use heapstead_store::{BlobError, Blobs, Defect, FolderBlobs, HeapLabel, HeapStore, HeapStoreError, Owner, PAYLOAD_BYTES_MIN, key_of};
use heapstead_types::{EngineId, HeapKey};
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

struct Kept {
    _root: tempfile::TempDir,
    folder: PathBuf,
    heaps: HeapStore,
    key: HeapKey,
}

impl Kept {
    fn heap(&self) -> PathBuf {
        self.folder.join(self.key.to_string())
    }

    fn sidecar(&self) -> PathBuf {
        self.folder.join(".meta").join(format!("{}.json", self.key))
    }

    fn defect(&self) -> Defect {
        match self.heaps.get(&self.key) {
            Err(HeapStoreError::Damaged { key, defect }) if key == self.key => defect,
            other => panic!("{other:?}"),
        }
    }
}

/// A folder created by the store, with one heap in it.
fn kept() -> Kept {
    let root = tempfile::tempdir().expect("folder");
    let folder = root.path().join("made/by/us");
    let heaps = HeapStore::in_folder(&folder, Owner::Us).expect("store");
    let key = put(&heaps, 1).expect("put");
    Kept { _root: root, folder, heaps, key }
}

fn put(heaps: &HeapStore, fill: u8) -> Result<HeapKey, HeapStoreError> {
    let payload = payload(fill);
    let key = key_of(&payload).expect("a heap");
    heaps.put(&key, &payload, &HeapLabel::unsigned(Some(engine()))).map(|()| key)
}

fn payload(fill: u8) -> Vec<u8> {
    vec![fill; PAYLOAD_BYTES_MIN]
}

fn engine() -> EngineId {
    "v8-14.6/x86_64/flags-0000001a/natives-3-0000005e".parse().expect("an engine id")
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").file_name().into_string().expect("name")).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("metadata").permissions().mode() & 0o777
}

#[test]
fn a_heap_is_a_file_with_a_sidecar_that_only_its_user_can_read() {
    let kept = kept();
    assert_eq!(names(&kept.folder), [".meta".to_owned(), kept.key.to_string()]);
    assert_eq!(names(&kept.folder.join(".meta")), [format!("{}.json", kept.key)]);
    assert_eq!(fs::read_to_string(kept.sidecar()).expect("sidecar"), format!(r#"{{"engine":"{}"}}"#, engine()));
    for folder in [kept.folder.clone(), kept.folder.join(".meta"), kept.folder.join("..")] {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
    }
    assert_eq!((mode(&kept.heap()), mode(&kept.sidecar())), (0o600, 0o600));
}

#[test]
fn a_path_that_is_not_a_regular_file_is_damage_and_does_not_block() {
    let kept = kept();
    fs::remove_file(kept.heap()).expect("remove");
    fs::create_dir(kept.heap()).expect("folder");
    assert_eq!(kept.defect(), Defect::NotAFile);
    fs::remove_dir(kept.heap()).expect("remove");
    rustix::fs::mknodat(rustix::fs::CWD, kept.heap(), rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).expect("pipe");
    assert_eq!(kept.defect(), Defect::NotAFile);
}

#[test]
fn a_file_longer_than_any_heap_is_refused_before_it_is_read() {
    let kept = kept();
    let file = fs::OpenOptions::new().write(true).open(kept.heap()).expect("heap");
    file.set_len(3 << 30).expect("a file with a hole");
    assert_eq!(kept.defect(), Defect::TooLong { bytes: (3 << 30) - 42 });
}

#[test]
fn a_sidecar_may_be_missing_or_have_more_fields_but_not_be_invalid() {
    let kept = kept();
    fs::write(kept.sidecar(), format!(r#"{{"engine":"{}","more":[1]}}"#, engine())).expect("sidecar");
    assert_eq!(kept.heaps.get(&kept.key).expect("get").engine(), Some(&engine()));
    for garbage in ["", "{", "{}", r#"{"engine":"node"}"#, &format!(r#"{{"engine":"{}"}}"#, "x".repeat(100_000))] {
        fs::write(kept.sidecar(), garbage).expect("sidecar");
        assert!(matches!(kept.defect(), Defect::Sidecar { .. }), "{garbage}");
    }
    fs::remove_file(kept.sidecar()).expect("remove");
    assert_eq!(kept.heaps.get(&kept.key).expect("get").engine(), None);
}

#[test]
fn putting_a_heap_again_repairs_missing_and_truncated_files_only() {
    let kept = kept();
    let before = fs::metadata(kept.heap()).expect("heap").ino();
    put(&kept.heaps, 1).expect("put");
    assert_eq!(fs::metadata(kept.heap()).expect("heap").ino(), before, "the same file");
    fs::remove_file(kept.sidecar()).expect("remove");
    put(&kept.heaps, 1).expect("put");
    assert_eq!(kept.heaps.get(&kept.key).expect("get").engine(), Some(&engine()));
    fs::write(kept.heap(), b"MCPV8SNAP\0").expect("cut");
    put(&kept.heaps, 1).expect("put");
    assert!(kept.heaps.get(&kept.key).is_ok());
}

#[test]
fn putting_a_heap_again_refreshes_its_time() {
    let kept = kept();
    let day = Duration::from_secs(24 * 3600);
    fs::File::open(kept.heap()).and_then(|file| file.set_modified(SystemTime::now() - day)).expect("time");
    let age = || kept.heaps.describe(&kept.key).expect("described").stored_at.elapsed().unwrap_or_default();
    assert!(age() >= day);
    put(&kept.heaps, 1).expect("put");
    assert!(age() < day);
}

#[test]
fn a_heap_is_removed_before_its_sidecar() {
    let kept = kept();
    // A sidecar that cannot be removed simulates a crash between the two removals.
    fs::remove_file(kept.sidecar()).expect("remove");
    fs::create_dir(kept.sidecar()).expect("in its way");
    assert!(kept.heaps.remove(&kept.key).is_err());
    assert!(!kept.heap().exists());
    assert!(matches!(kept.heaps.get(&kept.key), Err(HeapStoreError::NotFound { .. })));
    fs::remove_dir(kept.sidecar()).expect("remove");
    kept.heaps.remove(&kept.key).expect("removed");
}

#[test]
fn a_hundred_thousand_heaps_are_listed() {
    let kept = kept();
    for number in 0..100_000_u32 {
        let mut digest = [0xee; 32];
        digest[..4].copy_from_slice(&number.to_be_bytes());
        fs::File::create(kept.folder.join(HeapKey::from_digest(digest).to_string())).expect("an empty file");
    }
    let mut listed = 0;
    kept.heaps
        .list(&mut |_| {
            listed += 1;
            ControlFlow::Continue(())
        })
        .expect("list");
    assert_eq!(listed, 100_001);
}

#[test]
fn tidying_removes_only_old_unfinished_writes() {
    let kept = kept();
    let orphan = kept.folder.join(".meta").join(format!("{}.json", "ab".repeat(32)));
    let names = [".writing-1", ".meta/.writing-2", ".writing-3", "notes.txt"].map(|name| kept.folder.join(name));
    let [stale, stale_sidecar, fresh, foreign] = &names;
    for file in names.iter().chain([&orphan]) {
        fs::write(file, "left behind").expect("file");
    }
    for file in [stale, stale_sidecar, foreign, &orphan, &kept.heap(), &kept.sidecar()] {
        fs::File::open(file).and_then(|file| file.set_modified(SystemTime::now() - Duration::from_secs(100_000))).expect("time");
    }
    kept.heaps.tidy().expect("tidy");
    assert!(![stale, stale_sidecar, &orphan].iter().any(|file| file.exists()));
    assert!(fresh.exists() && foreign.exists());
    assert_eq!(kept.heaps.get(&kept.key).expect("get").engine(), Some(&engine()));
}

#[test]
fn an_unfinished_write_is_not_a_heap() {
    let kept = kept();
    let killed = kept.folder.join(".writing-0123456789abcdef");
    fs::copy(kept.heap(), &killed).expect("a copy that was never named");
    for name in names(&kept.folder).iter().filter(|name| **name != kept.key.to_string()) {
        assert!(name.parse::<HeapKey>().is_err(), "{name}");
    }
}

#[test]
fn a_put_in_a_read_only_folder_fails_and_changes_nothing() {
    let kept = kept();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            forbid_writing_in_this_thread();
            let refused = put(&kept.heaps, 2);
            assert!(matches!(refused, Err(HeapStoreError::Blobs(BlobError::Unavailable { .. }))), "{refused:?}");
            assert!(kept.heaps.check().is_err());
            assert!(kept.heaps.get(&kept.key).is_ok());
            assert!(put(&kept.heaps, 1).is_ok(), "it is there already");
        });
    });
    assert_eq!(names(&kept.folder), [".meta".to_owned(), kept.key.to_string()], "nothing is left behind");
    assert!(kept.heaps.check().is_ok());
    assert_eq!(names(&kept.folder).len(), 2, "nor is the probe");
}

/// Removes write access from this thread with Landlock, which affects root too, unlike a folder's mode.
fn forbid_writing_in_this_thread() {
    use landlock::{ABI, AccessFs, Ruleset, RulesetAttr};
    let ruleset = Ruleset::default().handle_access(AccessFs::from_write(ABI::V2)).expect("rules");
    ruleset.create().expect("ruleset").restrict_self().expect("restricted");
}

#[test]
fn a_well_known_folder_must_belong_to_this_user_and_not_be_a_link() {
    let root = tempfile::tempdir().expect("folder");
    let us = rustix::process::geteuid().as_raw();
    // Root owns everything except what it gives away; other users do not own the root folder.
    let foreign = if us == 0 {
        let given_away = root.path().join("foreign");
        fs::create_dir(&given_away).expect("folder");
        std::os::unix::fs::chown(&given_away, Some(65534), None).expect("chown");
        given_away
    } else {
        PathBuf::from("/")
    };
    match HeapStore::in_folder(&foreign, Owner::Us).map(drop) {
        Err(error @ HeapStoreError::Blobs(BlobError::ForeignFolder { .. })) => {
            assert!(error.to_string().contains("belongs to another user (uid "), "{error}")
        }
        other => panic!("{other:?}"),
    }
    assert!(HeapStore::in_folder(&foreign, Owner::Anyone).is_ok());

    let (ours, link) = (root.path().join("ours"), root.path().join("link"));
    fs::create_dir(&ours).expect("folder");
    std::os::unix::fs::symlink(&ours, &link).expect("link");
    assert!(HeapStore::in_folder(&ours, Owner::Us).is_ok());
    assert!(matches!(HeapStore::in_folder(&link, Owner::Us), Err(HeapStoreError::Blobs(BlobError::NotAFolder { .. }))));
    assert!(HeapStore::in_folder(&link, Owner::Anyone).is_ok());

    let file = root.path().join("file");
    fs::write(&file, "").expect("file");
    assert!(matches!(HeapStore::in_folder(&file, Owner::Anyone), Err(HeapStoreError::Blobs(BlobError::NotAFolder { .. }))));
    assert!(matches!(HeapStore::in_folder(&file.join("below"), Owner::Anyone), Err(HeapStoreError::Blobs(BlobError::Unavailable { .. }))));
}

#[test]
fn the_key_of_a_heap_is_the_sha_256_of_its_payload() {
    let key = key_of(&vec![0; PAYLOAD_BYTES_MIN]).expect("a heap").to_string();
    // head -c 102400 /dev/zero | sha256sum
    assert_eq!(key, "f627ca4c2c322f15db26152df306bd4f983f0146409b81a4341b9b340c365a16");
}

/// The same heap is produced repeatedly, so a put must not report success while the stored file is damaged.
#[test]
fn putting_a_heap_again_repairs_a_damaged_file() {
    let folder = tempfile::tempdir().expect("folder");
    let heaps = HeapStore::in_folder(folder.path(), Owner::Anyone).expect("store");
    let engine: EngineId = "v8-14.6/x86_64/flags-0000001a/natives-3-0000005e".parse().expect("an engine id");
    let payload = vec![1; PAYLOAD_BYTES_MIN];
    let key = heapstead_store::key_of(&payload).expect("a heap");
    heaps.put(&key, &payload, &HeapLabel::unsigned(Some(engine.clone()))).expect("stored");
    let path = folder.path().join(key.to_string());
    let mut file = std::fs::read(&path).expect("the file");
    file[5000] ^= 1;
    std::fs::write(&path, file).expect("damaged");
    assert!(heaps.get(&key).is_err());
    heaps.put(&key, &payload, &HeapLabel::unsigned(Some(engine.clone()))).expect("stored again");
    assert_eq!(heaps.get(&key).expect("whole again").payload(), payload);
}

#[test]
fn tidying_includes_the_folders_of_names() {
    let root = tempfile::tempdir().expect("folder");
    let blobs = FolderBlobs::open(root.path(), Owner::Us).expect("store");
    let metadata = BlobMetadata::default().with("engine", "x".into()).expect("metadata");
    let name = |text: &str| text.parse::<BlobName>().expect("a name");
    for text in ["ab/kept", "ab/lost"] {
        blobs.put(&name(text), &[b"bytes"], &metadata).expect("put");
    }
    assert_eq!(names(&root.path().join(".meta/ab")), ["kept.json", "lost.json"]);
    assert_eq!((mode(&root.path().join("ab")), mode(&root.path().join(".meta/ab"))), (0o700, 0o700));
    fs::remove_file(root.path().join("ab/lost")).expect("lost");
    fs::write(root.path().join("ab/.writing-1"), "half a blob").expect("left behind");
    for file in ["ab/.writing-1", "ab/kept", ".meta/ab/kept.json", ".meta/ab/lost.json"] {
        let file = fs::File::open(root.path().join(file)).expect("file");
        file.set_modified(SystemTime::now() - Duration::from_secs(100_000)).expect("time");
    }
    blobs.tidy().expect("tidy");
    assert_eq!(names(&root.path().join("ab")), ["kept"]);
    assert_eq!(names(&root.path().join(".meta/ab")), ["kept.json"]);
}
