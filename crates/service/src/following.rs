//! Followers: while somebody listens, each watches one execution from aside and tells what becomes of it. Runs know nothing of them.

use crate::hub::{Event, Level, Topic};
use crate::live::{Live, Progress};
use crate::{Archive, Caller};
use heapstead_store::outputs::PageRequest;
use heapstead_types::{ExecutionId, Principal, SessionId, Status};
use jiff::Timestamp;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Output that comes faster is told of together.
const PAUSE: Duration = Duration::from_millis(100);
/// How long another process is asked to wait for news at once.
const WAIT: Duration = Duration::from_secs(300);
/// Between two looks at what other processes on the same database did. Nobody looks where nobody listens, or where there are no others.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// While nobody listens: until it is seen whether the service is still there.
const IDLE_INTERVAL: Duration = Duration::from_secs(30);

impl Archive {
    /// Follows a run of this process if anybody would hear of it.
    pub(crate) fn follow_if_wanted(&self, live: &Arc<Live>) {
        let of_session = live.session.is_some_and(|session| self.0.hub.wants(session));
        if of_session || live.connection.as_ref().is_some_and(|connection| self.0.hub.wants_log(connection)) {
            self.follow(live);
        }
    }

    pub(crate) fn follow(&self, live: &Arc<Live>) {
        if live.begin_following() {
            tokio::spawn(follow(self.clone(), live.clone()));
        }
    }

    /// Follows what runs in this session here.
    pub(crate) fn follow_all_in(&self, session: SessionId) {
        for live in self.0.live.all() {
            if live.session == Some(session) {
                self.follow(&live);
            }
        }
    }

    /// Follows what this connection runs outside of sessions.
    pub(crate) fn follow_all_of(&self, connection: &str) {
        for live in self.0.live.all() {
            if live.connection.as_deref() == Some(connection) {
                self.follow(&live);
            }
        }
    }

    /// Follows an execution that runs in another process, through that process.
    pub(crate) fn follow_elsewhere(&self, principal: Principal, id: ExecutionId) {
        if self.0.hub.begin_following(&id) {
            tokio::spawn(follow_elsewhere(self.clone(), principal, id));
        }
    }

    /// Sees where the heads of these sessions are, and tells of those that have moved or are gone.
    pub(crate) async fn look_at_heads(&self, sessions: Vec<SessionId>) {
        match self.0.metadata.heads(sessions, Timestamp::now()).await {
            Ok(found) => {
                for (session, head) in found {
                    match head {
                        Some(head) => self.0.hub.head_at(session, head),
                        None => self.0.hub.end(session),
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "whoever listens to a session can't be told of its head now"),
        }
    }
}

async fn follow(archive: Archive, live: Arc<Live>) {
    let hub = archive.0.hub.clone();
    let id = live.id().clone();
    let (execution, output) = (Topic::Execution(id.clone()), Topic::Output(id.clone()));
    let mut watched = live.watch();
    let mut told = Progress::default();
    loop {
        let now = watched.borrow_and_update().clone();
        if now.output.bytes > told.output.bytes {
            hub.updated(&output);
        }
        for warning in now.warnings.iter().skip(told.warnings.len()) {
            log(&archive, &live, Level::Warning, warning.clone());
        }
        if now.warnings.len() > told.warnings.len() || now.ended.is_some() {
            hub.updated(&execution);
        }
        if let Some(record) = &now.ended {
            // Its output is whole now.
            hub.updated(&output);
            let (level, text) = end_message(record.status, record.error.as_deref());
            log(&archive, &live, level, text);
            break;
        }
        told = now;
        let news = async {
            let _ = watched.changed().await;
            let _ = tokio::time::timeout(PAUSE, watched.wait_for(|progress| progress.ended.is_some())).await;
        };
        news.await;
    }
    if let Some(session) = live.session {
        archive.look_at_heads(vec![session]).await;
    }
}

fn log(archive: &Archive, live: &Live, level: Level, text: String) {
    let event = Event::log(level, live.id().clone(), &text);
    match (live.session, &live.connection) {
        (Some(session), _) => archive.0.hub.tell(session, event),
        (None, Some(connection)) => archive.0.hub.tell_connection(connection, event),
        (None, None) => {}
    }
}

/// What is told of the end of an execution, and how much it matters.
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

async fn follow_elsewhere(archive: Archive, principal: Principal, id: ExecutionId) {
    let hub = archive.0.hub.clone();
    let caller = Caller { principal, ..Caller::default() };
    let mut seen = 0;
    while let Ok(page) = archive.output(&caller, id.as_str(), PageRequest::Bytes { offset: seen, limit: 1 }, WAIT).await {
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

/// Looks at what other processes do to the sessions that somebody listens to here.
pub fn start(archive: &Archive) {
    let (kept, hub) = (Arc::downgrade(&archive.0), archive.0.hub.clone());
    tokio::spawn(async move {
        while let Some(kept) = kept.upgrade() {
            let archive = Archive(kept);
            let watched = hub.watched_heads();
            let metadata = &archive.0.metadata;
            if watched.is_empty() {
                drop(archive);
                let _ = tokio::time::timeout(IDLE_INTERVAL, hub.interest.notified()).await;
                continue;
            }
            if has_others(&metadata.processes_folder(), metadata.process_name()) {
                archive.look_at_heads(watched).await;
            }
            drop(archive);
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    });
}

/// Whether other processes use the same database.
fn has_others(folder: &Path, own: &str) -> bool {
    let Ok(files) = std::fs::read_dir(folder) else { return false };
    files.flatten().any(|file| !file.file_name().to_str().is_none_or(|name| name.starts_with('.') || name.starts_with(own)))
}
