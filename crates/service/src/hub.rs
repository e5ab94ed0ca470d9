//! What happens, and who is told: each scope has one bounded row of events, which its listeners read at their own pace.
//!
//! ```text
//! followers of executions ─► topics ─► scopes that subscribed to them ─► row of events ─┬─► listener, at event 17
//!                                                                                       └─► listener, at event 12
//! ```
//! Telling never waits: whoever reads so slowly that its next event has left the row is cut off, and whoever comes back finds what is still in it.

use heapstead_types::{ExecutionId, SessionId};
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::Value;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// Events kept for slow listeners and for those that come back.
const EVENTS_MAX: usize = 512;
/// What one scope may have subscribed to.
pub const TOPICS_MAX: usize = 1_000;
/// Listeners of all scopes together.
pub const LISTENERS_MAX: usize = 10_000;
/// How long events go on being kept for a listener that has left.
const RETURN_WITHIN: Duration = Duration::from_secs(300);
/// Rows that nobody needs any more are forgotten when there are this many more than needed.
const SCOPES_MIN: usize = 64;

/// Listeners of one scope are told the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    Session(SessionId),
    /// What belongs to no session: a connection, by its id.
    Connection(String),
    /// One request that listens.
    Request(u64),
}

/// What changes can be asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Topic {
    Execution(ExecutionId),
    Output(ExecutionId),
    Head(SessionId),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Updated(Topic),
    Log { level: Level, execution: ExecutionId, text: String },
    /// Of a call that asked for it, and the connection that it asked on, where that is told already.
    Progress { token: Value, secs: f64, message: String, connection: Option<String> },
}

/// How much a log message matters; the names are those of syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    Debug,
    #[default]
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
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

#[derive(Default)]
pub struct Hub {
    scopes: Mutex<Scopes>,
    listeners: Arc<AtomicUsize>,
    /// Woken when there is somebody to tell.
    pub interest: Notify,
}

#[derive(Default)]
struct Scopes {
    rows: HashMap<Scope, Arc<Row>>,
    /// Who subscribed to what.
    topics: HashMap<Topic, HashSet<Scope>>,
    /// Sessions whose heads are watched, and how often each had moved when that was last told.
    heads: HashMap<SessionId, u64>,
    followed: HashSet<ExecutionId>,
    requests: u64,
    tidied_at: usize,
}

struct Row {
    number: u64,
    kept: Mutex<Kept>,
    /// How many events there have been; changes at the end too.
    news: watch::Sender<u64>,
}

#[derive(Default)]
struct Kept {
    events: VecDeque<Event>,
    /// How many events there were before those.
    gone: u64,
    listeners: usize,
    left_at: Option<Instant>,
    topics: HashSet<Topic>,
    level: Level,
    ended: bool,
}

