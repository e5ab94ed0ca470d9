//! Native probes: test from inside what a worker may do, with native code instead of JavaScript.
//!
//! The probes run in place of user code, in a worker that the production code forked and confined (see `crates/probes`).

mod common;

use common::{brief, config, environments, job, probes, processes, production, run, start, start_with, submit};
use heapstead_engine::{Artifacts, Config, Engine, HeapImage, Job, Kind, Outcome, ZygoteSettings};
use heapstead_types::{Failure, Stage};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;

const POLICY: &str = include_str!("../../worker/policy/seccomp.json");

/// Numbers of the system calls that the policy may name. A missing one fails the test by name.
macro_rules! numbers {
    ($($name:ident)*) => { &[$((stringify!($name), libc::$name)),*] };
}

const NUMBERS: &[(&str, libc::c_long)] = numbers! {
    SYS_read SYS_recvmsg SYS_write SYS_writev SYS_ppoll SYS_close SYS_fstat SYS_mmap SYS_munmap SYS_mremap SYS_mprotect SYS_pkey_mprotect SYS_madvise SYS_brk
    SYS_futex SYS_sched_yield SYS_clock_gettime SYS_clock_getres SYS_gettimeofday SYS_getrandom SYS_getpid SYS_gettid SYS_rt_sigprocmask
    SYS_rt_sigaction SYS_rt_sigreturn SYS_exit SYS_exit_group
};
/// Calls that newer kernels exempt from every filter (`uretprobe`, `uprobe`): they serve the kernel's own trampolines and fail for other
/// callers.
#[cfg(target_arch = "x86_64")]
const PAST_ANY_FILTER: &[(libc::c_long, &str)] = &[(335, "(signal 4)"), (336, "No such device or address")];
#[cfg(not(target_arch = "x86_64"))]
const PAST_ANY_FILTER: &[(libc::c_long, &str)] = &[];

/// The numbers of the calls that the policy allows, and whether with any arguments.
fn allowed() -> BTreeMap<libc::c_long, bool> {
    let policy: serde_json::Value = serde_json::from_str(POLICY).expect("JSON");
    let rules = policy["worker"]["filter"].as_array().expect("a list of rules");
    let number = |name: &str| {
        let known = NUMBERS.iter().find(|(known, _)| known.strip_prefix("SYS_") == Some(name));
        known.unwrap_or_else(|| panic!("the policy allows `{name}`: add it to this test's numbers")).1
    };
    rules.iter().map(|rule| (number(rule["syscall"].as_str().expect("a name")), rule["args"].is_null())).collect()
}

