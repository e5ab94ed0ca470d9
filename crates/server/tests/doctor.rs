//! `heapstead doctor`: reports what is present, and for what is missing, how to fix it.

mod common;

use common::{Place, Ran};
use seccompiler::{BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch};
use std::os::unix::process::CommandExt;

const NAMES: [&str; 15] = [
    "V8 host",
    "worker library",
    "Landlock",
    "seccomp",
    "pidfd_open",
    "memfd sealing",
    "cgroup",
    "engine",
    "stateful code",
    "live sessions",
    "heap folder",
    "disk space",
    "database",
    "heap signatures",
    "contexts",
];

/// Layers of confinement that not every kernel has. Without them there is a warning.
const LAYERS: [&str; 4] = ["namespaces", "user id", "empty root directory", "speculation"];

#[test]
fn all_checks_pass_on_a_working_machine() {
    let place = Place::new();
    let ran = place.ran(["doctor"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let is_layer = |line: &str| LAYERS.iter().any(|name| line[line.find(' ').unwrap_or(0)..].starts_with(&format!(" {name}: ")));
    let required: Vec<&str> = ran.out.lines().filter(|line| !line.starts_with("    →") && !is_layer(line)).collect();
    for (line, name) in required.iter().zip(NAMES) {
        assert!(line.starts_with(&format!("✓ {name}: ")), "{line}");
    }
    assert_eq!(required.len(), NAMES.len(), "{ran:?}");
    assert!(ran.out.contains("ran 1+1 in "), "{ran:?}");
    // The test itself is a process in the same group, so it is never delegated here.
    assert!(ran.out.contains("✓ cgroup: not used: ") && ran.out.contains("`Delegate=cpu memory pids`"), "{ran:?}");
    let warnings = ran.out.lines().filter(|line| line.starts_with("! ")).count();
    match warnings {
        0 => assert_eq!(ran.err, "everything is present\n"),
        _ => assert_eq!(ran.err, format!("everything required is present; {warnings} warnings: see → above\n")),
    }
}

/// Without namespaces the engine still runs, because all other layers are in effect, and the operator learns how to allow them.
#[test]
fn missing_layers_of_confinement_are_warnings() {
    let place = Place::new();
    let doctor = |arguments: &[&str]| -> Ran {
        let mut command = place.command(["doctor"].iter().chain(arguments));
        let filter = filter_without_namespaces();
        // SAFETY: between fork and exec only two system calls are made.
        unsafe { command.pre_exec(move || seccompiler::apply_filter(&filter).map_err(|_| std::io::ErrorKind::Other.into())) };
        command.output().expect("it runs").into()
    };
    let ran = doctor(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in ["✓ engine: ", "! namespaces: entered: none; ", "    → allow unprivileged user namespaces ("] {
        assert!(ran.out.contains(part), "`{part}` is not in {ran:?}");
    }
    let report = doctor(&["--json"]).json();
    let checks = report["checks"].as_array().expect("a list");
    let namespaces = checks.iter().find(|check| check["name"] == "namespaces").expect("the check");
    assert_eq!((&namespaces["ok"], &namespaces["warning"], &report["ok"]), (&true.into(), &true.into(), &true.into()));
    let required = doctor(&["--namespaces", "required"]);
    assert_eq!(required.code, Some(1), "{required:?}");
    assert!(required.out.contains("✗ engine: it does not start: namespaces are required (`--namespaces required`)"), "{required:?}");
}

/// Refuses to clone a process into a new host name namespace, which is one of those that a zygote needs.
fn filter_without_namespaces() -> BpfProgram {
    let (arch, wanted) = (TargetArch::try_from(std::env::consts::ARCH).expect("an architecture"), libc::CLONE_NEWUTS as u64);
    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(wanted), wanted).expect("a condition");
    let rules = [(libc::SYS_clone, vec![SeccompRule::new(vec![condition]).expect("a rule")])];
    let refusal = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules.into(), SeccompAction::Allow, refusal, arch).expect("a filter");
    filter.try_into().expect("a program")
}

#[test]
fn unsigned_heaps_are_reported() {
    let place = Place::new();
    let (_, key) = place.completed("1", &[]);
    let label: serde_json::Value = serde_json::from_slice(&std::fs::read(place.sidecar(&key)).expect("a sidecar")).expect("JSON");
    std::fs::write(place.sidecar(&key), serde_json::json!({ "engine": label["engine"] }).to_string()).expect("written");
    let ran = place.ran(["doctor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("✗ heap signatures: ") && ran.out.contains("run `heapstead heaps sign --all`"), "{ran:?}");
    assert_eq!(place.ran(["heaps", "sign", "--all"]).code, Some(0));
    assert_eq!(place.ran(["doctor"]).code, Some(0));
}

#[test]
fn json_output_has_the_same_checks() {
    let ran = Place::new().ran(["doctor", "--json"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["ok"], true);
    let checks = report["checks"].as_array().expect("a list");
    let required = || checks.iter().filter(|check| !LAYERS.iter().any(|layer| check["name"] == *layer));
    assert_eq!(required().filter_map(|check| check["name"].as_str()).collect::<Vec<_>>(), NAMES);
    for check in required() {
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

/// An operator has to know what a server can take before it is started.
#[test]
fn the_memory_bound_is_computed_from_the_flags() {
    let bound = |flags: &[&str]| {
        let ran = Place::new().ran([&["doctor", "--limits", "--json"], flags].concat());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
        ran.json()
    };
    let default = bound(&[]);
    for (total, part) in [("server_mb", "server"), ("workers_mb", "workers")] {
        let parts = default[part].as_array().expect("a list").iter().map(|contributor| contributor["mb"].as_u64().expect("a number"));
        assert_eq!(default[total], parts.sum::<u64>(), "{default}");
    }
    let server_mb = |flags: &[&str]| bound(flags)["server_mb"].as_u64().expect("a number");
    let all = server_mb(&[]);
    let further_cores = std::thread::available_parallelism().map_or(0, |cores| cores.get() as u64).saturating_sub(2);
    assert!(all < 4096 + 64 * further_cores, "with the defaults a server takes less than 4 GB: {all}");
    for smaller in [
        ["--max-source-mb", "16"],
        ["--max-queued", "1"],
        ["--max-concurrent-executions", "1"],
        ["--max-connections", "40"],
        ["--max-body-mb", "200"],
        ["--max-response-mb", "16"],
        ["--context-store", "none"],
    ] {
        assert!(server_mb(&smaller) < all, "{smaller:?}");
    }
    assert_eq!(server_mb(&["--max-answer-mb", "228"]), all + 2 * 100);
    assert!(bound(&["--max-memory-mb", "1000"])["workers_mb"].as_u64() < default["workers_mb"].as_u64());
    let table = Place::new().ran(["doctor", "--limits"]);
    assert!(table.out.lines().any(|line| line.starts_with("server: all") && line.contains(&all.to_string())), "{table:?}");
}
