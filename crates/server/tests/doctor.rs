//! `heapstead doctor`: reports what is present, and for what is missing, how to fix it.

mod common;

use common::{Place, Ran};

const NAMES: [&str; 11] = [
    "V8 host",
    "worker library",
    "Landlock",
    "seccomp",
    "pidfd_open",
    "memfd sealing",
    "engine",
    "heap folder",
    "disk space",
    "database",
    "contexts",
];

#[test]
fn all_checks_pass_on_a_working_machine() {
    let place = Place::new();
    let ran = place.ran(["doctor"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for (line, name) in ran.out.lines().zip(NAMES) {
        assert!(line.starts_with(&format!("✓ {name}: ")), "{line}");
    }
    assert_eq!(ran.out.lines().count(), NAMES.len(), "{ran:?}");
    assert!(ran.out.contains("ran 1+1 in "), "{ran:?}");
    assert_eq!(ran.err, "everything is present\n");
}

#[test]
fn json_output_has_the_same_checks() {
    let ran = Place::new().ran(["doctor", "--json"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["ok"], true);
    let checks = report["checks"].as_array().expect("a list");
    assert_eq!(checks.iter().filter_map(|check| check["name"].as_str()).collect::<Vec<_>>(), NAMES);
    for check in checks {
        assert_eq!(check["ok"], true, "{check}");
        assert!(check["detail"].is_string() && check.get("fix").is_none(), "{check}");
    }
}

#[test]
fn missing_parts_are_named_with_a_fix() {
    let place = Place::new();
    let file = place.file("file", "");
    let doctor = |arguments: &[&str]| -> Ran {
        place
            .command(["doctor", "--directory-path", &file].iter().chain(arguments))
            .env("HEAPSTEAD_ENGINE_DIR", place.path("empty"))
            .output()
            .expect("it runs")
            .into()
    };
    let ran = doctor(&[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for part in [
        "✗ V8 host: there is no ",
        "✗ worker library: ",
        "✗ engine: it does not start",
        "✗ heap folder: ",
        "→ run `make build`",
        "--directory-path DIR",
    ] {
        assert!(ran.out.contains(part), "`{part}` is not in {ran:?}");
    }
    assert!(ran.out.contains("✓ Landlock"), "the other checks still run: {ran:?}");
    assert_eq!(ran.err, "4 missing: see → above\n");
    let report = doctor(&["--json"]).json();
    assert_eq!(report["ok"], false);
    for check in report["checks"].as_array().expect("a list") {
        assert_eq!(check["ok"] == false, check["fix"].is_string(), "{check}");
    }
}

#[test]
fn a_non_executable_host_is_distinguished_from_a_missing_one() {
    let place = Place::new();
    std::fs::create_dir(place.path("parts")).expect("folder");
    place.file("parts/heapstead-v8-host", "");
    place.file("parts/libheapstead_v8.so", "");
    let ran: Ran = place.command(["doctor"]).env("HEAPSTEAD_ENGINE_DIR", place.path("parts")).output().expect("it runs").into();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("✗ V8 host: ") && ran.out.contains("can't be used: Permission denied"), "{ran:?}");
    assert!(ran.out.contains("✓ worker library: "), "{ran:?}");
}

#[test]
fn the_context_store_is_checked_as_a_server_would_use_it() {
    let place = Place::new();
    let contexts = |arguments: &[&str]| -> Option<serde_json::Value> {
        let report = place.ran(["doctor", "--json"].iter().chain(arguments)).json();
        report["checks"].as_array().expect("a list").iter().find(|check| check["name"] == "contexts").cloned()
    };
    let keys = place.file("keys", format!("k7 {}\n", "ab".repeat(32)));
    std::fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("private");
    for (arguments, is_ok, says) in [
        (&[][..], true, "context.db can be read and written"),
        (&["--context-store", "memory"], true, "in memory; "),
        (&["--context-key-file", &keys], true, "the key `k7` encrypts"),
        (&["--context-key-file", "none"], false, "the key file none can't be read"),
        (&["--context-store", "redis", "--redis-url", "redis://127.0.0.1:1"], false, "the context store (redis) can't be used now"),
        (&["--context-store", "redis"], false, "`--redis-url` is missing"),
    ] {
        let check = contexts(arguments).unwrap_or_else(|| panic!("{arguments:?}: nothing is said"));
        assert_eq!((&check["ok"], check["fix"].is_string()), (&is_ok.into(), !is_ok), "{check}");
        assert!(check["detail"].as_str().is_some_and(|detail| detail.contains(says)), "{check}");
    }
    for arguments in [["--context-store", "none"].as_slice(), &["--stateless"]] {
        assert_eq!(contexts(arguments), None, "{arguments:?}");
    }
}
