//! Decides which job runs next: limits on slots and memory of all workers, a bounded queue, and round robin between lanes for fairness.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The queue that a job waits in: of its owner, or without authentication of its connection, session name or IP address. Lanes are served
/// round-robin; within a lane jobs start in order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Lane(pub u64);

/// How many jobs may overtake a job that does not fit into the free memory. After that, memory is reserved until it fits.
const PASSED_MAX: u32 = 16;

/// Why a job was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the queue is full: {queued} executions are waiting, try again later")]
    QueueFull { queued: usize },
    #[error("a heap cap of {heap_mb} MB can never be met: all workers together may use {memory_mb_max} MB")]
    TooLarge { heap_mb: u32, memory_mb_max: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    pub running: usize,
    pub queued: usize,
}

#[derive(Debug, Clone)]
pub struct Scheduler(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    slots_free: usize,
    memory_mb_max: u64,
    memory_mb_free: u64,
    queued_max: usize,
    running: usize,
    queued: usize,
    /// Places reserved for jobs that are not in the queue yet.
    held: usize,
    /// Lanes with waiting jobs, the next one first.
    turns: VecDeque<Lane>,
    waiting: HashMap<Lane, VecDeque<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    heap_mb: u32,
    /// How many jobs have overtaken it.
    passed: u32,
    start: oneshot::Sender<Permit>,
}

/// The place of a job that is not in the queue yet; released when dropped.
#[derive(Debug)]
pub struct ReservedPlace {
    heap_mb: u32,
    scheduler: Scheduler,
}

impl ReservedPlace {
    pub fn enter(self, lane: Lane) -> oneshot::Receiver<Permit> {
        self.scheduler.queue(lane, self.heap_mb)
    }

    /// Queues another job of the holder, in addition to the reserved place. A full queue does not refuse it: the holder itself enters the queue
    /// only after that job, so a reservation adds at most one job.
    pub fn enter_before(&self, lane: Lane, heap_mb: u32) -> oneshot::Receiver<Permit> {
        self.scheduler.queue(lane, heap_mb)
    }
}

impl Drop for ReservedPlace {
    fn drop(&mut self) {
        self.scheduler.state().held -= 1;
    }
}

/// The right to run one worker; released when dropped.
#[derive(Debug)]
pub struct Permit {
    heap_mb: u32,
    scheduler: Option<Scheduler>,
}

impl Scheduler {
    pub fn new(slots: usize, memory_mb: u64, queued_max: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            slots_free: slots,
            memory_mb_max: memory_mb,
            memory_mb_free: memory_mb,
            queued_max,
            running: 0,
            queued: 0,
            held: 0,
            turns: VecDeque::new(),
            waiting: HashMap::new(),
        })))
    }

    /// Queues a job. The receiver gets the permit when the job may run. Dropping the receiver removes the job from the queue.
    pub fn enter(&self, lane: Lane, heap_mb: u32) -> Result<oneshot::Receiver<Permit>, Refused> {
        Ok(self.hold(heap_mb)?.enter(lane))
    }

    /// Reserves a place for a job that has to wait for something else before it enters the queue. It counts as queued, and delays no other job.
    pub fn hold(&self, heap_mb: u32) -> Result<ReservedPlace, Refused> {
        let mut state = self.state();
        if u64::from(heap_mb) > state.memory_mb_max {
            return Err(Refused::TooLarge { heap_mb, memory_mb_max: state.memory_mb_max });
        }
        state.remove_cancelled();
        let queued = state.queued + state.held;
        if queued >= state.queued_max {
            return Err(Refused::QueueFull { queued });
        }
        state.held += 1;
        drop(state);
        Ok(ReservedPlace { heap_mb, scheduler: self.clone() })
    }

    fn queue(&self, lane: Lane, heap_mb: u32) -> oneshot::Receiver<Permit> {
        let mut state = self.state();
        let (start, started) = oneshot::channel();
        if !state.waiting.contains_key(&lane) {
            state.turns.push_back(lane);
        }
        state.waiting.entry(lane).or_default().push_back(Waiting { heap_mb, passed: 0, start });
        state.queued += 1;
        self.start_what_fits(state);
        started
    }

    pub fn load(&self) -> Load {
        let mut state = self.state();
        state.remove_cancelled();
        Load { running: state.running, queued: state.queued + state.held }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_what_fits(&self, mut state: MutexGuard<'_, State>) {
        while let Some(waiting) = state.next_that_fits() {
            let permit = Permit { heap_mb: waiting.heap_mb, scheduler: Some(self.clone()) };
            if let Err(mut permit) = waiting.start.send(permit) {
                permit.scheduler = None;
                state.release(permit.heap_mb);
            }
        }
    }
}

impl State {
    /// Takes the next job for which a slot and memory are free, and moves its lane to the back. A job that needs more memory than is free may be
    /// overtaken by up to [`PASSED_MAX`] others.
    fn next_that_fits(&mut self) -> Option<Waiting> {
        if self.slots_free == 0 {
            return None;
        }
        let turn = match self.turns.iter().position(|lane| self.fits(lane))? {
            0 => 0,
            later => {
                let front = self.waiting.get_mut(self.turns.front()?)?.front_mut()?;
                // A cancelled job does not block others.
                if front.passed >= PASSED_MAX && !front.start.is_closed() {
                    return None;
                }
                front.passed += 1;
                later
            }
        };
        let lane = self.turns.remove(turn)?;
        let jobs = self.waiting.get_mut(&lane)?;
        let job = jobs.pop_front()?;
        if jobs.is_empty() {
            self.waiting.remove(&lane);
        } else {
            self.turns.push_back(lane);
        }
        self.slots_free -= 1;
        self.memory_mb_free -= u64::from(job.heap_mb);
        self.running += 1;
        self.queued -= 1;
        Some(job)
    }

