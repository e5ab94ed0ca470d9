//! Publish and subscribe: each scope has one bounded buffer of events, which its subscribers read at their own pace.
//!
//! ```text
//! followers ─► topics ─► scopes that subscribed to them ─► event buffer ─┬─► subscriber, at event 17
//!                                                                        └─► subscriber, at event 12
//! ```
//! Publishing never blocks: a subscriber that falls behind is disconnected. One that comes back receives what is still in the buffer.

mod buffer;
mod ended;
mod event;
#[cfg(test)]
mod tests;

pub use buffer::{Delivery, Position, Subscriber};
pub use event::{Event, Level, Scope, Topic};

use crate::budget::{Budget, Exhausted};
use buffer::EventBuffer;
use ended::Ended;
use heapstead_store::records::Head;
use heapstead_types::{BudgetHolder, ExecutionId, SessionId};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Most topics of one scope.
pub const TOPICS_MAX: usize = 1_000;
/// Most subscribers of all scopes together.
pub const SUBSCRIBERS_MAX: u64 = 10_000;
/// Most topics of all scopes together.
pub const ALL_TOPICS_MAX: u64 = 200_000;
/// Memory for the events of all scopes together: 512 full buffers.
pub const EVENT_BYTES_MAX: u64 = 128 << 20;
/// A topic in the tables of its scope and of the hub.
const TOPIC_BYTES_MAX: usize = 400;
/// The topics of all scopes together.
pub const TOPICS_BYTES_MAX: u64 = ALL_TOPICS_MAX * TOPIC_BYTES_MAX as u64;
/// Unused buffers are removed when there are this many more than needed.
const SCOPES_MIN: usize = 64;

pub struct Hub {
    scopes: Mutex<Scopes>,
    subscribers: Arc<Budget>,
    topics: Arc<Budget>,
    event_bytes: Arc<Budget>,
    /// Notified when there is a new subscriber.
    pub interest: Notify,
}

#[derive(Default)]
struct Scopes {
    buffers: HashMap<Scope, Arc<EventBuffer>>,
    /// The scopes that subscribed to each topic.
    topics: HashMap<Topic, HashSet<Scope>>,
    /// Watched sessions, and the last published head of each.
    heads: HashMap<SessionId, Head>,
    /// Ended sessions, for subscribers that come back for the rest.
    ended: Ended,
    followed: HashSet<ExecutionId>,
    requests: u64,
    tidied_at: usize,
}

/// A maximum is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// Of the scope.
    Scope,
    /// Of the budget that all scopes share.
    Shared(Exhausted),
}

impl From<Exhausted> for Full {
    fn from(exhausted: Exhausted) -> Self {
        Self::Shared(exhausted)
    }
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            scopes: Mutex::default(),
            subscribers: Budget::new(SUBSCRIBERS_MAX),
            topics: Budget::new(ALL_TOPICS_MAX),
            event_bytes: Budget::new(EVENT_BYTES_MAX),
            interest: Notify::default(),
        }
    }
}

impl Hub {
    /// Receives the events of a scope, from now on or from an earlier position. Also returns whether events since then were lost.
    pub fn receive(&self, holder: BudgetHolder, scope: Scope, after: Option<Position>) -> Result<(Subscriber, bool), Full> {
        let place = self.subscribers.take(holder.clone(), 1)?;
        let receiving = self.buffer(&mut self.lock(), &scope, &holder).receive(after, place);
        self.interest.notify_one();
        Ok(receiving)
    }

    /// A scope for one request. Its subscriptions are removed with `remove`.
    pub fn request_scope(&self) -> Scope {
        let mut scopes = self.lock();
        scopes.requests += 1;
        Scope::Request(scopes.requests)
    }

    pub fn subscribe(&self, holder: &BudgetHolder, scope: &Scope, topic: Topic) -> Result<(), Full> {
        let mut scopes = self.lock();
        let buffer = self.buffer(&mut scopes, scope, holder);
        let mut state = buffer.lock();
        if state.topics().len() >= TOPICS_MAX && !state.topics().contains(&topic) {
            return Err(Full::Scope);
        }
        state.add_topic(topic.clone())?;
        drop(state);
        scopes.topics.entry(topic).or_default().insert(scope.clone());
        self.interest.notify_one();
        Ok(())
    }

    pub fn unsubscribe(&self, scope: &Scope, topic: &Topic) {
        let mut scopes = self.lock();
        if let Some(buffer) = scopes.buffers.get(scope) {
            buffer.lock().remove_topic(topic);
        }
        scopes.drop_topic(scope, topic);
    }

    /// What a scope subscribed to.
    pub fn topics(&self, scope: &Scope) -> Vec<Topic> {
        self.lock().buffers.get(scope).map(|buffer| buffer.lock().topics().iter().cloned().collect()).unwrap_or_default()
    }

    /// Log messages below this level are not published to this scope.
    pub fn set_level(&self, holder: &BudgetHolder, scope: &Scope, level: Level) {
        self.buffer(&mut self.lock(), scope, holder).lock().level = Some(level);
    }

