//! Limits, turns and overtaking, one decision at a time.

use super::*;

fn scheduler(slots: usize, memory_mb: u64, queued: usize) -> Scheduler {
    let (sharing, worker_mb) = (Sharing::OneOwner, u64::from);
    Scheduler::new(Bounds { slots, memory_mb, queued, source_bytes: 100, sharing, usual_heap_mb: 8, worker_mb })
}

fn lane(number: u8) -> BudgetHolder {
    BudgetHolder::network([127, 0, 0, number].into())
}

fn got(receiver: &mut oneshot::Receiver<Permit>) -> Option<Permit> {
    receiver.try_recv().ok()
}

#[test]
fn slots_limit_running_jobs_and_the_queue_limits_waiting_jobs() {
    let scheduler = scheduler(1, 100, 1);
    let mut first = scheduler.enter(&lane(0), 10).expect("accepted");
    let permit = got(&mut first).expect("runs");
    let mut second = scheduler.enter(&lane(0), 10).expect("waits");
    assert!(got(&mut second).is_none());
    assert_eq!(scheduler.enter(&lane(0), 10).expect_err("full"), Refused::QueueFull { own: 1 });
    assert_eq!(scheduler.load(), Load { running: 1, queued: 1 });
    drop(permit);
    assert!(got(&mut second).is_some());
}

#[test]
fn memory_limits_running_jobs() {
    let scheduler = scheduler(10, 100, 10);
    let first = got(&mut scheduler.enter(&lane(0), 60).expect("accepted"));
    let mut second = scheduler.enter(&lane(0), 60).expect("waits");
    assert!(got(&mut second).is_none());
    drop(first);
    assert!(got(&mut second).is_some());
    assert_eq!(
        scheduler.enter(&lane(0), 101).expect_err("never fits"),
        Refused::TooLarge { heap_mb: 101, worker_mb: 101, memory_mb_max: 100 }
    );
}

#[test]
fn lanes_take_turns() {
    let scheduler = scheduler(1, 100, 100);
    let busy = got(&mut scheduler.enter(&lane(1), 1).expect("accepted"));
    let mut greedy: Vec<_> = (0..3).map(|_| scheduler.enter(&lane(1), 1).expect("waits")).collect();
    let mut modest = scheduler.enter(&lane(2), 1).expect("waits");
    drop(busy);
    let first = got(&mut greedy[0]).expect("came first");
    drop(first);
    assert!(got(&mut modest).is_some(), "the other lane's turn comes before the greedy lane's second job");
}

#[test]
fn a_job_that_does_not_fit_is_overtaken_a_bounded_number_of_times() {
    let scheduler = scheduler(10, 100, 100);
    let held = got(&mut scheduler.enter(&lane(0), 60).expect("accepted")).expect("runs");
    let mut large = scheduler.enter(&lane(1), 80).expect("waits");
    for _ in 0..PASSED_MAX {
        let small = got(&mut scheduler.enter(&lane(2), 40).expect("accepted"));
        assert!(small.is_some(), "it fits next to the running job");
    }
    let mut late = scheduler.enter(&lane(2), 40).expect("waits");
    assert!(got(&mut late).is_none(), "memory is reserved for the large job now");
    assert!(got(&mut large).is_none());
    drop(held);
    let running = got(&mut large).expect("enough memory is free");
    assert!(got(&mut late).is_none(), "it does not fit next to the large job");
    drop(running);
    assert!(got(&mut late).is_some());
}

#[test]
fn a_cancelled_large_job_does_not_block_others() {
    let scheduler = scheduler(10, 100, 100);
    let _held = got(&mut scheduler.enter(&lane(0), 60).expect("accepted")).expect("runs");
    drop(scheduler.enter(&lane(1), 80).expect("waits"));
    for number in 0..PASSED_MAX + 5 {
        assert!(got(&mut scheduler.enter(&lane(2), 40).expect("accepted")).is_some(), "{number}");
    }
}

#[test]
fn jobs_of_one_lane_start_in_order() {
    let scheduler = scheduler(10, 100, 100);
    let _held = got(&mut scheduler.enter(&lane(0), 60).expect("accepted")).expect("runs");
    let _large = scheduler.enter(&lane(1), 80).expect("waits");
    assert!(got(&mut scheduler.enter(&lane(1), 10).expect("waits")).is_none());
}

#[test]
fn a_job_that_left_the_queue_takes_no_slot() {
    let scheduler = scheduler(1, 100, 2);
    let permit = got(&mut scheduler.enter(&lane(0), 1).expect("accepted"));
    drop(scheduler.enter(&lane(0), 1).expect("waits"));
    let mut last = scheduler.enter(&lane(0), 1).expect("waits");
    drop(permit);
    assert!(got(&mut last).is_some());
    assert_eq!(scheduler.load().running, 0, "permits were dropped");
}

#[test]
fn source_counts_while_it_exists() {
    let scheduler = scheduler(1, 100, 2);
    let charge = scheduler.charge_source(&lane(1), 60).expect("fits");
    assert_eq!(scheduler.charge_source(&lane(2), 41).expect_err("full"), Refused::SourceFull { bytes: 41, own: 0 });
    drop(charge);
    assert!(scheduler.charge_source(&lane(2), 100).is_ok());
}

#[test]
fn after_its_worker_a_job_has_only_the_memory_of_what_it_left() {
    let scheduler = scheduler(2, 100, 2);
    let mut storing = got(&mut scheduler.enter(&lane(1), 60).expect("accepted")).expect("runs");
    let mut next = scheduler.enter(&lane(1), 70).expect("waits");
    storing.worker_ended(30 << 20);
    assert!(got(&mut next).is_some(), "70 MB are free");
    let _running = got(&mut scheduler.enter(&lane(1), 1).expect("accepted")).expect("runs");
    let mut last = scheduler.enter(&lane(1), 1).expect("waits");
    assert!(got(&mut last).is_none(), "what is being stored still has its slot");
    drop(storing);
    assert!(got(&mut last).is_some());
}