/// There are as many as may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl Hub {
    /// Listens to a scope, from the next event on or from where an earlier listener was. Then whether it missed any is told too.
    pub fn listen(&self, scope: Scope, after: Option<Position>) -> Result<(Listener, bool), Full> {
        let all = self.listeners.clone();
        if all.load(Relaxed) >= LISTENERS_MAX {
            return Err(Full);
        }
        all.fetch_add(1, Relaxed);
        let mut scopes = self.lock();
        let row = scopes.row(&scope);
        let mut kept = row.lock();
        kept.listeners += 1;
        let (next, missed) = match after {
            None => (kept.told(), false),
            Some(at) if at.row == row.number && (kept.gone..=kept.told()).contains(&at.event) => (at.event, false),
            Some(_) => (kept.told(), true),
        };
        drop(kept);
        self.interest.notify_one();
        Ok((Listener { news: row.news.subscribe(), row, next, all }, missed))
    }

    /// A scope of its own for one request. What it subscribes to is forgotten with `forget`.
    pub fn request_scope(&self) -> Scope {
        let mut scopes = self.lock();
        scopes.requests += 1;
        Scope::Request(scopes.requests)
    }

    pub fn subscribe(&self, scope: &Scope, topic: Topic) -> Result<(), Full> {
        let mut scopes = self.lock();
        let row = scopes.row(scope);
        let mut kept = row.lock();
        if kept.topics.len() >= TOPICS_MAX && !kept.topics.contains(&topic) {
            return Err(Full);
        }
        kept.topics.insert(topic.clone());
        drop(kept);
        scopes.topics.entry(topic).or_default().insert(scope.clone());
        self.interest.notify_one();
        Ok(())
    }

    pub fn unsubscribe(&self, scope: &Scope, topic: &Topic) {
        let mut scopes = self.lock();
        if let Some(row) = scopes.rows.get(scope) {
            row.lock().topics.remove(topic);
        }
        scopes.drop_topic(scope, topic);
    }

    /// What a scope subscribed to.
    pub fn topics(&self, scope: &Scope) -> Vec<Topic> {
        self.lock().rows.get(scope).map(|row| row.lock().topics.iter().cloned().collect()).unwrap_or_default()
    }

    /// Messages that matter less are not told to this scope.
    pub fn set_level(&self, scope: &Scope, level: Level) {
        self.lock().row(scope).lock().level = level;
    }

    /// Tells everybody who subscribed to it.
    pub fn updated(&self, topic: &Topic) {
        let scopes = self.lock();
        for scope in scopes.topics.get(topic).into_iter().flatten() {
            if let Some(row) = scopes.rows.get(scope) {
                row.tell(Event::Updated(topic.clone()));
            }
        }
    }

    /// Tells the listeners of a session.
    pub fn tell(&self, session: SessionId, event: Event) {
        if let Some(row) = self.lock().rows.get(&Scope::Session(session)) {
            row.tell(event);
        }
    }

    /// Whether anybody would hear of a session's runs.
    pub fn wants(&self, session: SessionId) -> bool {
        let scopes = self.lock();
        scopes.rows.get(&Scope::Session(session)).is_some_and(|row| row.lock().is_wanted())
            || scopes.topics.contains_key(&Topic::Head(session))
    }

    /// Watches a session's head, which has moved so often.
    pub fn watch_head(&self, session: SessionId, sequence: u64) {
        self.lock().heads.entry(session).or_insert(sequence);
    }

    pub fn watched_heads(&self) -> Vec<SessionId> {
        self.lock().heads.keys().copied().collect()
    }

    /// Tells that a head has moved, if that is news.
    pub fn head_at(&self, session: SessionId, sequence: u64) {
        let told = self.lock().heads.get_mut(&session).map(|told| std::mem::replace(told, sequence));
        if told.is_some_and(|told| told != sequence) {
            self.updated(&Topic::Head(session));
        }
    }

    /// Notes that an execution is followed. False when it was before.
    pub fn begin_following(&self, execution: &ExecutionId) -> bool {
        self.lock().followed.insert(execution.clone())
    }

    pub fn end_following(&self, execution: &ExecutionId) {
        self.lock().followed.remove(execution);
    }

    /// The session is over: its listeners hear that last.
    pub fn end(&self, session: SessionId) {
        self.updated(&Topic::Head(session));
        let mut scopes = self.lock();
        scopes.heads.remove(&session);
        if let Some(row) = scopes.forget(&Scope::Session(session)) {
            row.end();
        }
    }

    /// Nobody listens to this scope any more, nor will.
    pub fn forget(&self, scope: &Scope) {
        self.lock().forget(scope);
    }

    fn lock(&self) -> MutexGuard<'_, Scopes> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scopes {
    fn row(&mut self, scope: &Scope) -> Arc<Row> {
        if let Some(row) = self.rows.get(scope) {
            return row.clone();
        }
        if self.rows.len() >= self.tidied_at {
            self.tidy();
        }
        let row = Arc::new(Row { number: random_number(), kept: Mutex::default(), news: watch::Sender::default() });
        self.rows.insert(scope.clone(), row.clone());
        row
    }

    /// Forgets rows that nobody listens to, has listened to of late, or has subscribed anything in.
    fn tidy(&mut self) {
        self.rows.retain(|_, row| {
            let kept = row.lock();
            kept.is_wanted() || !kept.topics.is_empty()
        });
        let (rows, topics) = (&self.rows, &self.topics);
        self.heads.retain(|session, _| rows.contains_key(&Scope::Session(*session)) || topics.contains_key(&Topic::Head(*session)));
        self.tidied_at = self.rows.len() * 2 + SCOPES_MIN;
    }

    fn drop_topic(&mut self, scope: &Scope, topic: &Topic) {
        if let Some(subscribers) = self.topics.get_mut(topic) {
            subscribers.remove(scope);
            if subscribers.is_empty() {
                self.topics.remove(topic);
            }
        }
    }

    fn forget(&mut self, scope: &Scope) -> Option<Arc<Row>> {
        let row = self.rows.remove(scope)?;
        let topics = std::mem::take(&mut row.lock().topics);
        for topic in &topics {
            self.drop_topic(scope, topic);
        }
        Some(row)
    }
}

impl Row {
    fn tell(&self, event: Event) {
        let mut kept = self.lock();
        let too_low = matches!(&event, Event::Log { level, .. } if *level < kept.level);
        if too_low || !kept.is_wanted() {
            return;
        }
        if kept.events.len() == EVENTS_MAX {
            kept.events.pop_front();
            kept.gone += 1;
        }
        kept.events.push_back(event);
        self.news.send_replace(kept.told());
    }

