//! Decides which job runs next: limits on slots and memory of all workers, a bounded queue, and round robin between lanes for fairness.
//!
//! Each budget holder has a lane, in which its jobs start in order of arrival. Slots, memory, queue places and source are pools of which a part
//! is reserved for holders that use little (`pool.rs`), so a holder that has nothing running starts immediately, however much others ask for.

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use crate::answers::AnswerRoom;
use crate::pool::{Pool, Section, Sharing};
use heapstead_types::BudgetHolder;
use heapstead_types::limits::SOURCE_BYTES_MAX;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// How many jobs may overtake a job that does not fit into the free memory. After that, memory is reserved until it fits.
const PASSED_MAX: u32 = 16;

/// Why a job was not accepted. The texts say nothing about other holders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the queue is full, {own} of your executions are waiting in it: try again later")]
    QueueFull { own: u64 },
    #[error("a heap cap of {heap_mb} MB can never be met: its worker may use {worker_mb} MB, and one run may use {memory_mb_max} MB")]
    TooLarge { heap_mb: u32, worker_mb: u64, memory_mb_max: u64 },
    #[error(
        "`code` is {bytes} bytes, and no space is left for it: {own} bytes of your source are queued or running. Try again later, or send less code"
    )]
    SourceFull { bytes: u64, own: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    pub running: usize,
    pub queued: usize,
}

/// What a scheduler bounds.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub slots: usize,
    pub memory_mb: u64,
    pub queued: usize,
    /// Total source of queued and running jobs.
    pub source_bytes: u64,
    pub sharing: Sharing,
    /// The heap cap of a usual job: a holder's part of the reserve has memory for one.
    pub usual_heap_mb: u32,
    /// The memory that a worker with this heap cap counts as.
    pub worker_mb: fn(u32) -> u64,
}

#[derive(Debug, Clone)]
pub struct Scheduler {
    state: Arc<Mutex<State>>,
    worker_mb: fn(u32) -> u64,
}

#[derive(Debug)]
struct State {
    slots: Pool,
    memory_mb: Pool,
    places: Pool,
    source_bytes: Pool,
    /// What each holder has. A holder that has nothing is absent.
    used: HashMap<BudgetHolder, Usage>,
    /// Lanes with waiting jobs, the next one first.
    turns: VecDeque<BudgetHolder>,
    waiting: HashMap<BudgetHolder, VecDeque<Waiting>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Usage {
    slots: u64,
    memory_mb: u64,
    /// Places in the queue, those of jobs that are not in it yet included.
    places: u64,
    source_bytes: u64,
}

#[derive(Debug)]
struct Waiting {
    memory_mb: u64,
    /// How many jobs have overtaken it.
    passed: u32,
    place: Section,
    start: oneshot::Sender<Permit>,
}

/// The place of a job that is not in the queue yet; released when dropped.
#[derive(Debug)]
pub struct ReservedPlace {
    holder: BudgetHolder,
    memory_mb: u64,
    place: Section,
    /// Then the job has the place.
    is_queued: bool,
    scheduler: Scheduler,
}

impl ReservedPlace {
    pub fn enter(mut self) -> oneshot::Receiver<Permit> {
        self.is_queued = true;
        self.scheduler.queue(&self.holder, self.memory_mb, self.place)
    }
}

impl Drop for ReservedPlace {
    fn drop(&mut self) {
        if !self.is_queued {
            self.scheduler.state().leave_queue(&self.holder, self.place);
        }
    }
}

/// The right to run one worker; released when dropped.
#[derive(Debug)]
pub struct Permit {
    /// None if it does not count.
    grant: Option<Grant>,
    /// Of a completed run with a long answer.
    answer: Option<Arc<AnswerRoom>>,
}

#[derive(Debug)]
struct Grant {
    holder: BudgetHolder,
    slot: Section,
    memory: Section,
    memory_mb: u64,
    scheduler: Scheduler,
}

/// Source text that counts as long as this exists.
#[derive(Debug)]
pub struct SourceCharge {
    holder: BudgetHolder,
    section: Section,
    bytes: u64,
    scheduler: Scheduler,
}

impl Drop for SourceCharge {
    fn drop(&mut self) {
        let mut state = self.scheduler.state();
        state.source_bytes.release(self.section, self.bytes);
        state.change(&self.holder, |used| used.source_bytes -= self.bytes);
    }
}

impl Scheduler {
    pub fn new(bounds: Bounds) -> Self {
        let Bounds { slots, memory_mb, queued, source_bytes, sharing, usual_heap_mb, worker_mb } = bounds;
        let state = State {
            slots: Pool::new(slots as u64, sharing, 1),
            memory_mb: Pool::new(memory_mb, sharing, worker_mb(usual_heap_mb)),
            places: Pool::new(queued as u64, sharing, 1),
            source_bytes: Pool::new(source_bytes, sharing, SOURCE_BYTES_MAX as u64),
            used: HashMap::new(),
            turns: VecDeque::new(),
            waiting: HashMap::new(),
        };
        Self { state: Arc::new(Mutex::new(state)), worker_mb }
    }