    /// Publishes a change to all scopes that subscribed to the topic.
    pub fn updated(&self, topic: &Topic) {
        let scopes = self.lock();
        for scope in scopes.topics.get(topic).into_iter().flatten() {
            if let Some(buffer) = scopes.buffers.get(scope) {
                buffer.publish(Event::Updated(topic.clone()));
            }
        }
    }

    /// Publishes to the subscribers of a session.
    pub fn publish(&self, session: SessionId, event: Event) {
        if let Some(buffer) = self.lock().buffers.get(&Scope::Session(session)) {
            buffer.publish(event);
        }
    }

    /// Publishes to a connection, if it has chosen a log level.
    pub fn publish_to_connection(&self, connection: &str, event: Event) {
        if let Some(buffer) = self.logged(connection) {
            buffer.publish(event);
        }
    }

    /// Whether a connection wants the log messages of its runs.
    pub fn wants_log(&self, connection: &str) -> bool {
        self.logged(connection).is_some()
    }

    fn logged(&self, connection: &str) -> Option<Arc<EventBuffer>> {
        let scopes = self.lock();
        scopes.buffers.get(&Scope::Connection(connection.to_owned())).filter(|buffer| buffer.lock().level.is_some()).cloned()
    }

    /// Whether the executions of a session have subscribers.
    pub fn wants(&self, session: SessionId) -> bool {
        let scopes = self.lock();
        scopes.buffers.get(&Scope::Session(session)).is_some_and(|buffer| buffer.lock().is_wanted())
            || scopes.topics.contains_key(&Topic::Head(session))
    }

    /// Watches a session, whose head is this.
    pub fn watch_head(&self, session: SessionId, head: Head) {
        self.lock().heads.entry(session).or_insert(head);
    }

    pub fn watched_heads(&self) -> Vec<SessionId> {
        self.lock().heads.keys().copied().collect()
    }

    /// Publishes that a head has moved, unless it was published before.
    pub fn head_at(&self, session: SessionId, head: Head) {
        let published = self.lock().heads.get_mut(&session).map(|published| std::mem::replace(published, head));
        if published.is_some_and(|published| published != head) {
            self.updated(&Topic::Head(session));
        }
    }

    /// Registers a follower of an execution. False if there is one.
    pub fn begin_following(&self, execution: &ExecutionId) -> bool {
        self.lock().followed.insert(execution.clone())
    }

    pub fn end_following(&self, execution: &ExecutionId) {
        self.lock().followed.remove(execution);
    }

    /// The session has ended: its subscribers receive that last.
    pub fn end(&self, session: SessionId) {
        self.updated(&Topic::Head(session));
        let mut scopes = self.lock();
        scopes.heads.remove(&session);
        if let Some(buffer) = scopes.remove(&Scope::Session(session)) {
            buffer.end();
            scopes.ended.keep(session, buffer);
        }
    }

    /// Receives the remaining events of a session that has ended. None if they are no longer buffered.
    pub fn receive_rest(&self, holder: BudgetHolder, session: SessionId, after: Position) -> Result<Option<Subscriber>, Full> {
        let place = self.subscribers.take(holder, 1)?;
        let Some(buffer) = self.lock().ended.find(session, after) else { return Ok(None) };
        let (subscriber, has_lost) = buffer.receive(Some(after), place);
        Ok((!has_lost).then_some(subscriber))
    }

    /// The buffer of a scope. A new one counts for this holder.
    fn buffer(&self, scopes: &mut Scopes, scope: &Scope, holder: &BudgetHolder) -> Arc<EventBuffer> {
        if let Some(buffer) = scopes.buffers.get(scope) {
            return buffer.clone();
        }
        if scopes.buffers.len() >= scopes.tidied_at {
            scopes.tidy();
        }
        let empty = |budget: &Arc<Budget>| budget.portion(holder.clone());
        let buffer = Arc::new(EventBuffer::new(empty(&self.event_bytes), empty(&self.topics)));
        scopes.buffers.insert(scope.clone(), buffer.clone());
        buffer
    }

    /// Removes a scope that no subscriber will come back to.
    pub fn remove(&self, scope: &Scope) {
        self.lock().remove(scope);
    }

    fn lock(&self) -> MutexGuard<'_, Scopes> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scopes {
    /// Removes buffers without subscribers, recent subscribers and topics.
    fn tidy(&mut self) {
        self.ended.remove_old();
        self.buffers.retain(|_, buffer| {
            let state = buffer.lock();
            state.is_wanted() || !state.topics().is_empty()
        });
        let (buffers, topics) = (&self.buffers, &self.topics);
        self.heads.retain(|session, _| buffers.contains_key(&Scope::Session(*session)) || topics.contains_key(&Topic::Head(*session)));
        self.tidied_at = self.buffers.len() * 2 + SCOPES_MIN;
    }

    fn drop_topic(&mut self, scope: &Scope, topic: &Topic) {
        if let Some(subscribers) = self.topics.get_mut(topic) {
            subscribers.remove(scope);
            if subscribers.is_empty() {
                self.topics.remove(topic);
            }
        }
    }

    fn remove(&mut self, scope: &Scope) -> Option<Arc<EventBuffer>> {
        let buffer = self.buffers.remove(scope)?;
        let topics = buffer.lock().take_topics();
        for topic in &topics {
            self.drop_topic(scope, topic);
        }
        Some(buffer)
    }
}
