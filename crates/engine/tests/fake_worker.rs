//! Workers and zygotes that violate the protocol: each violation fails one run with a clear reason, and the engine continues.

mod common;

use common::{brief, config, end_of, job, probes, processes, run, start, start_with, submit};
use heapstead_engine::{Artifacts, Config, Engine, Event, Job, Kind, Outcome};
use heapstead_types::{Failure, Stage};
use std::path::PathBuf;
use std::time::Duration;

/// The expected outcome of a run with a fake worker.
#[derive(Debug)]
enum End {
    Completed,
    TimedOut,
    Misbehaved(&'static str),
    Crashed(Stage, Option<i32>),
    NeverSettles,
    Refused(&'static str),
    Unsaveable(&'static str),
}

use End::*;
use Stage::{Running, Saving, Starting};

/// Whether the run is stateful.
#[derive(Debug, Clone, Copy)]
enum HeapWanted {
    Heap,
    NoHeap,
}

use HeapWanted::*;

#[rustfmt::skip]
const WAYS: &[(&str, HeapWanted, End)] = &[
    ("nothing", NoHeap, Completed),
    // Not a frame.
    ("garbage", NoHeap, Misbehaved("a frame of unknown kind 255")),
    ("unknown kind", NoHeap, Misbehaved("a frame of unknown kind 99")),
    ("kind that only the server sends", NoHeap, Misbehaved("a frame of unknown kind 3")),
    ("output of 4 GiB", NoHeap, Misbehaved("a frame `Output` with 4294967295 bytes, at most 65536 are allowed")),
    ("result of 4 GiB", NoHeap, Misbehaved("a frame `Ended` with 4294967295 bytes, at most 16777217 are allowed")),
    ("call of 4 GiB", NoHeap, Misbehaved("a frame `Call` with 4294967295 bytes, at most 16777226 are allowed")),
    ("call of one byte too many", NoHeap, Misbehaved("a frame `Call` with 16777227 bytes, at most 16777226 are allowed")),
    ("end without a status", NoHeap, Misbehaved("a frame `Ended` whose payload can't be read")),
    ("failure of unknown kind", NoHeap, Misbehaved("a frame `Ended` whose payload can't be read")),
    ("result that is not text", NoHeap, Misbehaved("a frame `Ended` whose payload can't be read")),
    ("call without a kind", NoHeap, Misbehaved("a frame `Call` whose payload can't be read")),
    ("heap with a digest of seven bytes", Heap, Misbehaved("a frame `Snapshot` whose payload can't be read")),
    ("result without a run number", NoHeap, Misbehaved("a frame `Ended` without a run number")),
    ("opened with a run number", NoHeap, Misbehaved("a frame `Opened` with a run number, which belongs to no run")),
    // Out of order. A stateless run ends with its result, and what follows it is never read.
    ("start before it is opened", NoHeap, Misbehaved("`Started` before `Opened`")),
    ("result before it is opened", NoHeap, Misbehaved("`Ended` before `Opened`")),
    ("opened twice", NoHeap, Misbehaved("`Opened` a second time")),
    ("result before the start", NoHeap, Misbehaved("`Ended` before `Started`")),
    ("output before the start", NoHeap, Misbehaved("`Output` before `Started`")),
    ("call before the start", NoHeap, Misbehaved("`Call` before `Started`")),
    ("two starts", NoHeap, Misbehaved("`Started` a second time")),
    ("types parsed twice", NoHeap, Misbehaved("`Parsing` a second time")),
    ("two results", Heap, Misbehaved("`Started` for run 1, which has ended")),
    ("result twice", Heap, Misbehaved("`Ended` for run 1, which has ended")),
    ("result twice", NoHeap, Completed),
    ("output after the result", Heap, Misbehaved("`Output` for run 1, which has ended")),
    ("output after the result", NoHeap, Completed),
    ("start after the result", Heap, Misbehaved("`Started` for run 1, which has ended")),
    ("call after the result", Heap, Misbehaved("`Call` for run 1, which has ended")),
    ("failure after the result", Heap, Misbehaved("`Ended` for run 1, which has ended")),
    ("result after the failure", Heap, NeverSettles),
    ("output after the notice that it is dropped", NoHeap, Misbehaved("`Output` after `OutputDropped`")),
    ("two notices that output is dropped", NoHeap, Misbehaved("`OutputDropped` a second time")),
    ("heap without a result", Heap, Misbehaved("`Snapshot` before `Ended`")),
    ("heap that was not requested", NoHeap, Misbehaved("`Snapshot` that was not asked for")),
    ("commit that was not requested", NoHeap, Misbehaved("`Committed` that was not asked for")),
    ("commit of its result", Heap, Misbehaved("`Committed` that was not asked for")),
    // With the number of another run.
    ("start of another run", NoHeap, Misbehaved("`Started` for run 2, which is not the run in progress")),
    ("output of another run", NoHeap, Misbehaved("`Output` for run 2, which is not the run in progress")),
    ("call of another run", NoHeap, Misbehaved("`Call` for run 2, which is not the run in progress")),
    ("result of another run", NoHeap, Misbehaved("`Ended` for run 2, which is not the run in progress")),
    ("result of another run", Heap, Misbehaved("`Ended` for run 2, which is not the run in progress")),
    ("failure of another run", NoHeap, Misbehaved("`Ended` for run 2, which is not the run in progress")),
    ("result of the highest run", NoHeap, Misbehaved("`Ended` for run 18446744073709551615, which is not the run in progress")),
    ("heap of another run", Heap, Misbehaved("`Snapshot` that was not asked for")),
    // Calls, which no worker may make yet.
    ("call of unknown kind", NoHeap, Misbehaved("`Call` of kind 7, but no capability exists")),
    ("call of kind 0", Heap, Misbehaved("`Call` of kind 0, but no capability exists")),
    ("call with a large payload", NoHeap, Misbehaved("`Call` of kind 7, but no capability exists")),
    ("call with a number too high", NoHeap, Misbehaved("call number 2, expected 1")),
    ("calls without end", NoHeap, Misbehaved("`Call` of kind 7, but no capability exists")),
    // Refusals.
    ("refusal", NoHeap, Refused("refused by the test")),
    ("refusal after the start", NoHeap, Refused("refused by the test")),
    ("refusal after the result", Heap, Refused("refused by the test")),
    // Heaps that differ from what the worker announces.
    ("heap that can't be written", Heap, Unsaveable("full")),
    ("wrong digest", Heap, Misbehaved("the heap it wrote is not the one it announced")),
    ("wrong length", Heap, Misbehaved("the heap it wrote is not the one it announced")),
    ("heap never written", Heap, Misbehaved("the heap it wrote is not the one it announced")),
    // Floods.
    ("a million outputs", NoHeap, Completed),
    ("a million empty outputs", NoHeap, Completed),
    ("a million notices that output is dropped", NoHeap, Misbehaved("`OutputDropped` a second time")),
    ("output without end", NoHeap, TimedOut),
    ("starts without end", NoHeap, Misbehaved("`Started` a second time")),
    ("parsing without end", NoHeap, Misbehaved("`Parsing` a second time")),
    // Silence.
    ("silence", NoHeap, TimedOut),
    ("silence after it is opened", NoHeap, TimedOut),
    ("silence after the result", Heap, TimedOut),
    ("silence in the middle of a frame", NoHeap, TimedOut),
    ("close ignored", Heap, Completed),
    ("close ignored", NoHeap, Completed),
    ("closed socket", NoHeap, Crashed(Starting, Some(libc::SIGKILL))),
    ("closed socket after the result", Heap, Crashed(Saving, Some(libc::SIGKILL))),
    // Death.
    ("death after its requests", NoHeap, Crashed(Starting, None)),
    ("death in the middle of a head", NoHeap, Crashed(Starting, None)),
    ("death in the middle of a frame", NoHeap, Crashed(Starting, None)),
    ("death while it parses", NoHeap, Crashed(Starting, None)),
    ("death while it runs", NoHeap, Crashed(Running, None)),
    ("death after output", NoHeap, Crashed(Running, None)),
    ("death after the result", Heap, Crashed(Saving, None)),
    ("death in the middle of the heap", Heap, Crashed(Saving, None)),
    ("death before the heap is announced", Heap, Crashed(Saving, None)),
    ("death after the heap", Heap, Completed),
    ("crash while it runs", NoHeap, Crashed(Running, Some(libc::SIGSEGV))),
    ("crash after the result", Heap, Crashed(Saving, Some(libc::SIGSEGV))),
    ("forbidden call after the result", Heap, Crashed(Saving, Some(libc::SIGSYS))),
];

impl End {
    fn is(&self, outcome: &Outcome) -> bool {
        match (self, outcome) {
            (Completed, Outcome::Completed { result, .. }) => result == "done",
            (TimedOut, Outcome::TimedOut { .. }) => true,
            (Misbehaved(what), Outcome::Failed(Failure::WorkerMisbehaved(got))) => got.starts_with(what),
            (Crashed(stage, signal), Outcome::Failed(failure)) => *failure == Failure::WorkerCrashed { stage: *stage, signal: *signal },
            (NeverSettles, Outcome::Failed(failure)) => *failure == Failure::NeverSettles,
            (Refused(why), Outcome::Failed(Failure::NoWorker(got))) => got == why,
            (Unsaveable(why), Outcome::Failed(Failure::Unsaveable(got))) => got == why,
            _ => false,
        }
    }
}

impl HeapWanted {
    fn kind(self) -> Kind {
        match self {
            Heap => Kind::Stateful(None),
            NoHeap => Kind::Stateless,
        }
    }
}

/// A run whose worker violates the protocol in this way.
fn fake(way: &str, asked: HeapWanted) -> Job {
    let mut job = job(format!("fake {way}"), asked.kind());
    if way.starts_with("a million") {
        // Not expected to time out, but a million messages take a while on a busy machine.
        job.limits.timeout_secs = 60;
    }
    job
}

async fn check_healthy(engine: &Engine) {
    assert_eq!(brief(&run(engine, fake("nothing", NoHeap)).await), "done", "a run right after");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_violates_the_protocol_fails_only_its_run() {
    let parts = probes();
    let engine = start(parts.clone()).await;
    let zygote = processes::zygote_of(processes::this(), &parts.base_heap).expect("a zygote");
    let mut all = tokio::task::JoinSet::new();
    for (way, asked, end) in WAYS {
        let engine = engine.clone();
        all.spawn(async move {
            let outcome = run(&engine, fake(way, *asked)).await;
            assert!(end.is(&outcome), "{way}, {asked:?}: {outcome:?}, not {end:?}");
            check_healthy(&engine).await;
        });
    }
    while let Some(one) = all.join_next().await {
        one.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
    }
    assert_eq!(processes::zygote_of(processes::this(), &parts.base_heap), Some(zygote), "still the same zygote");
    assert_eq!(engine.load().running, 0, "every slot is free again");
    let gone = processes::wait_for(Duration::from_secs(1), || processes::children_of(zygote).is_empty().then_some(()));
    assert!(gone.is_some(), "workers are left: {:?}", processes::children_of(zygote));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_with_its_requests_unread_fails_only_its_run() {
    let engine = start(probes()).await;
    for asked in [Heap, NoHeap] {
        let outcome = run(&engine, fake("death with its requests unread", asked)).await;
        assert!(Crashed(Starting, None).is(&outcome), "{outcome:?}");
        check_healthy(&engine).await;
    }
}

/// Requests that are longer than the socket buffer can't be sent to a worker that does not read.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_never_reads_its_requests_fails_only_its_run() {
    let engine = start(probes()).await;
    let code = format!("fake requests never read\n{}", " ".repeat(4 << 20));
    let outcome = run(&engine, job(code, Kind::Stateless)).await;
    assert!(matches!(outcome, Outcome::TimedOut { .. } | Outcome::Failed(Failure::NoWorker(_))), "{outcome:?}");
    check_healthy(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_forwarded_up_to_its_cap_and_dropped_once() {
    let engine = start(probes()).await;
    for (way, bytes, drops) in [
        ("a million outputs", 1_000_000, 0),
        ("two notices that output is dropped", 0, 1),
        ("output without end", 2 << 20, 1),
        ("death after output", "last words".len(), 0),
        ("output after the result", 0, 0),
    ] {
        let (events, _) = end_of(submit(&engine, fake(way, Heap))).await;
        let forwarded: usize = events.iter().map(|event| if let Event::Output(text) = event { text.len() } else { 0 }).sum();
        let dropped = events.iter().filter(|event| matches!(event, Event::OutputDropped)).count();
        assert_eq!((forwarded, dropped), (bytes, drops), "{way}");
    }
}

/// Engine files whose zygote violates the protocol in this way.
fn fake_zygote(way: &str) -> Artifacts {
    Artifacts { base_heap: PathBuf::from(format!("fake:{way}")), ..probes() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_does_not_start_with_a_fake_zygote() {
    for (way, message) in [
        ("unfit", "the engine refuses to run on this machine: refused by the test"),
        ("dies at once", "the zygote ended before it was ready"),
        ("sends garbage at once", "the zygote ended before it was ready"),
    ] {
        let error = Engine::start(config(fake_zygote(way))).await.err().expect("no engine").to_string();
        assert!(error.starts_with(message), "{way}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zygote_that_violates_the_protocol_fails_only_the_run() {
    for (way, message) in [
        ("refuses", "no worker could be started: refused by the test"),
        ("sends no pidfd", "no worker could be started: no pidfd came with the worker"),
        ("sends garbage", "no worker could be started: the zygote died or did not answer, and so did its replacements"),
        ("dies", "no worker could be started: the zygote died or did not answer, and so did its replacements"),
        ("never answers", "no worker could be started: the zygote died or did not answer, and so did its replacements"),
    ] {
        let engine = start_with(Config { fork_timeout: Duration::from_millis(300), ..config(fake_zygote(way)) }).await;
        for _ in 0..2 {
            assert_eq!(brief(&run(&engine, job("1", Kind::Stateless)).await), message, "{way}");
        }
    }
}

/// A confined worker can't send descriptors (see the probes), so this one is unconfined.
#[tokio::test(flavor = "multi_thread")]
async fn descriptors_that_a_worker_sends_are_not_received() {
    let engine = start(fake_zygote("sends descriptors")).await;
    let open = || std::fs::read_dir("/proc/self/fd").expect("descriptors").count();
    let before = open();
    let outcome = run(&engine, job("1", Kind::Stateless)).await;
    assert!(Completed.is(&outcome), "{outcome:?}");
    // Other tests of this process open some descriptors meanwhile, but not hundreds.
    assert!(open() < before + 300, "{} descriptors, {before} before", open());
}

/// A heap that is still mapped writable must not get a key. Only an unconfined worker can do this.
#[tokio::test(flavor = "multi_thread")]
async fn a_heap_that_its_worker_keeps_mapped_is_rejected() {
    let engine = start(fake_zygote("maps its heap")).await;
    let outcome = run(&engine, job("1", Kind::Stateful(None))).await;
    assert!(Misbehaved("the heap it wrote can't be sealed").is(&outcome), "{outcome:?}");
}