    fn fits(&self, lane: &Lane) -> bool {
        let first = self.waiting.get(lane).and_then(VecDeque::front);
        first.is_some_and(|job| u64::from(job.heap_mb) <= self.memory_mb_free)
    }

    fn release(&mut self, heap_mb: u32) {
        self.slots_free += 1;
        self.memory_mb_free += u64::from(heap_mb);
        self.running -= 1;
    }

    /// Removes jobs that were cancelled while they waited.
    fn remove_cancelled(&mut self) {
        if self.queued < self.queued_max && self.queued < 64 {
            return;
        }
        for jobs in self.waiting.values_mut() {
            jobs.retain(|job| !job.start.is_closed());
        }
        self.waiting.retain(|_, jobs| !jobs.is_empty());
        let waiting = &self.waiting;
        self.turns.retain(|lane| waiting.contains_key(lane));
        self.queued = self.waiting.values().map(VecDeque::len).sum();
    }
}

impl Permit {
    /// A permit that does not count towards the limits.
    pub fn uncounted() -> Self {
        Self { heap_mb: 0, scheduler: None }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(scheduler) = self.scheduler.take() else { return };
        let mut state = scheduler.state();
        state.release(self.heap_mb);
        scheduler.start_what_fits(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn got(receiver: &mut oneshot::Receiver<Permit>) -> Option<Permit> {
        receiver.try_recv().ok()
    }

    #[test]
    fn slots_limit_running_jobs_and_the_queue_limits_waiting_jobs() {
        let scheduler = Scheduler::new(1, 100, 1);
        let mut first = scheduler.enter(Lane(0), 10).expect("accepted");
        let permit = got(&mut first).expect("runs");
        let mut second = scheduler.enter(Lane(0), 10).expect("waits");
        assert!(got(&mut second).is_none());
        assert_eq!(scheduler.enter(Lane(0), 10).expect_err("full"), Refused::QueueFull { queued: 1 });
        assert_eq!(scheduler.load(), Load { running: 1, queued: 1 });
        drop(permit);
        assert!(got(&mut second).is_some());
    }

    #[test]
    fn memory_limits_running_jobs() {
        let scheduler = Scheduler::new(10, 100, 10);
        let first = got(&mut scheduler.enter(Lane(0), 60).expect("accepted"));
        let mut second = scheduler.enter(Lane(0), 60).expect("waits");
        assert!(got(&mut second).is_none());
        drop(first);
        assert!(got(&mut second).is_some());
        assert_eq!(scheduler.enter(Lane(0), 101).expect_err("never fits"), Refused::TooLarge { heap_mb: 101, memory_mb_max: 100 });
    }

    #[test]
    fn lanes_take_turns() {
        let scheduler = Scheduler::new(1, 100, 100);
        let busy = got(&mut scheduler.enter(Lane(1), 1).expect("accepted"));
        let mut greedy: Vec<_> = (0..3).map(|_| scheduler.enter(Lane(1), 1).expect("waits")).collect();
        let mut modest = scheduler.enter(Lane(2), 1).expect("waits");
        drop(busy);
        let first = got(&mut greedy[0]).expect("came first");
        drop(first);
        assert!(got(&mut modest).is_some(), "the other lane's turn comes before the greedy lane's second job");
    }

    #[test]
    fn a_job_that_does_not_fit_is_overtaken_a_bounded_number_of_times() {
        let scheduler = Scheduler::new(10, 100, 100);
        let held = got(&mut scheduler.enter(Lane(0), 60).expect("accepted")).expect("runs");
        let mut large = scheduler.enter(Lane(1), 80).expect("waits");
        for _ in 0..PASSED_MAX {
            let small = got(&mut scheduler.enter(Lane(2), 40).expect("accepted"));
            assert!(small.is_some(), "it fits next to the running job");
        }
        let mut late = scheduler.enter(Lane(2), 40).expect("waits");
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
        let scheduler = Scheduler::new(10, 100, 100);
        let _held = got(&mut scheduler.enter(Lane(0), 60).expect("accepted")).expect("runs");
        drop(scheduler.enter(Lane(1), 80).expect("waits"));
        for number in 0..PASSED_MAX + 5 {
            assert!(got(&mut scheduler.enter(Lane(2), 40).expect("accepted")).is_some(), "{number}");
        }
    }

    #[test]
    fn jobs_of_one_lane_start_in_order() {
        let scheduler = Scheduler::new(10, 100, 100);
        let _held = got(&mut scheduler.enter(Lane(0), 60).expect("accepted")).expect("runs");
        let _large = scheduler.enter(Lane(1), 80).expect("waits");
        assert!(got(&mut scheduler.enter(Lane(1), 10).expect("waits")).is_none());
    }

    #[test]
    fn a_job_that_left_the_queue_takes_no_slot() {
        let scheduler = Scheduler::new(1, 100, 2);
        let permit = got(&mut scheduler.enter(Lane(0), 1).expect("accepted"));
        drop(scheduler.enter(Lane(0), 1).expect("waits"));
        let mut last = scheduler.enter(Lane(0), 1).expect("waits");
        drop(permit);
        assert!(got(&mut last).is_some());
        assert_eq!(scheduler.load().running, 0, "permits were dropped");
    }
}