    /// Queues a job. The receiver gets the permit when the job may run. Dropping the receiver removes the job from the queue.
    pub fn enter(&self, holder: &BudgetHolder, heap_mb: u32) -> Result<oneshot::Receiver<Permit>, Refused> {
        Ok(self.hold(holder, heap_mb)?.enter())
    }

    /// Reserves a place for a job that has to wait for something else before it enters the queue. It counts as queued, and delays no other job.
    pub fn hold(&self, holder: &BudgetHolder, heap_mb: u32) -> Result<ReservedPlace, Refused> {
        let mut state = self.state();
        let (memory_mb, memory_mb_max) = ((self.worker_mb)(heap_mb), state.memory_mb.amount_max());
        if memory_mb > memory_mb_max {
            return Err(Refused::TooLarge { heap_mb, worker_mb: memory_mb, memory_mb_max });
        }
        let mut place = state.places.section_for(state.usage(holder).places, 1);
        if place.is_none() {
            state.remove_cancelled();
            place = state.places.section_for(state.usage(holder).places, 1);
        }
        let place = place.ok_or_else(|| Refused::QueueFull { own: state.usage(holder).places })?;
        state.places.take(place, 1);
        state.change(holder, |used| used.places += 1);
        drop(state);
        Ok(ReservedPlace { holder: holder.clone(), memory_mb, place, is_queued: false, scheduler: self.clone() })
    }

    /// Counts the source of a job before it is accepted.
    pub fn charge_source(&self, holder: &BudgetHolder, bytes: usize) -> Result<SourceCharge, Refused> {
        let bytes = bytes as u64;
        let mut state = self.state();
        let own = state.usage(holder).source_bytes;
        let section = state.source_bytes.section_for(own, bytes).ok_or(Refused::SourceFull { bytes, own })?;
        state.source_bytes.take(section, bytes);
        state.change(holder, |used| used.source_bytes += bytes);
        drop(state);
        Ok(SourceCharge { holder: holder.clone(), section, bytes, scheduler: self.clone() })
    }

    fn queue(&self, holder: &BudgetHolder, memory_mb: u64, place: Section) -> oneshot::Receiver<Permit> {
        let mut state = self.state();
        let (start, started) = oneshot::channel();
        if !state.waiting.contains_key(holder) {
            state.turns.push_back(holder.clone());
        }
        state.waiting.entry(holder.clone()).or_default().push_back(Waiting { memory_mb, passed: 0, place, start });
        self.start_what_fits(state);
        started
    }

    /// Of all holders.
    pub fn load(&self) -> Load {
        let mut state = self.state();
        state.remove_cancelled();
        state.used.values().fold(Load::default(), |load, used| load + used.load())
    }

    pub fn load_of(&self, holder: &BudgetHolder) -> Load {
        let mut state = self.state();
        state.remove_cancelled();
        state.usage(holder).load()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_what_fits(&self, mut state: MutexGuard<'_, State>) {
        while let Some((holder, waiting, (slot, memory))) = state.next_that_fits() {
            let memory_mb = waiting.memory_mb;
            let grant = Grant { holder, slot, memory, memory_mb, scheduler: self.clone() };
            let permit = Permit { grant: Some(grant), answer: None };
            // The job was cancelled: dropping the permit here would lock the state again.
            if let Err(mut permit) = waiting.start.send(permit)
                && let Some(grant) = permit.grant.take()
            {
                state.release_slot(&grant.holder, grant.slot);
                state.release_memory(&grant.holder, grant.memory, grant.memory_mb);
            }
        }
    }
}

impl Usage {
    fn load(self) -> Load {
        Load { running: self.slots as usize, queued: self.places as usize }
    }
}

impl std::ops::Add for Load {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { running: self.running + other.running, queued: self.queued + other.queued }
    }
}

impl State {
    fn usage(&self, holder: &BudgetHolder) -> Usage {
        self.used.get(holder).copied().unwrap_or_default()
    }

    fn change(&mut self, holder: &BudgetHolder, change: impl FnOnce(&mut Usage)) {
        let used = self.used.entry(holder.clone()).or_default();
        change(used);
        if *used == Usage::default() {
            self.used.remove(holder);
        }
    }

