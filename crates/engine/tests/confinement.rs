//! Confinement from outside: what `/proc` shows of a production worker, and that no worker runs if a step of confinement fails.

mod common;

use common::{brief, config, environments, job, probes, processes, production, run, start, start_with, submit};
use heapstead_engine::{Artifacts, Config, Engine, Kind, Namespaces};
use rustix::thread::CapabilitySet;
use seccompiler::{BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch};
use std::process::Command;

const AWAITING: &str = "console.log('here'); await new Promise(done => setTimeout(done, 60_000))";
const NO_CAPABILITY: &str = "0000000000000000";

/// A production worker during a run.
struct Running {
    zygote: i32,
    worker: i32,
}

async fn while_one_runs(look: impl FnOnce(Running)) {
    let parts = production();
    let engine = start(parts.clone()).await;
    let mut execution = submit(&engine, job(AWAITING, Kind::Stateful(None)));
    common::begun(&mut execution).await;
    let zygote = processes::zygote_of(processes::this(), &parts.base_heap).expect("a zygote");
    let [worker] = processes::children_of(zygote)[..] else { panic!("one worker") };
    look(Running { zygote, worker });
}

/// The variables that the engine sets; a worker has no others.
const ENVIRONMENT: &[&str] = &["LD_BIND_NOW", "LD_PRELOAD", "TZ"];

