//! Concurrent runs: limited, fair and independent of each other.

use super::support::{engine, engine_with, job};
use heapstead_engine::{Kind, Outcome, Refused};
use heapstead_types::BudgetHolder;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn sleeping_runs_do_not_delay_others() {
    let engine = engine().await;
    let waiting: Vec<_> =
        (0..50).map(|_| engine.submit(job("await new Promise(r => setTimeout(r, 1500))", Kind::Stateless)).expect("accepted")).collect();
    while engine.load().running < 50 {
        tokio::task::yield_now().await;
    }
    // The fifty are forked one after another. Once they sleep, they cost nothing.
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        let (_, outcome) = engine.submit(job("1", Kind::Stateless)).expect("accepted").finish().await;
        assert!(matches!(outcome, Outcome::Completed { .. }));
        best = best.min(began.elapsed());
    }
    assert!(best < Duration::from_millis(100), "{best:?}");
    for execution in waiting {
        assert!(matches!(execution.finish().await.1, Outcome::Completed { .. }));
    }
}

#[tokio::test]
async fn a_full_queue_refuses_and_recovers() {
    let engine = engine_with(|config| {
        config.concurrent_max = 1;
        config.queued_max = 2;
    })
    .await;
    let running: Vec<_> =
        (0..3).map(|_| engine.submit(job("await new Promise(r => setTimeout(r, 50))", Kind::Stateless)).expect("accepted")).collect();
    assert_eq!(engine.submit(job("1", Kind::Stateless)).err(), Some(Refused::QueueFull { own: 2 }));
    for execution in running {
        assert!(matches!(execution.finish().await.1, Outcome::Completed { .. }));
    }
    assert!(matches!(engine.submit(job("1", Kind::Stateless)).expect("accepted").finish().await.1, Outcome::Completed { .. }));
}

#[tokio::test]
async fn a_queued_run_can_be_cancelled() {
    let engine = engine_with(|config| config.concurrent_max = 1).await;
    let first = engine.submit(job("await new Promise(r => setTimeout(r, 300))", Kind::Stateless)).expect("accepted");
    let second = engine.submit(job("console.log('never')", Kind::Stateless)).expect("accepted");
    assert!(second.canceller().cancel().await);
    let (output, outcome) = second.finish().await;
    assert!(output.is_empty() && matches!(outcome, Outcome::Cancelled), "{outcome:?}");
    assert!(matches!(first.finish().await.1, Outcome::Completed { .. }));
}

#[tokio::test]
async fn cancelling_an_ended_run_has_no_effect() {
    let engine = engine().await;
    let execution = engine.submit(job("1", Kind::Stateless)).expect("accepted");
    let canceller = execution.canceller();
    assert!(matches!(execution.finish().await.1, Outcome::Completed { .. }));
    assert!(!canceller.cancel().await);
}

#[tokio::test]
async fn lanes_take_turns_when_slots_are_few() {
    let engine = engine_with(|config| config.concurrent_max = 1).await;
    let submit = |lane, code: &str| {
        let mut job = job(code, Kind::Stateless);
        job.holder = BudgetHolder::network([127, 0, 0, lane].into());
        engine.submit(job).expect("accepted")
    };
    // A completed run keeps its slot until its outcome is dropped.
    for _ in 0..20 {
        let execution = submit(1, "const t = Date.now(); while (Date.now() - t < 30);");
        tokio::spawn(async move { drop(execution.finish().await) });
    }
    assert!(matches!(submit(2, "1").finish().await.1, Outcome::Completed { .. }));
    let queued = engine.load().queued;
    assert!(queued >= 15, "the modest lane waited for {} of 20 jobs of the greedy one", 20 - queued);
}
