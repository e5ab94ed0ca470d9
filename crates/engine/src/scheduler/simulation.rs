//! Random workloads of greedy and modest holders, in simulated time: the bounds that `docs/limits.md` states hold at every step.

use super::*;

/// Simulated seconds that a run takes at most.
const RUN_MAX: u64 = 300;
const SLOTS: usize = 64;
const QUEUED: usize = 1000;
const USUAL_MB: u32 = 64;
/// How many holders the reserve of these bounds has room for.
const GUARANTEED: usize = 8;

/// Holders below this number queue many jobs, those above at most one.
const MODEST_FROM: u64 = 4;

/// A small generator, so that a failure can be replayed by its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

struct Job {
    holder: BudgetHolder,
    entered: u64,
    waiting: Option<oneshot::Receiver<Permit>>,
    running: Option<(Permit, u64)>,
}

struct Simulation {
    scheduler: Scheduler,
    random: Random,
    now: u64,
    jobs: Vec<Job>,
    /// The longest wait of a holder that had nothing running.
    wait_max: u64,
}

fn holder(number: u64) -> BudgetHolder {
    BudgetHolder::network([10, 0, (number >> 8) as u8, number as u8].into())
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let worker_mb = |heap_mb| 3 * u64::from(heap_mb) + 160;
        let bounds = Bounds {
            slots: SLOTS,
            memory_mb: 18_000,
            queued: QUEUED,
            source_bytes: 256 << 20,
            sharing: Sharing::SeveralOwners,
            usual_heap_mb: USUAL_MB,
            worker_mb,
        };
        Self { scheduler: Scheduler::new(bounds), random: Random(seed), now: 0, jobs: Vec::new(), wait_max: 0 }
    }

    fn enter(&mut self, number: u64, heap_mb: u32) -> Result<(), Refused> {
        let waiting = Some(self.scheduler.enter(&holder(number), heap_mb)?);
        self.jobs.push(Job { holder: holder(number), entered: self.now, waiting, running: None });
        self.start();
        Ok(())
    }

    /// Follows the scheduler's decisions.
    fn start(&mut self) {
        for job in &mut self.jobs {
            let permit = job.waiting.as_mut().and_then(|waiting| waiting.try_recv().ok());
            if let Some(permit) = permit {
                job.waiting = None;
                job.running = Some((permit, self.now + 1 + self.random.below(RUN_MAX)));
            }
        }
    }

    fn running(&self, holder: &BudgetHolder) -> bool {
        self.jobs.iter().any(|job| job.running.is_some() && job.holder == *holder)
    }

    fn others_running(&self, than: &BudgetHolder) -> usize {
        let mut others: Vec<_> =
            self.jobs.iter().filter(|job| job.running.is_some() && job.holder != *than).map(|job| &job.holder).collect();
        others.sort();
        others.dedup();
        others.len()
    }

    fn second_passes(&mut self) {
        self.now += 1;
        let now = self.now;
        self.jobs.retain(|job| !matches!(job.running, Some((_, until)) if until <= now));
        self.start();
        for job in &self.jobs {
            if job.waiting.is_some() && job.holder >= holder(MODEST_FROM) && !self.running(&job.holder) {
                self.wait_max = self.wait_max.max(now - job.entered);
            }
        }
    }
}

/// One holder fills everything again and again with runs of all sizes; up to seven others come and go.
#[test]
fn a_holder_that_has_nothing_starts_immediately_unless_eight_others_run() {
    for seed in 0..30 {
        let mut simulation = Simulation::new(seed);
        for step in 0..400 {
            let greedy_mb = [8, 64, 64, 64, 1000][simulation.random.below(5) as usize];
            while simulation.random.below(40) != 0 && simulation.enter(0, greedy_mb).is_ok() {}
            let (modest, usual) = (1 + simulation.random.below(GUARANTEED as u64 - 1), 8 + simulation.random.below(57) as u32);
            let had_nothing = !simulation.jobs.iter().any(|job| job.holder == holder(modest));
            if had_nothing {
                assert!(simulation.others_running(&holder(modest)) < GUARANTEED);
                let entered = simulation.enter(modest, usual);
                assert_eq!(entered, Ok(()), "seed {seed}, step {step}: refused because of others");
                assert!(simulation.running(&holder(modest)), "seed {seed}, step {step}: waits because of others");
            }
            for _ in 0..simulation.random.below(20) {
                simulation.second_passes();
            }
        }
        simulation.jobs.clear();
        assert_eq!(simulation.scheduler.load(), Load::default(), "seed {seed}: everything was released");
        assert!(simulation.scheduler.state().used.is_empty(), "seed {seed}: nothing is kept of holders that have nothing");
    }
}

/// With more holders than the reserve has room for, the wait is bounded by the number of holders: T × ⌈n / 8⌉.
#[test]
fn with_many_holders_the_wait_is_bounded_by_their_number() {
    for seed in 0..10 {
        let mut simulation = Simulation::new(seed);
        let holders = 20 + simulation.random.below(60);
        for _ in 0..600 {
            let greedy = simulation.random.below(MODEST_FROM);
            while simulation.random.below(30) != 0 && simulation.enter(greedy, USUAL_MB).is_ok() {}
            let modest = MODEST_FROM + simulation.random.below(holders - MODEST_FROM);
            if !simulation.jobs.iter().any(|job| job.holder == holder(modest)) {
                // The queue may be full of greedy jobs of several holders; then the newcomer is refused and not delayed.
                let _ = simulation.enter(modest, USUAL_MB);
            }
            for _ in 0..simulation.random.below(10) {
                simulation.second_passes();
            }
        }
        let bound = RUN_MAX * holders.div_ceil(GUARANTEED as u64);
        assert!(simulation.wait_max <= bound, "seed {seed}: a holder waited {} s, the bound is {bound} s", simulation.wait_max);
    }
}