fn check_environment<'a>(variables: impl Iterator<Item = &'a str>) {
    assert!(std::env::vars().any(|(name, _)| !ENVIRONMENT.contains(&name.as_str())), "nothing in our own environment to leak");
    for variable in variables {
        let name = variable.split('=').next().expect("a name");
        assert!(ENVIRONMENT.contains(&name), "a worker has {variable}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_production_worker_is_filtered_and_has_no_privileges() {
    while_one_runs(|Running { zygote, worker, .. }| {
        let filters_of = |pid| processes::status(pid, "Seccomp_filters").parse::<u32>().expect("a number");
        // The filter of the zygote is the one that asks it about clones, where workers can be live.
        assert!((filters_of(processes::this())..=filters_of(processes::this()) + 1).contains(&filters_of(zygote)));
        for (pid, field, value) in [
            (worker, "Seccomp", "2"),
            (worker, "Seccomp_filters", &(filters_of(zygote) + 1).to_string()),
            (worker, "Threads", "1"),
            (worker, "NoNewPrivs", "1"),
            (worker, "CapInh", NO_CAPABILITY),
            (worker, "CapPrm", NO_CAPABILITY),
            (worker, "CapEff", NO_CAPABILITY),
            (worker, "CapAmb", NO_CAPABILITY),
            (zygote, "Threads", "1"),
            (zygote, "NoNewPrivs", "1"),
            (zygote, "CapPrm", NO_CAPABILITY),
            (zygote, "CapEff", NO_CAPABILITY),
        ] {
            assert_eq!(processes::status(pid, field), value, "{field} of {}", if pid == worker { "a worker" } else { "the zygote" });
        }
        // Emptying this set needs a capability that the server may lack. Without it, a capability that is not permitted cannot come back
        // either.
        if we_have(CapabilitySet::SETPCAP) {
            assert_eq!(processes::status(worker, "CapBnd"), NO_CAPABILITY);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_production_worker_has_its_limits() {
    /// The maximum memory of a run with the minimum heap (8 MB) beyond what the zygote had.
    const DATA_BYTES_MAX: u64 = 256 << 20;
    while_one_runs(|Running { zygote, worker, .. }| {
        let limits = std::fs::read_to_string(format!("/proc/{worker}/limits")).expect("limits");
        let hard_and_soft = |name: &str| {
            let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no `{name}` in\n{limits}"));
            let mut values = line.split_ascii_whitespace();
            let (soft, hard) = (values.next().expect("soft"), values.next().expect("hard"));
            assert_eq!(soft, hard, "{name}: a soft limit could be raised");
            hard.parse::<u64>().unwrap_or(u64::MAX)
        };
        for (name, most) in [
            ("Max core file size", 0),
            ("Max locked memory", 0),
            ("Max msgqueue size", 0),
            ("Max processes", 0),
            ("Max open files", 16),
            ("Max file size", 8 << 30),
        ] {
            assert!(hard_and_soft(name) <= most, "{name}: {}, at most {most} expected", hard_and_soft(name));
        }
        let inherited_kb: u64 = processes::status(zygote, "VmData").trim_end_matches(" kB").parse().expect("a number");
        let beyond = hard_and_soft("Max data size").saturating_sub(inherited_kb << 10);
        assert!((1..=DATA_BYTES_MAX).contains(&beyond), "{beyond} bytes beyond the zygote's, at most {DATA_BYTES_MAX} expected");
    })
    .await;
}

/// Workers had the same score as the server, so a machine without memory could lose the server to a run.
#[tokio::test(flavor = "multi_thread")]
async fn the_kernel_kills_workers_before_the_server() {
    let score = |process: &str| std::fs::read_to_string(format!("/proc/{process}/oom_score_adj")).expect("a score").trim().to_owned();
    let own = score("self");
    while_one_runs(|Running { worker, zygote, .. }| {
        assert_eq!((score(&worker.to_string()), score(&zygote.to_string())), ("1000".into(), "1000".into()));
        assert_eq!(score("self"), own);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_production_worker_inherits_no_descriptor_or_variable_of_the_server() {
    while_one_runs(|Running { worker, .. }| {
        let folder = format!("/proc/{worker}/fd");
        let Ok(entries) = std::fs::read_dir(&folder) else {
            // Only root may inspect a worker; the next test inspects from inside.
            assert!(!we_have(CapabilitySet::SYS_PTRACE), "{folder} can't be read");
            return;
        };
        let mut held: Vec<(i32, String)> = entries
            .map(|entry| {
                let entry = entry.expect("an entry");
                let target = std::fs::read_link(entry.path()).expect("a link").display().to_string();
                let kind = target.split(':').next().expect("a word").to_owned();
                (entry.file_name().to_str().and_then(|name| name.parse().ok()).expect("a number"), kind)
            })
            .collect();
        held.sort();
        let expected = [(0, "/dev/null"), (1, "/dev/null"), (2, "/dev/null"), (3, "socket"), (4, "/memfd")];
        assert_eq!(held.iter().map(|(descriptor, kind)| (*descriptor, kind.as_str())).collect::<Vec<_>>(), expected);
        let environment = std::fs::read(format!("/proc/{worker}/environ")).expect("environment");
        check_environment(String::from_utf8_lossy(&environment).split_terminator('\0'));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_sees_no_descriptor_or_variable_of_the_server() {
    let engine = start(probes()).await;
    let seen = brief(&run(&engine, job("inside", Kind::Stateful(None))).await);
    let (open, environment) = seen.split_once('\n').expect("two parts");
    assert_eq!(open, "open: 0 1 2 3 4");
    check_environment(environment.lines());
}

/// V8 uses more system calls with larger heaps. None of them may be one that kills the worker.
#[tokio::test(flavor = "multi_thread")]
async fn the_policy_is_sufficient_for_workers_of_any_size() {
    let engine = start_with(Config { memory_mb_max: u64::MAX, ..config(production()) }).await;
    for heap_mb in [8, 64, 512, 1024, 2047, 2048, 4095, 4096] {
        for kind in [Kind::Stateless, Kind::Stateful(None)] {
            let mut job = job("[1, 2, 3].reduce((sum, next) => sum + next)", kind);
            job.limits.heap_mb = heap_mb;
            assert_eq!(brief(&run(&engine, job).await), "6", "{heap_mb} MB");
        }
    }
}

/// In a worker the seccomp filter hides the layer below it. That layer must hold on its own as well.
#[test]
fn the_confinement_of_the_zygote_holds_without_the_filter() {
    let parts = probes();
    let output = Command::new(&parts.host).arg("outer-layer").env_clear().env("LD_PRELOAD", &parts.worker).output().expect("a process");
    let said = String::from_utf8(output.stdout).expect("text");
    let landlock: u32 = said.lines().find_map(|line| line.strip_prefix("landlock: ")?.parse().ok()).expect("landlock's version");
    for (attempt, outcome, since_landlock) in [
        ("read a file", "EACCES", 1),
        ("make a file", "EACCES", 1),
        ("list a folder", "EACCES", 1),
        ("make a folder", "EACCES", 1),
        ("read its own memory", "EACCES", 1),
        ("execute", "EACCES", 1),
        ("mount", "EPERM", 1),
        ("chroot", "EPERM", 1),
        ("raise a limit", "EPERM", 1),
        ("take capabilities", "EPERM", 1),
        ("bind a TCP port", "EACCES", 4),
        ("connect to a TCP port", "EACCES", 4),
        ("signal the parent process", "EPERM", 6),
    ] {
        if landlock >= since_landlock {
            assert!(said.lines().any(|line| line == format!("{attempt}: {outcome}")), "{attempt}: {outcome} expected of\n{said}");
        }
    }
    for (kind, field) in [("store bypass", "Speculation_Store_Bypass"), ("indirect branches", "SpeculationIndirectBranch")] {
        let outcome = said.lines().find_map(|line| line.strip_prefix(&format!("turn speculation of {kind} on again: "))).expect("tried");
        // Elsewhere the kernel offers no choice.
        if ["thread vulnerable", "conditional enabled"].contains(&processes::status(processes::this(), field).as_str()) {
            assert_eq!(outcome, "EPERM", "{kind}");
        }
    }
}

/// The namespaces of a zygote hide the layers above from tests, and are hidden by them. They must hold on their own as well.
#[test]
fn the_namespaces_of_the_zygote_hold_without_the_other_layers() {
    let key = 0x6865_6170 ^ processes::this();
    // SAFETY: no pointers. A segment of shared memory that any user may use.
    let segment = unsafe { libc::shmget(key, 4096, libc::IPC_CREAT | 0o666) };
    assert_ne!(segment, -1, "shared memory: {}", std::io::Error::last_os_error());
    let parts = probes();
    let mut command = Command::new(&parts.host);
    let output = command.args(["namespaces", &key.to_string()]).env_clear().env("LD_PRELOAD", &parts.worker).output().expect("a process");
    // SAFETY: no pointers but null.
    unsafe { libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut()) };
    let said = String::from_utf8(output.stdout).expect("text");
    if !said.contains("layer namespaces: Ok") {
        return assert!(!can_make_namespaces(), "{said}");
    }
    for line in [
        "its process id: 1",
        "its user id: 65534",
        "its group id: 65534",
        "signal the server: No such process (os error 3)",
        "open a file of the machine: No such file or directory (os error 2)",
        "open /proc: No such file or directory (os error 2)",
        "leave the root directory: No such file or directory (os error 2)",
        "make a file: Read-only file system (os error 30)",
        "connect to a port of the machine: Network is unreachable (os error 101)",
        "entries of the root directory: 0",
        "find shared memory of the machine: No such file or directory (os error 2)",
        "host name: worker",
    ] {
        assert!(said.lines().any(|said| said == line), "`{line}` expected of\n{said}");
    }
}

/// Whether the kernel lets this process create namespaces.
fn can_make_namespaces() -> bool {
    Command::new("unshare").args(["--user", "--pid", "--net", "true"]).status().is_ok_and(|status| status.success())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_production_worker_has_namespaces_and_a_user_of_its_own() {
    while_one_runs(|Running { zygote, worker, .. }| {
        if !can_make_namespaces() {
            return;
        }
        let id_of = |pid: i32, kind: &str| std::fs::read_link(format!("/proc/{pid}/ns/{kind}"));
        for kind in ["user", "pid", "net", "ipc", "mnt", "uts", "cgroup"] {
            let Ok(of_worker) = id_of(worker, kind) else {
                // Only root may inspect a worker.
                return assert!(!we_have(CapabilitySet::SYS_PTRACE), "/proc/{worker}/ns/{kind} can't be read");
            };
            assert_ne!(of_worker, id_of(processes::this(), kind).expect("our own"), "{kind}");
            assert_eq!(of_worker, id_of(zygote, kind).expect("the zygote's"), "{kind}");
        }
        assert_eq!(processes::status(zygote, "NSpid").split_ascii_whitespace().last(), Some("1"), "the zygote is process 1");
        assert_eq!(std::fs::read_to_string(format!("/proc/{worker}/mountinfo")).expect("mounts").lines().count(), 1, "an empty root");
        if we_have(CapabilitySet::SETUID) {
            let ids = processes::status(worker, "Uid");
            let id: u32 = ids.split_ascii_whitespace().next().expect("an id").parse().expect("a number");
            assert!(id >= 1 << 31, "a user of its own, not {id}");
            assert_eq!(processes::status(worker, "Groups"), "", "no group of root");
        }
    })
    .await;
}

/// Without the kernel's permission the engine runs without namespaces, reports that, and all other layers stay required.
#[test]
fn namespaces_that_the_kernel_forbids_are_reported_or_required() {
    let start = |refused: Refusal, namespaces: Namespaces| {
        with_refused_calls(&[refused], move |parts| async move {
            let engine = Engine::start(Config { namespaces, ..config(parts) }).await.map_err(|error| error.to_string())?;
            let missing: Vec<_> = engine.layers().iter().filter_map(|layer| layer.outcome.clone().err()).collect();
            Ok::<_, String>((missing, brief(&run(&engine, job("1 + 1", Kind::Stateless)).await)))
        })
    };
    let clone = || Refusal { bits: Some((0, libc::CLONE_NEWUTS as u64)), ..refusal(libc::SYS_clone) };
    let pivot_root = || refusal(libc::SYS_pivot_root);
    let mut cases = vec![(clone as fn() -> Refusal, "entered: none; ", "namespaces: entered: none; ")];
    // Without a mount namespace there is no other root directory to miss.
    if can_make_namespaces() {
        cases.push((pivot_root, "Operation not permitted", "empty root directory: Operation not permitted"));
    }
    for (refused, reported, required) in cases {
        let (missing, result) = start(refused(), Namespaces::Auto).expect("an engine");
        assert!(missing.iter().any(|why| why.starts_with(reported)), "{missing:?}");
        assert_eq!(result, "2");
        let why = start(refused(), Namespaces::Required).expect_err("no engine");
        let expected = format!("namespaces are required (`--namespaces required`), but are not available: {required}");
        assert!(why.starts_with(&expected), "`{expected}…` expected, not `{why}`");
    }
}

/// The state that a worker has is what the kernel lets a process choose; otherwise the engine reports that it offers no choice.
#[tokio::test(flavor = "multi_thread")]
async fn speculation_is_off_in_a_worker_where_the_kernel_offers_it() {
    while_one_runs(|Running { worker, .. }| {
        for field in ["Speculation_Store_Bypass", "SpeculationIndirectBranch"] {
            let (ours, of_worker) = (processes::status(processes::this(), field), processes::status(worker, field));
            match ours.as_str() {
                "thread vulnerable" => assert_eq!(of_worker, "thread force mitigated", "{field}"),
                "conditional enabled" => assert_eq!(of_worker, "conditional force disabled", "{field}"),
                _ => assert_eq!(of_worker, ours, "{field}"),
            }
        }
    })
    .await;
}

/// On most machines the kernel offers no choice, so the test above would not notice if it were never asked.
#[test]
fn the_kernel_is_asked_to_turn_speculation_off_for_good() {
    const PR_GET_SPECULATION_CTRL: i32 = 52;
    const PR_SET_SPECULATION_CTRL: i32 = 53;
    const PR_SPEC_FORCE_DISABLE: u64 = 1 << 3;
    // An error that the kernel itself does not return for this call.
    let turning_off = Refusal { bits: Some((2, PR_SPEC_FORCE_DISABLE)), error: libc::ENOTTY, ..prctl(PR_SET_SPECULATION_CTRL) };
    let layers = with_refused_calls(&[turning_off, prctl(PR_GET_SPECULATION_CTRL)], |parts| async move {
        Engine::start(config(parts)).await.map(|engine| engine.layers().to_vec()).map_err(|error| error.to_string())
    });
    let layers = layers.expect("an engine");
    let why = layers.iter().find(|layer| layer.name == "speculation").and_then(|layer| layer.outcome.clone().err());
    let refused = |kind: &str| format!("{kind}: can't be turned off: Inappropriate ioctl for device (os error 25)");
    assert_eq!(why, Some(format!("{}, {}", refused("store bypass"), refused("indirect branches"))));
}

/// A system call that is refused if this argument has this value.
struct Refusal {
    call: libc::c_long,
    argument: Option<(u8, u64)>,
    /// This argument has all of these bits.
    bits: Option<(u8, u64)>,
    /// Only for a call that sets something, because the same call also queries.
    pointer_given: Option<u8>,
    error: i32,
}

const fn refusal(call: libc::c_long) -> Refusal {
    Refusal { call, argument: None, bits: None, pointer_given: None, error: libc::EPERM }
}

const fn prctl(what: i32) -> Refusal {
    Refusal { argument: Some((0, what as u64)), ..refusal(libc::SYS_prctl) }
}

const fn limit(resource: u32) -> Refusal {
    Refusal { argument: Some((1, resource as u64)), pointer_given: Some(2), ..refusal(libc::SYS_prlimit64) }
}

impl Refusal {
    fn compile(&self) -> BpfProgram {
        let is = |(index, value)| SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value).expect("a condition");
        let given = |index| SeccompCondition::new(index, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0).expect("a condition");
        let has = |(index, bits)| SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), bits).expect("one");
        let (argument, bits, pointer) = (self.argument.map(is), self.bits.map(has), self.pointer_given.map(given));
        let conditions: Vec<_> = [argument, bits, pointer].into_iter().flatten().collect();
        let rules = if conditions.is_empty() { vec![] } else { vec![SeccompRule::new(conditions).expect("a rule")] };
        let refuse = SeccompAction::Errno(self.error as u32);
        let arch = TargetArch::try_from(std::env::consts::ARCH).expect("an architecture");
        let filter = SeccompFilter::new([(self.call, rules)].into(), SeccompAction::Allow, refuse, arch).expect("a filter");
        filter.try_into().expect("a program")
    }
}

/// Starts an engine with a refused system call. Returns the error of the engine or of its first run.
fn start_with_refused_call(refusal: &Refusal) -> String {
    with_refused_calls(std::slice::from_ref(refusal), |parts| async {
        match Engine::start(config(parts)).await {
            Err(error) => error.to_string(),
            Ok(engine) => brief(&run(&engine, job("1 + 1", Kind::Stateless)).await),
        }
    })
}

/// Runs `what` on a machine that refuses these system calls.
fn with_refused_calls<T: Send + 'static, F: Future<Output = T>>(
    refusals: &[Refusal],
    what: impl FnOnce(Artifacts) -> F + Send + 'static,
) -> T {
    let (parts, programs) = (production(), refusals.iter().map(Refusal::compile).collect::<Vec<_>>());
    // A filter applies to its thread and to the processes which that thread starts.
    let machine = std::thread::spawn(move || {
        programs.iter().for_each(|program| seccompiler::apply_filter(program).expect("a filter"));
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(what(parts))
    });
    machine.join().expect("an answer")
}

#[test]
fn an_engine_does_not_start_if_the_zygote_can_not_be_confined() {
    let no_landlock = Refusal { error: libc::EOPNOTSUPP, ..refusal(libc::SYS_landlock_create_ruleset) };
    for (refusal, step) in [
        (prctl(libc::PR_SET_NO_NEW_PRIVS), "no_new_privs"),
        (prctl(libc::PR_CAP_AMBIENT), "capabilities"),
        (refusal(libc::SYS_capset), "capabilities"),
        (limit(libc::RLIMIT_CORE), "limit on core files"),
        (limit(libc::RLIMIT_MEMLOCK), "limit on locked memory"),
        (limit(libc::RLIMIT_MSGQUEUE), "limit on message queues"),
        (limit(libc::RLIMIT_FSIZE), "limit on file size"),
        (no_landlock, "landlock"),
        (refusal(libc::SYS_landlock_restrict_self), "landlock"),
    ] {
        let said = start_with_refused_call(&refusal);
        let expected = format!("the engine refuses to run on this machine: confinement: {step}: ");
        assert!(said.starts_with(&expected), "`{expected}…` expected, not `{said}`");
    }
}

#[test]
fn no_code_runs_if_a_worker_can_not_be_confined() {
    let close_range = Refusal { argument: Some((2, 0)), ..refusal(libc::SYS_close_range) };
    for (refusal, step) in [
        (prctl(libc::PR_SET_PDEATHSIG), "parent-death signal"),
        (prctl(libc::PR_SET_DUMPABLE), "parent-death signal"),
        (close_range, "closing descriptors"),
        (limit(libc::RLIMIT_NPROC), "limit on processes"),
        (limit(libc::RLIMIT_NOFILE), "limit on open files"),
        (limit(libc::RLIMIT_DATA), "limit on data"),
        (refusal(libc::SYS_seccomp), "seccomp"),
    ] {
        let said = start_with_refused_call(&refusal);
        let expected = format!("confinement: {step}: ");
        assert!(said.starts_with("no worker could be started: ") && said.contains(&expected), "`{expected}…` expected, not `{said}`");
    }
}

/// Tests usually run as root. The other layers are required of every user, with and without user namespaces.
#[test]
fn confinement_holds_for_ordinary_users_and_in_containers() {
    environments::test_all_but("confinement_holds_for_ordinary_users_and_in_containers");
}

fn we_have(right: CapabilitySet) -> bool {
    rustix::thread::capabilities(None).expect("capabilities").effective.contains(right)
}
