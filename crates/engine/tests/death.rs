//! No process outlives its parent: tests that kill workers, zygotes and a whole server.

mod common;

use common::processes::{self, children_of, freeze, is_alive, kill, wait_for, zygote_of};
use common::{begun, config, end_of, job, probes, production, run, start, start_with, submit};
use heapstead_engine::{Artifacts, Config, Job, Kind, Outcome, Spares};
use heapstead_types::Failure;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(1);

/// A run that does not end by itself.
fn long(code: &str, kind: Kind) -> Job {
    let mut job = job(code, kind);
    job.limits.timeout_secs = 60;
    job
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_die_with_their_zygote_and_queued_runs_wait_for_the_next() {
    let parts = probes();
    let engine = start_with(Config { concurrent_max: 2, ..config(parts.clone()) }).await;
    let mut running = submit(&engine, long("fake silence while it runs", Kind::Stateless));
    let mut saving = submit(&engine, long("fake silence while it saves", Kind::Stateful(None)));
    begun(&mut running).await;
    begun(&mut saving).await;
    let queued: Vec<_> = (0..20).map(|_| submit(&engine, job("fake nothing", Kind::Stateless))).collect();
    let zygote = zygote_of(processes::this(), &parts.base_heap).expect("a zygote");
    let workers = children_of(zygote);
    assert_eq!((workers.len(), engine.load().queued), (2, 20));

    kill(zygote);
    for execution in [running, saving] {
        let (_, outcome) = end_of(execution).await;
        assert!(matches!(outcome, Outcome::Failed(Failure::ZygoteDied)), "{outcome:?}");
    }
    for execution in queued {
        let (_, outcome) = end_of(execution).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    }
    assert!(wait_for(SOON, || workers.iter().all(|worker| !is_alive(*worker)).then_some(())).is_some(), "a worker outlived its zygote");
    let next = zygote_of(processes::this(), &parts.base_heap);
    assert!(next.is_some_and(|next| next != zygote), "another zygote");
}

/// A run that had not started when the zygote died must not fail.
#[tokio::test(flavor = "multi_thread")]
async fn only_running_jobs_are_lost_when_zygotes_keep_dying() {
    let parts = probes();
    let engine = start_with(Config { concurrent_max: 8, ..config(parts.clone()) }).await;
    for _ in 0..20 {
        let some: Vec<_> = (0..16).map(|_| submit(&engine, job("fake nothing", Kind::Stateless))).collect();
        kill(wait_for(SOON, || zygote_of(processes::this(), &parts.base_heap)).expect("a zygote"));
        for execution in some {
            let (_, outcome) = end_of(execution).await;
            assert!(matches!(outcome, Outcome::Completed { .. } | Outcome::Failed(Failure::ZygoteDied)), "{outcome:?}");
        }
    }
    assert!(matches!(run(&engine, job("fake nothing", Kind::Stateless)).await, Outcome::Completed { .. }));
}

/// Regression: runs waited forever for a worker while no zygote could be started.
#[tokio::test(flavor = "multi_thread")]
async fn runs_fail_with_the_reason_while_no_zygote_can_be_started() {
    let (all, own) = (probes(), Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("host-{}", std::process::id())));
    let (host, away) = (own.with_extension("here"), own.with_extension("away"));
    std::os::unix::fs::symlink(&all.host, &host).expect("a link");
    let parts = Artifacts { host: host.clone(), ..all };
    let engine = start_with(config(parts.clone())).await;
    std::fs::rename(&host, &away).expect("renamed");
    kill(zygote_of(processes::this(), &parts.base_heap).expect("a zygote"));
    let waiting: Vec<_> = (0..20).map(|_| submit(&engine, job("fake nothing", Kind::Stateless))).collect();
    for execution in waiting {
        match end_of(execution).await.1 {
            Outcome::Failed(Failure::NoWorker(why)) => assert!(why.contains("can't be started"), "{why}"),
            // Its worker was forked before the zygote was killed.
            Outcome::Failed(Failure::ZygoteDied) | Outcome::Completed { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    let none = run(&engine, job("fake nothing", Kind::Stateless)).await;
    assert!(matches!(none, Outcome::Failed(Failure::NoWorker(_))), "{none:?}");
    std::fs::rename(&away, &host).expect("renamed back");
    wait_for(SOON * 10, || zygote_of(processes::this(), &parts.base_heap)).expect("another zygote");
    assert!(matches!(run(&engine, job("fake nothing", Kind::Stateless)).await, Outcome::Completed { .. }));
    std::fs::remove_file(host).expect("removed");
}

/// A pre-forked worker may be killed while it waits. A run that gets a dead worker has not started, so it gets another one.
#[tokio::test(flavor = "multi_thread")]
async fn spare_workers_that_die_are_replaced() {
    const SPARES: usize = 8;
    let parts = probes();
    let job = || job("fake nothing", Kind::Stateless);
    let spares = Spares { count: SPARES, heap_mb: job().limits.heap_mb };
    let engine = start_with(Config { spares, ..config(parts.clone()) }).await;
    let zygote = zygote_of(processes::this(), &parts.base_heap).expect("a zygote");
    let waiting = || Some(children_of(zygote)).filter(|workers| workers.len() == SPARES);
    for _ in 0..3 {
        let spares = wait_for(SOON, waiting).expect("all the spares");
        spares.iter().for_each(|spare| kill(*spare));
        wait_for(SOON, || spares.iter().all(|spare| !is_alive(*spare)).then_some(())).expect("all of them dead");
        let outcome = run(&engine, job()).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    }
}

/// If a worker dies with its requests unread in the socket, no code has run, so another worker gets them.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_with_its_requests_unread_is_replaced() {
    let job = || job("fake nothing", Kind::Stateless);
    let spares = Spares { count: 1, heap_mb: job().limits.heap_mb };
    for _ in 0..5 {
        let parts = probes();
        let engine = start_with(Config { spares, ..config(parts.clone()) }).await;
        let zygote = zygote_of(processes::this(), &parts.base_heap).expect("a zygote");
        let spare = wait_for(SOON, || children_of(zygote).first().copied()).expect("a spare");
        freeze(spare);
        let execution = submit(&engine, job());
        // Once there is another spare, this one was assigned to the run.
        wait_for(SOON, || (children_of(zygote).len() == 2).then_some(())).expect("another spare");
        kill(spare);
        let (_, outcome) = end_of(execution).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    }
}

/// The running jobs of a stuck zygote are lost. Jobs that wait for a fork get it from the next zygote.
#[tokio::test(flavor = "multi_thread")]
async fn a_zygote_that_no_longer_answers_is_replaced() {
    let parts = probes();
    let engine = start_with(Config { fork_timeout: Duration::from_millis(300), ..config(parts.clone()) }).await;
    let mut running = submit(&engine, long("fake silence while it runs", Kind::Stateless));
    begun(&mut running).await;
    let stuck = zygote_of(processes::this(), &parts.base_heap).expect("a zygote");
    freeze(stuck);
    let outcome = run(&engine, job("fake nothing", Kind::Stateless)).await;
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert!(!is_alive(stuck), "the zygote that was stuck");
    let (_, lost) = end_of(running).await;
    assert!(matches!(lost, Outcome::Failed(Failure::ZygoteDied)), "{lost:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_an_engine_ends_all_its_processes() {
    let parts = production();
    let engine = start(parts.clone()).await;
    let mut running = submit(&engine, long("console.log('here'); for (;;);", Kind::Stateful(None)));
    begun(&mut running).await;
    let zygote = zygote_of(processes::this(), &parts.base_heap).expect("a zygote");
    let workers = children_of(zygote);
    drop((engine, running));
    let family = || !is_alive(zygote) && workers.iter().all(|worker| !is_alive(*worker));
    assert!(wait_for(SOON, || family().then_some(())).is_some(), "a process outlived its engine");
}

/// Set in the process that acts as the server to be killed.
const DOOMED: &str = "HEAPSTEAD_DOOMED_SERVER";

/// The server that the next test kills. As an ordinary test it does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_to_be_killed() {
    if std::env::var_os(DOOMED).is_none() {
        return;
    }
    let engine = start(production()).await;
    let mut all = Vec::new();
    for code in ["console.log('here'); for (;;);", "console.log('here'); await new Promise(done => setTimeout(done, 60_000))"] {
        let mut execution = submit(&engine, long(code, Kind::Stateful(None)));
        begun(&mut execution).await;
        all.push(execution);
    }
    println!("{DOOMED}");
    std::future::pending::<()>().await;
}

#[test]
fn zygote_and_workers_die_with_the_server() {
    let mut server = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "a_server_to_be_killed", "--nocapture"])
        .env(DOOMED, "")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a server");
    let output = BufReader::new(server.stdout.take().expect("its output"));
    assert!(output.lines().any(|line| line.expect("a line").ends_with(DOOMED)), "the server did not start");
    let pid = i32::try_from(server.id()).expect("a pid");
    let [zygote] = children_of(pid)[..] else { panic!("one zygote") };
    let workers = children_of(zygote);
    assert_eq!(workers.len(), 2);

    server.kill().expect("kill");
    let gone = wait_for(SOON, || (!is_alive(zygote) && workers.iter().all(|worker| !is_alive(*worker))).then_some(()));
    server.wait().expect("wait");
    assert!(
        gone.is_some(),
        "zygote alive: {}, workers alive: {:?}",
        is_alive(zygote),
        workers.iter().map(|pid| is_alive(*pid)).collect::<Vec<_>>()
    );
}
