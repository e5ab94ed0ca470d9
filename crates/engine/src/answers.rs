//! Memory for long answers of workers: the result of a run, the JavaScript that ran and long inputs, from their arrival until they are stored.
//!
//! A worker whose answer has no room waits: its socket is not read. An answer takes its room at once and needs nothing else while it has it, so
//! answers can't wait for each other in a circle. The rule for owners is that of all pools (`pool.rs`): a part is reserved for those that use
//! little. Whoever waits for the common part gets it in the order of arrival.

use crate::pool::{Pool, Section, Sharing};
use heapstead_types::BudgetHolder;
use heapstead_wire::{ANSWER_BYTES_MAX, INPUTS_BYTES_MAX, OUTPUT_BYTES_MAX};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Shorter answers and inputs need no room: a slot has memory for a message of this length anyway, for output.
pub const SHORT_ANSWER_BYTES: usize = OUTPUT_BYTES_MAX;
/// The least room with which every answer fits into the common part of the pool.
pub const ANSWERS_MB_MIN: u64 = 128;
const _: () = assert!((ANSWERS_MB_MIN << 20) / 4 * 3 >= (ANSWER_BYTES_MAX + INPUTS_BYTES_MAX) as u64);

#[derive(Debug, Clone)]
pub struct Answers(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    pool: Pool,
    /// What each holder has. A holder that has nothing is absent.
    held: HashMap<BudgetHolder, u64>,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    holder: BudgetHolder,
    bytes: u64,
    granted: oneshot::Sender<AnswerRoom>,
}

/// Room for one answer; released when dropped.
#[derive(Debug)]
pub struct AnswerRoom {
    answers: Answers,
    holder: BudgetHolder,
    section: Section,
    bytes: u64,
}

impl Answers {
    pub fn new(bytes_max: u64, sharing: Sharing) -> Self {
        let pool = Pool::new(bytes_max.max(ANSWERS_MB_MIN << 20), sharing, ANSWER_BYTES_MAX as u64);
        Self(Arc::new(Mutex::new(State { pool, held: HashMap::new(), waiting: VecDeque::new() })))
    }

    /// Waits for room. None if there can never be as much. Dropping the future gives the place in the queue up.
    pub async fn room(&self, holder: &BudgetHolder, bytes: usize) -> Option<AnswerRoom> {
        let grant = self.enter(holder, bytes as u64)?;
        // After the receiver, so that it is dropped before.
        let leaving = Leaving(self);
        let room = grant.await.ok();
        std::mem::forget(leaving);
        room
    }

    fn enter(&self, holder: &BudgetHolder, bytes: u64) -> Option<oneshot::Receiver<AnswerRoom>> {
        let (granted, grant) = oneshot::channel();
        let mut state = self.state();
        if bytes > state.pool.amount_max() {
            return None;
        }
        state.waiting.push_back(Waiting { holder: holder.clone(), bytes, granted });
        self.grant_what_fits(state);
        Some(grant)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn grant_what_fits(&self, mut state: MutexGuard<'_, State>) {
        let granted = state.take_what_fits();
        drop(state);
        for (Waiting { holder, bytes, granted }, section) in granted {
            // If the receiver has left, the room is dropped here, and the next one gets it.
            let _ = granted.send(AnswerRoom { answers: self.clone(), holder, section, bytes });
        }
    }
}

impl State {
    /// The first one that does not fit keeps the common part: no later one takes from it.
    fn take_what_fits(&mut self) -> Vec<(Waiting, Section)> {
        let (mut granted, mut left) = (Vec::new(), VecDeque::new());
        for waiting in std::mem::take(&mut self.waiting).into_iter().filter(|waiting| !waiting.granted.is_closed()) {
            let held = self.held.get(&waiting.holder).copied().unwrap_or_default();
            let sections = if left.is_empty() { &[Section::Common, Section::Reserve][..] } else { &[Section::Reserve] };
            match sections.iter().find(|section| self.pool.fits(**section, held, waiting.bytes)) {
                Some(section) => {
                    self.pool.take(*section, waiting.bytes);
                    *self.held.entry(waiting.holder.clone()).or_default() += waiting.bytes;
                    granted.push((waiting, *section));
                }
                None => left.push_back(waiting),
            }
        }
        self.waiting = left;
        granted
    }
}

/// Lets the others advance if the first of the queue leaves it.
struct Leaving<'a>(&'a Answers);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.grant_what_fits(self.0.state());
    }
}

