//! What happens, and who is told: each scope has one bounded row of events, which its listeners read at their own pace.
//!
//! ```text
//! followers of executions ─► topics ─► scopes that subscribed to them ─► row of events ─┬─► listener, at event 17
//!                                                                                       └─► listener, at event 12
//! ```
//! Telling never waits: whoever reads so slowly that its next event has left the row is cut off, and whoever comes back finds what is still in it.

mod ended;
mod event;
mod row;
#[cfg(test)]
mod tests;

pub use event::{Event, Level, Scope, Topic};
pub use row::{Heard, Listener, Position};

use ended::Ended;
use heapstead_store::metadata::Head;
use heapstead_types::{ExecutionId, SessionId};
use row::Row;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// What one scope may have subscribed to.
pub const TOPICS_MAX: usize = 1_000;
/// Listeners of all scopes together.
pub const LISTENERS_MAX: usize = 10_000;
/// Rows that nobody needs any more are forgotten when there are this many more than needed.
const SCOPES_MIN: usize = 64;

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
    /// Sessions whose heads are watched, and where each was when that was last told.
    heads: HashMap<SessionId, Head>,
    /// Sessions that are over, for listeners that come back to hear the rest.
    ended: Ended,
    followed: HashSet<ExecutionId>,
    requests: u64,
    tidied_at: usize,
}

/// There are as many as may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl Hub {
    /// Listens to a scope, from the next event on or from where an earlier listener was. Then whether it missed any is told too.
    pub fn listen(&self, scope: Scope, after: Option<Position>) -> Result<(Listener, bool), Full> {
        let listeners = self.room()?;
        let listening = self.lock().row(&scope).listen(after, listeners);
        self.interest.notify_one();
        Ok(listening)
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
        self.lock().row(scope).lock().level = Some(level);
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

    /// Tells a connection of a run of its own, if it has chosen a log level.
    pub fn tell_connection(&self, connection: &str, event: Event) {
        if let Some(row) = self.logged(connection) {
            row.tell(event);
        }
    }

    /// Whether a connection wants the log messages of its runs.
    pub fn wants_log(&self, connection: &str) -> bool {
        self.logged(connection).is_some()
    }

    fn logged(&self, connection: &str) -> Option<Arc<Row>> {
        let scopes = self.lock();
        scopes.rows.get(&Scope::Connection(connection.to_owned())).filter(|row| row.lock().level.is_some()).cloned()
    }

    /// Whether anybody would hear of a session's runs.
    pub fn wants(&self, session: SessionId) -> bool {
        let scopes = self.lock();
        scopes.rows.get(&Scope::Session(session)).is_some_and(|row| row.lock().is_wanted())
            || scopes.topics.contains_key(&Topic::Head(session))
    }

    /// Watches a session's head, which is here.
    pub fn watch_head(&self, session: SessionId, head: Head) {
        self.lock().heads.entry(session).or_insert(head);
    }

    pub fn watched_heads(&self) -> Vec<SessionId> {
        self.lock().heads.keys().copied().collect()
    }

    /// Tells that a head has moved, if that is news.
    pub fn head_at(&self, session: SessionId, head: Head) {
        let told = self.lock().heads.get_mut(&session).map(|told| std::mem::replace(told, head));
        if told.is_some_and(|told| told != head) {
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
            scopes.ended.keep(session, row);
        }
    }

    /// Listens to the rest of a session that is over, from where an earlier listener was. None when it is no longer kept.
    pub fn listen_to_rest(&self, session: SessionId, after: Position) -> Result<Option<Listener>, Full> {
        let listeners = self.room()?;
        let Some(row) = self.lock().ended.find(session, after) else { return Ok(None) };
        let (listener, missed) = row.listen(Some(after), listeners);
        Ok((!missed).then_some(listener))
    }

    /// Where one more listener is counted.
    fn room(&self) -> Result<Arc<AtomicUsize>, Full> {
        if self.listeners.load(Relaxed) >= LISTENERS_MAX { Err(Full) } else { Ok(self.listeners.clone()) }
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
        let row = Arc::new(Row::new());
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