/// Runs every job in its own worker, many concurrently, and names each that did not end as expected.
async fn check_all<T>(engine: &Engine, cases: Vec<(T, Job)>, is_right: impl Fn(&T, &str) -> bool)
where
    T: std::fmt::Debug,
{
    let running: Vec<_> = cases.into_iter().map(|(case, job)| (case, submit(engine, job))).collect();
    let mut wrong = Vec::new();
    for (case, execution) in running {
        let outcome = brief(&common::end_of(execution).await.1);
        if !is_right(&case, &outcome) {
            wrong.push(format!("{case:?}: {outcome}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn system_calls_outside_the_policy_kill_the_worker() {
    let allowed = allowed();
    let engine = start(probes()).await;
    let cases = (0..=511).map(|number| (number, job(format!("call {number}"), Kind::Stateless))).collect();
    let exempt = |number| PAST_ANY_FILTER.iter().find(|(exempt, _)| *exempt == number);
    check_all(&engine, cases, |number, outcome| match (allowed.get(number), exempt(*number)) {
        (Some(true), _) => !["SIGSYS", "timed out"].contains(&outcome),
        // The policy decides whether these arguments are allowed; the call must end.
        (Some(false), _) => outcome != "timed out",
        (None, Some((_, refusal))) => outcome == "SIGSYS" || outcome.contains(refusal),
        (None, None) => outcome == "SIGSYS",
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_escape_attempt_kills_the_worker() {
    let engine = start(probes()).await;
    let names = brief(&run(&engine, job("attempts", Kind::Stateless)).await);
    let cases: Vec<_> = names.lines().map(|name| (name, job(format!("attempt {name}"), Kind::Stateless))).collect();
    assert!(cases.len() > 90, "only {} attempts", cases.len());
    check_all(&engine, cases, |name, outcome| match *name {
        // A kernel without 32-bit calls treats the gate as a plain fault.
        "getpid as a 32-bit process calls it" => outcome == "SIGSYS" || outcome.contains("(signal 11)"),
        _ => outcome == "SIGSYS",
    })
    .await;
}

/// V8's compilers need executable memory. Without them, nothing in a worker does.
#[tokio::test(flavor = "multi_thread")]
async fn memory_is_executable_only_if_v8_compiles() {
    for (jitless, outcome) in [(false, "executable"), (true, "SIGSYS")] {
        let settings = ZygoteSettings { jitless, ..ZygoteSettings::default() };
        let engine = start_with(Config { settings, ..config(probes()) }).await;
        for way in ["map", "protect", "protect with a key"] {
            let job = job(format!("executable {way}"), Kind::Stateless);
            assert_eq!(brief(&run(&engine, job).await), outcome, "{way}, jitless: {jitless}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn creating_a_socket_of_any_family_kills_the_worker() {
    let engine = start(probes()).await;
    let cases = (0..=45).map(|family| (family, job(format!("socket {family}"), Kind::Stateless))).collect();
    check_all(&engine, cases, |_, outcome| outcome == "SIGSYS").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_limited_in_every_way_of_allocation() {
    /// The maximum memory of a run with the minimum heap (8 MB) beyond what it was forked with.
    const MEMORY_MB_MAX: usize = 256;
    /// A refusal below this is not caused by the limit.
    const MEMORY_MB_MIN: usize = 64;
    let engine = start(probes()).await;
    for way in ["map", "commit", "commit with a key", "grow", "break", "allocate"] {
        let outcome = brief(&run(&engine, job(format!("memory {way}"), Kind::Stateless)).await);
        let got_mb: usize = outcome.parse().unwrap_or_else(|_| panic!("memory {way}: {outcome}"));
        assert!((MEMORY_MB_MIN..=MEMORY_MB_MAX).contains(&got_mb), "memory {way}: {got_mb} MB");
    }
}

/// The kernel does not count these as data, so no limit would apply.
#[tokio::test(flavor = "multi_thread")]
async fn allocating_memory_that_the_limit_does_not_count_kills_the_worker() {
    let engine = start(probes()).await;
    for way in ["shared", "stack"] {
        assert_eq!(brief(&run(&engine, job(format!("memory {way}"), Kind::Stateless)).await), "SIGSYS", "memory {way}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heap_with_a_key_can_not_be_changed() {
    let engine = start(probes()).await;
    let content = vec![7; 8192];
    let heap = HeapImage::from_payload(&content).expect("a heap");
    // The seal refuses shared mappings. If the policy refuses them first, the worker is killed.
    for (way, outcomes) in [("write", &["EPERM"][..]), ("map", &["EPERM", "SIGSYS"]), ("unprotect", &["EACCES", "SIGSYS"])] {
        let outcome = brief(&run(&engine, job(format!("heap {way}"), Kind::Stateful(Some(heap.clone())))).await);
        assert!(outcomes.contains(&outcome.as_str()), "heap {way}: {outcome}");
        assert_eq!(heap.payload().expect("payload"), content, "heap {way}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heap_that_changes_while_it_is_saved_matches_its_key_or_is_rejected() {
    let engine = start(probes()).await;
    for _ in 0..100 {
        match run(&engine, job("fake heap that changes", Kind::Stateful(None))).await {
            Outcome::Completed { heap: Some(heap), .. } => {
                let payload = heap.payload().expect("payload");
                assert_eq!(heap.key().digest(), &<[u8; 32]>::from(Sha256::digest(&payload)));
                assert_eq!(payload, b"the bytes of one heap");
            }
            Outcome::Failed(Failure::WorkerMisbehaved(what)) => assert_eq!(what, "the heap it wrote is not the one it announced"),
            other => panic!("{other:?}"),
        }
    }
}

/// Lowers the snapshot quota for all later workers, which inherit it like the real limit.
fn lower_quota(parts: &Artifacts, bytes: u64) {
    let zygote = processes::zygote_of(processes::this(), &parts.base_heap).expect("a zygote");
    let user = |field| processes::status(zygote, field).split_ascii_whitespace().next().expect("an id").parse().expect("a number");
    // A process may limit others of the same user, and root's zygote has a user of its own.
    let mut lower = Command::new("prlimit");
    lower.args(["--pid", &zygote.to_string(), &format!("--fsize={bytes}:{bytes}")]).uid(user("Uid")).gid(user("Gid"));
    assert!(lower.status().expect("prlimit").success(), "a lower limit");
}

#[tokio::test(flavor = "multi_thread")]
async fn writing_a_heap_stops_at_the_file_size_limit() {
    let parts = probes();
    let engine = start(parts.clone()).await;
    lower_quota(&parts, 16 << 20);
    let (_, outcome) = common::end_of(submit(&engine, job("fake heap without end", Kind::Stateful(None)))).await;
    // The fake stops at the first refusal; without one it would continue until its timeout.
    assert!(
        matches!(outcome, Outcome::Failed(Failure::WorkerCrashed { stage: Stage::Saving, signal: None | Some(libc::SIGXFSZ) })),
        "{outcome:?}"
    );
}

/// No code produces a snapshot above the real quota, which is larger than heap and buffers together: memory runs out first.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_over_the_quota_fails_with_its_length_and_the_quota() {
    let parts = production();
    let engine = start(parts.clone()).await;
    lower_quota(&parts, 4 << 20);
    let keeps = |mb: u32| {
        let mut job = job(format!("var kept = new Uint8Array({mb} << 20); kept.length >> 20"), Kind::Stateful(None));
        job.limits.heap_mb = 16;
        job
    };
    assert_eq!(brief(&run(&engine, keeps(3)).await), "3");
    assert_eq!(
        brief(&run(&engine, keeps(5)).await),
        "the heap can't be saved: its snapshot takes 6 MB, and with a cap of 16 MB it may take 4 MB: keep less (buffers count), or raise `heap_memory_max_mb`"
    );
}

/// Tests usually run as root.
#[test]
fn probes_fail_for_ordinary_users_and_in_containers() {
    environments::test_all_but("probes_fail_for_ordinary_users_and_in_containers");
}
