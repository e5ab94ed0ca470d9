//! The event buffer of a scope: bounded, written without blocking, read by each subscriber at its own pace.

use super::event::{Event, Level, Topic};
use crate::budget::{Exhausted, Portion};
use heapstead_types::random_bytes;
use std::collections::{HashSet, VecDeque};
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

pub struct BufferState {
    pub events: VecDeque<Event>,
    /// The size of its events.
    memory: Portion,
    /// The number of its topics.
    topic_places: Portion,
    /// Number of events that were dropped.
    dropped: u64,
    subscribers: usize,
    left_at: Option<Instant>,
    topics: HashSet<Topic>,
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
    /// Its events and topics are taken from these empty portions.
    pub fn new(memory: Portion, topic_places: Portion) -> Self {
        let state = BufferState {
            events: VecDeque::new(),
            memory,
            topic_places,
            dropped: 0,
            subscribers: 0,
            left_at: None,
            topics: HashSet::new(),
            level: None,
            ended: false,
        };
        Self { number: u64::from_le_bytes(random_bytes()), state: Mutex::new(state), published: watch::Sender::default() }
    }

    /// A subscriber from now on, or from an earlier position; and whether it has lost events.
    pub fn receive(self: Arc<Self>, after: Option<Position>, place: Portion) -> (Subscriber, bool) {
        let mut state = self.lock();
        state.subscribers += 1;
        let (next, has_lost) = match after {
            None => (state.count(), false),
            Some(at) if at.buffer == self.number && (state.dropped..=state.count()).contains(&at.event) => (at.event, false),
            Some(_) => (state.count(), true),
        };
        drop(state);
        (Subscriber { published: self.published.subscribe(), buffer: self, next, _place: place }, has_lost)
    }

    /// Never blocks.
    pub fn publish(&self, event: Event) {
        let mut state = self.lock();
        let too_low = matches!(&event, Event::Log { level, .. } if *level < state.level.unwrap_or_default());
        if too_low || !state.is_wanted() {
            return;
        }
        state.push(event);
        self.published.send_replace(state.count());
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
    /// Adds an event, and drops the oldest ones until the others fit into the buffer and into what is left for its owner.
    fn push(&mut self, event: Event) {
        let mut bytes = self.memory.amount() as usize + event.bytes();
        self.events.push_back(event);
        loop {
            let fits = self.events.len() <= EVENTS_MAX && bytes <= BUFFER_BYTES_MAX;
            if fits && self.memory.resize(bytes as u64).is_ok() {
                return;
            }
            let Some(oldest) = self.events.pop_front() else { return };
            bytes -= oldest.bytes();
            self.dropped += 1;
        }
    }

    pub fn topics(&self) -> &HashSet<Topic> {
        &self.topics
    }

    /// Adds a topic, if there is room for it.
    pub fn add_topic(&mut self, topic: Topic) -> Result<(), Exhausted> {
        if !self.topics.contains(&topic) {
            self.topic_places.resize(self.topics.len() as u64 + 1)?;
            self.topics.insert(topic);
        }
        Ok(())
    }

    pub fn remove_topic(&mut self, topic: &Topic) {
        self.topics.remove(topic);
        // Shrinking always succeeds.
        let _ = self.topic_places.resize(self.topics.len() as u64);
    }

    pub fn take_topics(&mut self) -> HashSet<Topic> {
        let _ = self.topic_places.resize(0);
        std::mem::take(&mut self.topics)
    }

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
    _place: Portion,
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
    }
}
