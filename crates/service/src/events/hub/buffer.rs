//! The event buffer of a scope: bounded, written without blocking, read by each subscriber at its own pace.

use super::event::{Event, Level, Topic};
use heapstead_types::random_bytes;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Events buffered for slow and for returning subscribers.
pub const EVENTS_MAX: usize = 512;
/// Their total size, so that long messages do not make a buffer large.
pub const BUFFER_BYTES_MAX: usize = 256 << 10;
/// How long events stay buffered for a disconnected subscriber.
pub const RETURN_WITHIN: Duration = Duration::from_secs(300);

/// The events and topics of one scope.
pub struct EventBuffer {
    pub number: u64,
    state: Mutex<BufferState>,
    /// Number of events so far; also changes at the end.
    published: watch::Sender<u64>,
}

#[derive(Default)]
pub struct BufferState {
    pub events: VecDeque<Event>,
    bytes: usize,
    /// Number of events that were dropped.
    dropped: u64,
    subscribers: usize,
    left_at: Option<Instant>,
    pub topics: HashSet<Topic>,
    /// The minimum level of log messages; none until one is chosen.
    pub level: Option<Level>,
    ended: bool,
}

/// A position in a buffer. The number of the buffer distinguishes it from earlier buffers of the same scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub buffer: u64,
    pub event: u64,
}

/// What a subscriber receives next.
#[derive(Debug, Clone, PartialEq)]
pub enum Delivery {
    Event(Position, Event),
    /// The session has ended.
    Ended,
    /// Events were lost: the subscriber was too slow.
    Lagged,
}

impl EventBuffer {
    pub fn new() -> Self {
        Self { number: u64::from_le_bytes(random_bytes()), state: Mutex::default(), published: watch::Sender::default() }
    }

    /// A subscriber from now on, or from an earlier position; and whether it has lost events.
    pub fn receive(self: Arc<Self>, after: Option<Position>, all: Arc<AtomicUsize>) -> (Subscriber, bool) {
        all.fetch_add(1, Relaxed);
        let mut state = self.lock();
        state.subscribers += 1;
        let (next, has_lost) = match after {
            None => (state.count(), false),
            Some(at) if at.buffer == self.number && (state.dropped..=state.count()).contains(&at.event) => (at.event, false),
            Some(_) => (state.count(), true),
        };
        drop(state);
        (Subscriber { published: self.published.subscribe(), buffer: self, next, all }, has_lost)
    }

    /// Never blocks.
    pub fn publish(&self, event: Event) {
        let mut state = self.lock();
        let too_low = matches!(&event, Event::Log { level, .. } if *level < state.level.unwrap_or_default());
        if too_low || !state.is_wanted() {
            return;
        }
        state.bytes += event.bytes();
        state.events.push_back(event);
        while state.events.len() > EVENTS_MAX || (state.bytes > BUFFER_BYTES_MAX && state.events.len() > 1) {
            let oldest = state.events.pop_front().map_or(0, |event| event.bytes());
            state.bytes -= oldest;
            state.dropped += 1;
        }
        self.published.send_replace(state.count());
    }

    /// Size of its events. Nothing is added after the end.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    pub fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        self.published.send_replace(state.count());
    }

    pub fn lock(&self) -> MutexGuard<'_, BufferState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BufferState {
    fn count(&self) -> u64 {
        self.dropped + self.events.len() as u64
    }

    /// Whether it has a subscriber, or one that may come back.
    pub fn is_wanted(&self) -> bool {
        self.subscribers > 0 || self.left_at.is_some_and(|at| at.elapsed() < RETURN_WITHIN)
    }
}

/// One reader of a scope's events. Publishers never wait for it.
pub struct Subscriber {
    buffer: Arc<EventBuffer>,
    published: watch::Receiver<u64>,
    next: u64,
    /// Number of subscribers of all scopes.
    all: Arc<AtomicUsize>,
}

impl Subscriber {
    pub async fn next(&mut self) -> Delivery {
        loop {
            self.published.mark_unchanged();
            if let Some(delivery) = self.poll() {
                return delivery;
            }
            // The sender lives as long as the buffer, which we hold.
            let _ = self.published.changed().await;
        }
    }

    /// Its position: a subscriber from there on loses nothing.
    pub fn position(&self) -> Position {
        Position { buffer: self.buffer.number, event: self.next }
    }

    fn poll(&mut self) -> Option<Delivery> {
        let state = self.buffer.lock();
        let Some(index) = self.next.checked_sub(state.dropped) else { return Some(Delivery::Lagged) };
        match state.events.get(usize::try_from(index).unwrap_or(usize::MAX)) {
            Some(event) => {
                self.next += 1;
                Some(Delivery::Event(Position { buffer: self.buffer.number, event: self.next }, event.clone()))
            }
            None => state.ended.then_some(Delivery::Ended),
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let mut state = self.buffer.lock();
        state.subscribers -= 1;
        state.left_at = Some(Instant::now());
        self.all.fetch_sub(1, Relaxed);
    }
}
