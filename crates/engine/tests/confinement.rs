//! Confinement from outside: what `/proc` shows of a production worker, and that no worker runs if a step of confinement fails.

mod common;

use common::{brief, config, job, probes, processes, production, run, start, start_with, submit};
use heapstead_engine::{Config, Engine, Kind};
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
        let filters_of_ours: u32 = processes::status(processes::this(), "Seccomp_filters").parse().expect("a number");
        for (pid, field, value) in [
            (worker, "Seccomp", "2"),
            (worker, "Seccomp_filters", &(filters_of_ours + 1).to_string()),
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
}

/// A system call that is refused if this argument has this value.
struct Refusal {
    call: libc::c_long,
    argument: Option<(u8, u64)>,
    /// Only for a call that sets something, because the same call also queries.
    pointer_given: Option<u8>,
    error: i32,
}

const fn refusal(call: libc::c_long) -> Refusal {
    Refusal { call, argument: None, pointer_given: None, error: libc::EPERM }
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
        let conditions: Vec<_> = self.argument.map(is).into_iter().chain(self.pointer_given.map(given)).collect();
        let rules = if conditions.is_empty() { vec![] } else { vec![SeccompRule::new(conditions).expect("a rule")] };
        let refuse = SeccompAction::Errno(self.error as u32);
        let arch = TargetArch::try_from(std::env::consts::ARCH).expect("an architecture");
        let filter = SeccompFilter::new([(self.call, rules)].into(), SeccompAction::Allow, refuse, arch).expect("a filter");
        filter.try_into().expect("a program")
    }
}

/// Starts an engine with a refused system call. Returns the error of the engine or of its first run.
fn start_with_refused_call(refusal: &Refusal) -> String {
    let (parts, program) = (production(), refusal.compile());
    // A filter applies to its thread and to the processes which that thread starts.
    let machine = std::thread::spawn(move || {
        seccompiler::apply_filter(&program).expect("a filter");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            match Engine::start(config(parts)).await {
                Err(error) => error.to_string(),
                Ok(engine) => brief(&run(&engine, job("1 + 1", Kind::Stateless)).await),
            }
        })
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

fn we_have(right: CapabilitySet) -> bool {
    rustix::thread::capabilities(None).expect("capabilities").effective.contains(right)
}
