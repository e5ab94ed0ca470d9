//! Turns of this process: work in one session happens one after another, in the order of acceptance. The `turns` table has the order across
//! servers; this is the part of it that belongs to this process.

use heapstead_store::records::TurnId;
use heapstead_types::SessionId;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex as StdMutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

#[derive(Default)]
pub struct TurnQueues {
    queues: StdMutex<Queues>,
    /// Turns that no execution has. Each receiver closes when the turn is released.
    held: Arc<StdMutex<HashMap<TurnId, watch::Receiver<()>>>>,
}

#[derive(Default)]
struct Queues {
    of: HashMap<SessionId, Weak<Queue>>,
    /// Empty queues are removed when there are this many.
    tidied_at: usize,
}

#[derive(Default)]
struct Queue {
    accepting: Arc<Mutex<()>>,
    running: Arc<Mutex<()>>,
}

/// Guard: nothing else is accepted into the session.
pub struct Accepting {
    queue: Arc<Queue>,
    _alone: OwnedMutexGuard<()>,
}

/// A place in the queue. Dropping it lets the next one move up.
pub struct QueuedTurn {
    turn: Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send>>,
    queue: Arc<Queue>,
}

/// Guard: nothing else of this process works in the session.
pub struct TurnGuard {
    _running: OwnedMutexGuard<()>,
    _queue: Arc<Queue>,
}

const QUEUES_MIN: usize = 64;

impl TurnQueues {
    pub async fn accept(&self, session: SessionId) -> Accepting {
        let queue = self.queue(session);
        let alone = queue.accepting.clone().lock_owned().await;
        Accepting { queue, _alone: alone }
    }

    fn queue(&self, session: SessionId) -> Arc<Queue> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.of.get(&session).and_then(Weak::upgrade) {
            return queue;
        }
        if queues.of.len() >= queues.tidied_at {
            queues.of.retain(|_, queue| queue.strong_count() > 0);
            queues.tidied_at = queues.of.len() * 2 + QUEUES_MIN;
        }
        let queue = Arc::new(Queue::default());
        queues.of.insert(session, Arc::downgrade(&queue));
        queue
    }

    /// Registers a turn that no execution has, so that other servers can wait for it.
    pub fn hold(&self, id: &TurnId) -> RegisteredTurn {
        let (released, wait) = watch::channel(());
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), wait);
        RegisteredTurn { id: id.clone(), held: self.held.clone(), _released: released }
    }

    /// Waits until a registered turn is released. Returns at once if there is none.
    pub async fn released(&self, id: &TurnId) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        if let Some(mut held) = held {
            // Never changes; closes when the turn is dropped.
            let _ = held.changed().await;
        }
    }
}

/// A registered turn. Dropping it wakes those that wait for it.
pub struct RegisteredTurn {
    id: TurnId,
    held: Arc<StdMutex<HashMap<TurnId, watch::Receiver<()>>>>,
    _released: watch::Sender<()>,
}

impl Drop for RegisteredTurn {
    fn drop(&mut self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Accepting {
    /// Whether nothing of this process is in the session, or waits for its turn.
    pub fn is_first(&self) -> bool {
        self.queue.running.try_lock().is_ok()
    }

    /// Takes its place behind everything accepted before.
    pub fn line_up(self) -> QueuedTurn {
        let mut turn: Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send>> = Box::pin(self.queue.running.clone().lock_owned());
        // The first poll enqueues it. If the lock is free, the guard is kept.
        if let Poll::Ready(guard) = turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            turn = Box::pin(std::future::ready(guard));
        }
        QueuedTurn { turn, queue: self.queue }
    }
}

impl QueuedTurn {
    pub async fn my_turn(self) -> TurnGuard {
        TurnGuard { _running: self.turn.await, _queue: self.queue }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn turns_come_in_order_of_acceptance_and_leaving_lets_the_next_one_in() {
        let (turns, id) = (TurnQueues::default(), SessionId::from_random([1; 32]));
        let (sender, mut order) = mpsc::unbounded_channel();
        let first = turns.accept(id).await.line_up().my_turn().await;
        let mut waiting = Vec::new();
        for number in 0..10 {
            waiting.push((number, turns.accept(id).await.line_up()));
        }
        drop(waiting.remove(3));
        // Asked for in the wrong order.
        for (number, in_line) in waiting.into_iter().rev() {
            let sender = sender.clone();
            tokio::spawn(async move {
                let _turn = in_line.my_turn().await;
                let _ = sender.send(number);
            });
        }
        drop(first);
        let mut seen = Vec::new();
        for _ in 0..9 {
            seen.push(order.recv().await.expect("a turn"));
        }
        assert_eq!(seen, [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    }

    #[tokio::test]
    async fn sessions_do_not_wait_for_each_other_and_leave_nothing_behind() {
        let turns = TurnQueues::default();
        let _first = turns.accept(SessionId::from_random([0; 32])).await.line_up().my_turn().await;
        for number in 0..1000u16 {
            let mut bits = [1; 32];
            bits[..2].copy_from_slice(&number.to_le_bytes());
            turns.accept(SessionId::from_random(bits)).await.line_up().my_turn().await;
        }
        assert!(turns.queues.lock().expect("the queues").of.len() <= QUEUES_MIN + 3);
    }
}
