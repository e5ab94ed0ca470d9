//! Followers: while there are subscribers, a follower watches one execution and publishes its events. Executions do not know of them.

use super::Events;
use super::hub::{Event, Level, Topic};
use crate::executions::{Progress, RunningExecution};
use crate::{Caller, Stores};
use heapstead_store::outputs::PageRequest;
use heapstead_types::{ExecutionId, Principal, SessionId, Status};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// Output that comes faster is published together.
const PAUSE: Duration = Duration::from_millis(100);
/// How long one question to another server may wait.
const WAIT: Duration = Duration::from_secs(300);
/// Interval of checks for changes by other servers. There are none without subscribers or without other servers.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Without subscribers: interval of checks whether the service still exists.
const IDLE_INTERVAL: Duration = Duration::from_secs(30);

impl Events<'_> {
    /// Follows an execution of this process if it has subscribers.
    pub(crate) fn follow_if_wanted(&self, execution: &Arc<RunningExecution>) {
        let of_session = execution.session.is_some_and(|session| self.0.hub.wants(session));
        if of_session || execution.connection.as_ref().is_some_and(|connection| self.0.hub.wants_log(connection)) {
            self.follow(execution);
        }
    }

    pub(crate) fn follow(&self, execution: &Arc<RunningExecution>) {
        if execution.begin_following() {
            tokio::spawn(follow(self.0.clone(), execution.clone()));
        }
    }

    /// Follows the executions of this process in a session.
    pub(crate) fn follow_all_in(&self, session: SessionId) {
        for execution in self.0.running.all() {
            if execution.session == Some(session) {
                self.follow(&execution);
            }
        }
    }

    /// Follows the executions of a connection outside of sessions.
    pub(crate) fn follow_all_of(&self, connection: &str) {
        for execution in self.0.running.all() {
            if execution.connection.as_deref() == Some(connection) {
                self.follow(&execution);
            }
        }
    }

    /// Follows an execution of another server, by asking that server.
    pub(crate) fn follow_elsewhere(&self, principal: Principal, id: ExecutionId) {
        if self.0.hub.begin_following(&id) {
            tokio::spawn(follow_elsewhere(self.0.clone(), principal, id));
        }
    }

    /// Reads the heads of these sessions, and publishes those that have moved or ended.
    pub(crate) async fn check_heads(&self, sessions: Vec<SessionId>) {
        match self.0.records.heads(sessions, Timestamp::now()).await {
            Ok(found) => {
                for (session, head) in found {
                    match head {
                        Some(head) => self.0.hub.head_at(session, head),
                        None => self.0.hub.end(session),
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "the heads of sessions can't be read for their subscribers"),
        }
    }
}

async fn follow(stores: Stores, execution: Arc<RunningExecution>) {
    let hub = stores.hub.clone();
    let id = execution.id().clone();
    let (record_topic, output_topic) = (Topic::Execution(id.clone()), Topic::Output(id.clone()));
    let mut watched = execution.watch();
    let mut published = Progress::default();
    loop {
        let now = watched.borrow_and_update().clone();
        if now.output.bytes > published.output.bytes {
            hub.updated(&output_topic);
        }
        for warning in now.warnings.iter().skip(published.warnings.len()) {
            log(&stores, &execution, Level::Warning, warning.clone());
        }
        if now.warnings.len() > published.warnings.len() || now.ended.is_some() {
            hub.updated(&record_topic);
        }
        if let Some(record) = &now.ended {
            // Its output is complete now.
            hub.updated(&output_topic);
            let (level, text) = end_message(record.status, record.error.as_deref());
            log(&stores, &execution, level, text);
            break;
        }
        published = now;
        let news = async {
            let _ = watched.changed().await;
            let _ = tokio::time::timeout(PAUSE, watched.wait_for(|progress| progress.ended.is_some())).await;
        };
        news.await;
    }
    if let Some(session) = execution.session {
        stores.events().check_heads(vec![session]).await;
    }
}

fn log(stores: &Stores, execution: &RunningExecution, level: Level, text: String) {
    let event = Event::log(level, execution.id().clone(), &text);
    match (execution.session, &execution.connection) {
        (Some(session), _) => stores.hub.publish(session, event),
        (None, Some(connection)) => stores.hub.publish_to_connection(connection, event),
        (None, None) => {}
    }
}

/// The log message for the end of an execution, and its level.
pub fn end_message(status: Status, error: Option<&str>) -> (Level, String) {
    let level = match status {
        Status::Running | Status::Completed => Level::Info,
        Status::Cancelled => Level::Notice,
        Status::Failed | Status::TimedOut => Level::Error,
    };
    match error {
        Some(error) => (level, format!("{}: {error}", status.as_str())),
        None => (level, status.as_str().to_owned()),
    }
}

async fn follow_elsewhere(stores: Stores, principal: Principal, id: ExecutionId) {
    let hub = stores.hub.clone();
    let caller = Caller { principal, ..Caller::default() };
    let mut seen = 0;
    while let Ok(page) = stores.executions().output(&caller, id.as_str(), PageRequest::Bytes { offset: seen, limit: 1 }, WAIT).await {
        if page.total_bytes > seen {
            seen = page.total_bytes;
            hub.updated(&Topic::Output(id.clone()));
        }
        if page.status.is_terminal() {
            hub.updated(&Topic::Execution(id.clone()));
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    hub.end_following(&id);
}

/// Publishes changes that other servers make to sessions with subscribers here.
pub fn start(stores: &Stores) {
    let (weak, hub) = (stores.downgrade(), stores.hub.clone());
    tokio::spawn(async move {
        while let Some(stores) = weak.upgrade() {
            let watched = hub.watched_heads();
            if watched.is_empty() {
                drop(stores);
                let _ = tokio::time::timeout(IDLE_INTERVAL, hub.interest.notified()).await;
                continue;
            }
            if stores.peers.has_others() {
                stores.events().check_heads(watched).await;
            }
            drop(stores);
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    });
}
