//! The row of a scope's events: bounded, written without waiting, and read by each listener at its own pace.

use super::event::{Event, Level, Topic};
use rustix::rand::{GetRandomFlags, getrandom};
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Events kept for slow listeners and for those that come back.
pub const EVENTS_MAX: usize = 512;
/// And what they may hold together, so that long messages do not make a row large.
pub const ROW_BYTES_MAX: usize = 256 << 10;
/// How long events go on being kept for a listener that has left.
pub const RETURN_WITHIN: Duration = Duration::from_secs(300);

/// The events of one scope, and what it subscribed to.
pub struct Row {
    pub number: u64,
    kept: Mutex<Kept>,
    /// How many events there have been; changes at the end too.
    news: watch::Sender<u64>,
}

#[derive(Default)]
pub struct Kept {
    pub events: VecDeque<Event>,
    bytes: usize,
    /// How many events there were before those.
    gone: u64,
    listeners: usize,
    left_at: Option<Instant>,
    pub topics: HashSet<Topic>,
    /// The least level that is told; none while nobody has chosen one.
    pub level: Option<Level>,
    ended: bool,
}

/// Where in a row a listener is. The row's own number tells it from an earlier one of the same scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub row: u64,
    pub event: u64,
}

/// What a listener hears next.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    Event(Position, Event),
    /// The session is over.
    Ended,
    /// Events were lost: the listener was too slow.
    CutOff,
}

impl Row {
    pub fn new() -> Self {
        Self { number: random_number(), kept: Mutex::default(), news: watch::Sender::default() }
    }

    /// A listener from the next event on, or from where an earlier one was; and whether it missed any.
    pub fn listen(self: Arc<Self>, after: Option<Position>, all: Arc<AtomicUsize>) -> (Listener, bool) {
        all.fetch_add(1, Relaxed);
        let mut kept = self.lock();
        kept.listeners += 1;
        let (next, missed) = match after {
            None => (kept.told(), false),
            Some(at) if at.row == self.number && (kept.gone..=kept.told()).contains(&at.event) => (at.event, false),
            Some(_) => (kept.told(), true),
        };
        drop(kept);
        (Listener { news: self.news.subscribe(), row: self, next, all }, missed)
    }

    /// Never waits.
    pub fn tell(&self, event: Event) {
        let mut kept = self.lock();
        let too_low = matches!(&event, Event::Log { level, .. } if *level < kept.level.unwrap_or_default());
        if too_low || !kept.is_wanted() {
            return;
        }
        kept.bytes += event.bytes();
        kept.events.push_back(event);
        while kept.events.len() > EVENTS_MAX || (kept.bytes > ROW_BYTES_MAX && kept.events.len() > 1) {
            let oldest = kept.events.pop_front().map_or(0, |event| event.bytes());
            kept.bytes -= oldest;
            kept.gone += 1;
        }
        self.news.send_replace(kept.told());
    }

    /// What its events take up. Nothing is added once it has ended.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    pub fn end(&self) {
        let mut kept = self.lock();
        kept.ended = true;
        self.news.send_replace(kept.told());
    }

    pub fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn told(&self) -> u64 {
        self.gone + self.events.len() as u64
    }

    /// Whether somebody listens, or may come back for what was missed.
    pub fn is_wanted(&self) -> bool {
        self.listeners > 0 || self.left_at.is_some_and(|at| at.elapsed() < RETURN_WITHIN)
    }
}

/// One reader of a scope's events. Nothing waits for it.
pub struct Listener {
    row: Arc<Row>,
    news: watch::Receiver<u64>,
    next: u64,
    /// How many there are.
    all: Arc<AtomicUsize>,
}

impl Listener {
    pub async fn next(&mut self) -> Heard {
        loop {
            self.news.mark_unchanged();
            if let Some(heard) = self.look() {
                return heard;
            }
            // The row holds the sender, and we hold the row.
            let _ = self.news.changed().await;
        }
    }

    /// Where it is: whoever listens from there on misses nothing.
    pub fn position(&self) -> Position {
        Position { row: self.row.number, event: self.next }
    }

    fn look(&mut self) -> Option<Heard> {
        let kept = self.row.lock();
        let Some(index) = self.next.checked_sub(kept.gone) else { return Some(Heard::CutOff) };
        match kept.events.get(usize::try_from(index).unwrap_or(usize::MAX)) {
            Some(event) => {
                self.next += 1;
                Some(Heard::Event(Position { row: self.row.number, event: self.next }, event.clone()))
            }
            None => kept.ended.then_some(Heard::Ended),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut kept = self.row.lock();
        kept.listeners -= 1;
        kept.left_at = Some(Instant::now());
        self.all.fetch_sub(1, Relaxed);
    }
}

fn random_number() -> u64 {
    let mut bits = [0; 8];
    // It only has to differ from the last one's; zero would do where there is no randomness.
    let _ = getrandom(&mut bits, GetRandomFlags::empty());
    u64::from_le_bytes(bits)
}