impl AnswerRoom {
    /// Returns what the answer turned out not to need.
    pub fn shrink_to(&mut self, bytes: usize) {
        let unused = self.bytes.saturating_sub(bytes as u64);
        self.bytes -= unused;
        self.release(unused);
    }

    fn release(&self, bytes: u64) {
        let mut state = self.answers.state();
        state.pool.release(self.section, bytes);
        if let Some(held) = state.held.get_mut(&self.holder) {
            *held -= bytes;
            if *held == 0 {
                state.held.remove(&self.holder);
            }
        }
        self.answers.grant_what_fits(state);
    }
}

impl Drop for AnswerRoom {
    fn drop(&mut self) {
        self.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    const MB: usize = 1 << 20;

    fn holder(number: u8) -> BudgetHolder {
        BudgetHolder::network([10, 0, 0, number].into())
    }

    type Room<'a> = Pin<Box<dyn Future<Output = Option<AnswerRoom>> + 'a>>;

    fn poll(room: &mut Room<'_>) -> Poll<Option<AnswerRoom>> {
        room.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Enters the queue.
    fn ask(answers: &Answers, number: u8, mb: usize) -> Room<'_> {
        let mut room: Room<'_> = Box::pin(async move { answers.room(&holder(number), mb * MB).await });
        match poll(&mut room) {
            Poll::Ready(granted) => Box::pin(async { granted }),
            Poll::Pending => room,
        }
    }

    fn granted(room: &mut Room<'_>) -> Option<AnswerRoom> {
        match poll(room) {
            Poll::Ready(room) => Some(room.expect("it can fit")),
            Poll::Pending => None,
        }
    }

    #[test]
    fn an_answer_waits_until_there_is_room_and_later_ones_do_not_overtake_it() {
        let answers = Answers::new(128 << 20, Sharing::OneOwner);
        let first = granted(&mut ask(&answers, 1, 80)).expect("room");
        let (mut second, mut third) = (ask(&answers, 1, 80), ask(&answers, 1, 40));
        assert!(granted(&mut second).is_none() && granted(&mut third).is_none(), "40 MB would fit, but the second comes first");
        drop(first);
        let second = granted(&mut second).expect("room");
        let third = granted(&mut third).expect("room beside the second");
        drop((second, third));
        let state = answers.state();
        assert!(state.held.is_empty() && state.waiting.is_empty() && state.pool.fits(Section::Common, 0, 128 << 20));
    }

    #[test]
    fn one_that_leaves_the_queue_lets_the_next_one_advance() {
        let answers = Answers::new(128 << 20, Sharing::OneOwner);
        let _first = granted(&mut ask(&answers, 1, 80)).expect("room");
        let (second, mut third) = (ask(&answers, 1, 80), ask(&answers, 1, 40));
        assert!(granted(&mut third).is_none());
        drop(second);
        assert!(granted(&mut third).is_some());
    }

    #[test]
    fn an_owner_that_holds_nothing_does_not_wait_for_another_one() {
        let answers = Answers::new(512 << 20, Sharing::SeveralOwners);
        let mut greedy: Vec<_> = (0..64).map(|_| ask(&answers, 1, 16)).collect();
        let held: Vec<_> = greedy.iter_mut().filter_map(granted).collect();
        assert_eq!(held.len(), 24, "three quarters");
        assert!(granted(&mut ask(&answers, 2, 80)).is_some(), "the longest answer there is");
    }

    #[test]
    fn what_an_answer_does_not_need_is_returned() {
        let answers = Answers::new(128 << 20, Sharing::OneOwner);
        let mut first = granted(&mut ask(&answers, 1, 80)).expect("room");
        let mut second = ask(&answers, 1, 80);
        first.shrink_to(MB);
        assert!(granted(&mut second).is_some());
    }

    #[test]
    fn what_can_never_fit_is_refused() {
        let answers = Answers::new(128 << 20, Sharing::SeveralOwners);
        assert!(matches!(poll(&mut ask(&answers, 1, 97)), Poll::Ready(None)));
        assert!(granted(&mut ask(&answers, 1, ANSWER_BYTES_MAX.div_ceil(MB))).is_some());
    }
}