    /// Takes the next job for which a slot and memory are free, and moves its lane to the back. The first job may be overtaken by up to
    /// [`PASSED_MAX`] others that take memory which it waits for.
    fn next_that_fits(&mut self) -> Option<(BudgetHolder, Waiting, (Section, Section))> {
        let awaited = self.memory_the_first_waits_for();
        let is_kept = self.first().is_some_and(|(_, job)| job.passed >= PASSED_MAX);
        let kept = if is_kept { awaited } else { &[] };
        let (turn, sections) = self.turns.iter().enumerate().find_map(|(turn, lane)| {
            let kept = if turn == 0 { &[] } else { kept };
            Some((turn, self.sections_for_first_of(lane, kept)?))
        })?;
        if turn > 0 && awaited.contains(&sections.1) {
            self.waiting.get_mut(self.turns.front()?)?.front_mut()?.passed += 1;
        }
        let lane = self.turns.remove(turn)?;
        let jobs = self.waiting.get_mut(&lane)?;
        let job = jobs.pop_front()?;
        if jobs.is_empty() {
            self.waiting.remove(&lane);
        } else {
            self.turns.push_back(lane.clone());
        }
        self.slots.take(sections.0, 1);
        self.memory_mb.take(sections.1, job.memory_mb);
        self.change(&lane, |used| {
            used.slots += 1;
            used.memory_mb += job.memory_mb;
        });
        self.leave_queue(&lane, job.place);
        Some((lane, job, sections))
    }

    fn first(&self) -> Option<(&BudgetHolder, &Waiting)> {
        let lane = self.turns.front()?;
        Some((lane, self.waiting.get(lane)?.front()?))
    }

    /// The sections whose memory could start the first job, if it lacks memory. A cancelled job waits for nothing.
    fn memory_the_first_waits_for(&self) -> &'static [Section] {
        let Some((lane, job)) = self.first().filter(|(_, job)| !job.start.is_closed()) else { return &[] };
        let held = self.usage(lane).memory_mb;
        match self.memory_mb.section_for(held, job.memory_mb) {
            Some(_) => &[],
            None if self.memory_mb.may_use_reserve(held, job.memory_mb) => &[Section::Common, Section::Reserve],
            None => &[Section::Common],
        }
    }

    /// Where the slot and the memory of the first job in a lane can be taken from now; not from `kept` memory.
    fn sections_for_first_of(&self, lane: &BudgetHolder, kept: &[Section]) -> Option<(Section, Section)> {
        let (job, used) = (self.waiting.get(lane)?.front()?, self.usage(lane));
        let slot = self.slots.section_for(used.slots, 1)?;
        let mut sections = [Section::Common, Section::Reserve].into_iter().filter(|section| !kept.contains(section));
        Some((slot, sections.find(|section| self.memory_mb.fits(*section, used.memory_mb, job.memory_mb))?))
    }

    fn leave_queue(&mut self, holder: &BudgetHolder, place: Section) {
        self.places.release(place, 1);
        self.change(holder, |used| used.places -= 1);
    }

    fn release_slot(&mut self, holder: &BudgetHolder, slot: Section) {
        self.slots.release(slot, 1);
        self.change(holder, |used| used.slots -= 1);
    }

    fn release_memory(&mut self, holder: &BudgetHolder, memory: Section, memory_mb: u64) {
        self.memory_mb.release(memory, memory_mb);
        self.change(holder, |used| used.memory_mb -= memory_mb);
    }

    /// Removes jobs that were cancelled while they waited.
    fn remove_cancelled(&mut self) {
        let mut left = Vec::new();
        for (holder, jobs) in &mut self.waiting {
            jobs.retain(|job| {
                let is_cancelled = job.start.is_closed();
                if is_cancelled {
                    left.push((holder.clone(), job.place));
                }
                !is_cancelled
            });
        }
        self.waiting.retain(|_, jobs| !jobs.is_empty());
        let waiting = &self.waiting;
        self.turns.retain(|lane| waiting.contains_key(lane));
        for (holder, place) in left {
            self.leave_queue(&holder, place);
        }
    }
}

impl Permit {
    /// A permit that does not count towards the limits.
    pub fn uncounted() -> Self {
        Self { grant: None, answer: None }
    }

    /// Also holds the room of the run's answer.
    pub(crate) fn holding(mut self, answer: Option<Arc<AnswerRoom>>) -> Self {
        self.answer = answer;
        self
    }

    pub(crate) fn take_answer(&mut self) -> Option<Arc<AnswerRoom>> {
        self.answer.take()
    }

    /// The worker has ended: of its memory only what it left in the server still counts. The slot is kept, so that what is being stored is
    /// bounded too.
    pub fn worker_ended(&mut self, left_bytes: u64) {
        let Some(grant) = &mut self.grant else { return };
        let left_mb = left_bytes.div_ceil(1 << 20).min(grant.memory_mb);
        let scheduler = grant.scheduler.clone();
        let mut state = scheduler.state();
        state.release_memory(&grant.holder, grant.memory, grant.memory_mb - left_mb);
        grant.memory_mb = left_mb;
        scheduler.start_what_fits(state);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(Grant { holder, slot, memory, memory_mb, scheduler }) = self.grant.take() else { return };
        let mut state = scheduler.state();
        state.release_slot(&holder, slot);
        state.release_memory(&holder, memory, memory_mb);
        scheduler.start_what_fits(state);
    }
}