    fn end(&self) {
        let mut kept = self.lock();
        kept.ended = true;
        self.news.send_replace(kept.told());
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn told(&self) -> u64 {
        self.gone + self.events.len() as u64
    }

    /// Whether somebody listens, or may come back for what was missed.
    fn is_wanted(&self) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: u8) -> SessionId {
        SessionId::from_random([number; 32])
    }

    fn execution(number: u8) -> Topic {
        Topic::Execution(ExecutionId::from_random([number; 16]))
    }

    fn listen(hub: &Hub, number: u8) -> Listener {
        hub.listen(Scope::Session(session(number)), None).expect("a place").0
    }

    async fn heard(listener: &mut Listener) -> Event {
        match listener.next().await {
            Heard::Event(_, event) => event,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn everybody_hears_what_their_scope_subscribed_to_and_nothing_else() {
        let hub = Hub::default();
        let (mut one, mut same, mut other) = (listen(&hub, 1), listen(&hub, 1), listen(&hub, 2));
        hub.subscribe(&Scope::Session(session(1)), execution(1)).expect("room");
        hub.subscribe(&Scope::Session(session(2)), execution(2)).expect("room");
        hub.updated(&execution(1));
        hub.updated(&execution(3));
        hub.updated(&execution(2));
        assert_eq!(heard(&mut one).await, Event::Updated(execution(1)));
        assert_eq!(heard(&mut same).await, Event::Updated(execution(1)));
        assert_eq!(heard(&mut other).await, Event::Updated(execution(2)));
        hub.end(session(1));
        assert_eq!(one.next().await, Heard::Ended);
        hub.unsubscribe(&Scope::Session(session(2)), &execution(2));
        hub.updated(&execution(2));
        hub.end(session(2));
        assert_eq!(other.next().await, Heard::Ended);
        assert!(hub.lock().topics.is_empty() && hub.lock().rows.is_empty());
    }

    #[tokio::test]
    async fn whoever_comes_back_in_time_misses_nothing_and_else_is_told_so() {
        let (hub, scope) = (Hub::default(), Scope::Session(session(1)));
        hub.subscribe(&scope, execution(1)).expect("room");
        hub.updated(&execution(1));
        let mut listener = listen(&hub, 1);
        let begin = listener.position();
        hub.updated(&execution(1));
        assert_eq!(heard(&mut listener).await, Event::Updated(execution(1)));
        let at = listener.position();
        drop(listener);
        hub.updated(&execution(1));
        let (mut back, missed) = hub.listen(scope.clone(), Some(at)).expect("a place");
        assert!(!missed);
        assert_eq!(heard(&mut back).await, Event::Updated(execution(1)));
        assert_eq!(back.position().event, begin.event + 2, "what nobody could hear was not kept");
        for wrong in [Position { row: at.row ^ 1, event: 1 }, Position { row: at.row, event: 99 }] {
            assert!(hub.listen(scope.clone(), Some(wrong)).expect("a place").1, "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn a_slow_listener_is_cut_off_and_the_row_stays_bounded() {
        let hub = Hub::default();
        hub.subscribe(&Scope::Session(session(1)), execution(1)).expect("room");
        let mut slow = listen(&hub, 1);
        for _ in 0..=EVENTS_MAX {
            hub.updated(&execution(1));
        }
        assert_eq!(slow.next().await, Heard::CutOff);
        assert_eq!(hub.lock().rows[&Scope::Session(session(1))].lock().events.len(), EVENTS_MAX);
    }

    #[tokio::test]
    async fn messages_that_matter_less_than_asked_for_are_not_told() {
        let hub = Hub::default();
        let mut listener = listen(&hub, 1);
        let id = ExecutionId::from_random([1; 16]);
        let log = |level| Event::Log { level, execution: id.clone(), text: String::new() };
        hub.tell(session(1), log(Level::Debug));
        hub.set_level(&Scope::Session(session(1)), Level::Error);
        hub.tell(session(1), log(Level::Warning));
        hub.tell(session(1), log(Level::Error));
        assert_eq!(heard(&mut listener).await, log(Level::Error));
    }

    #[test]
    fn scopes_that_nobody_needs_leave_nothing_behind() {
        let hub = Hub::default();
        for number in 0..=u8::MAX {
            hub.subscribe(&Scope::Request(number.into()), execution(number)).expect("room");
            hub.forget(&Scope::Request(number.into()));
        }
        assert!(hub.lock().rows.is_empty() && hub.lock().topics.is_empty());
        for number in 0..TOPICS_MAX {
            let topic = Topic::Output(ExecutionId::from_random((number as u128).to_le_bytes()));
            hub.subscribe(&Scope::Request(1), topic).expect("room");
        }
        assert_eq!(hub.subscribe(&Scope::Request(1), execution(1)), Err(Full));
    }
}
