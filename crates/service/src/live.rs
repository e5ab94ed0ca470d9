//! Executions that run in this process: how far they are, who waits for them, and who wants them stopped.

use crate::end::{Begun, End};
use crate::record::ExecutionRecord;
use heapstead_store::outputs::Extent;
use heapstead_types::{ExecutionId, Failure, Principal, SessionId};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

pub struct Live {
    /// As it was accepted.
    pub begun: Begun,
    pub principal: Principal,
    /// The session with a head that it runs in.
    pub session: Option<SessionId>,
    /// The connection that began it outside of such a session.
    pub connection: Option<String>,
    progress: watch::Sender<Progress>,
    stop: watch::Sender<Option<Stop>>,
    is_followed: AtomicBool,
    waiting: Mutex<Waiting>,
}

/// Whether the caller of a run is there to be answered with its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Waiting {
    #[default]
    No,
    Yes,
    /// The record says that somebody is told, so somebody has to be.
    Promised,
}

/// Who asked for the end of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Caller,
    Shutdown,
}

impl Stop {
    pub fn end(self) -> End {
        match self {
            Self::Caller => End::Cancelled,
            Self::Shutdown => End::Failed(Failure::ServerStopped),
        }
    }
}

/// How far an execution is. Every change wakes whoever waits for it.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// When the code began; none while it is queued.
    pub started_at: Option<Timestamp>,
    pub output: Extent,
    /// What the caller should know, from the moment it is known.
    pub warnings: Vec<String>,
    /// Set once, when the end would survive a crash.
    pub ended: Option<Arc<ExecutionRecord>>,
}

impl Live {
    pub fn new(begun: Begun, principal: Principal) -> Self {
        let (progress, stop) = (watch::Sender::default(), watch::Sender::default());
        Self {
            begun,
            principal,
            session: None,
            connection: None,
            progress,
            stop,
            is_followed: AtomicBool::new(false),
            waiting: Mutex::default(),
        }
    }

    /// False when somebody follows it already, or has: what becomes of it is told once.
    pub fn begin_following(&self) -> bool {
        !self.is_followed.swap(true, Relaxed)
    }

    pub fn in_session(self, session: Option<SessionId>) -> Self {
        Self { session, ..self }
    }

    /// What happens in a session is told to the listeners of that session alone.
    pub fn on_connection(self, connection: Option<&str>) -> Self {
        let connection = connection.filter(|_| self.session.is_none()).map(str::to_owned);
        Self { connection, ..self }
    }

    pub fn id(&self) -> &ExecutionId {
        &self.begun.execution_id
    }

    pub fn record(&self) -> ExecutionRecord {
        match &self.progress.borrow().ended {
            Some(record) => ExecutionRecord::clone(record),
            None => self.told().running(),
        }
    }

    /// What is known of it so far.
    pub fn told(&self) -> Begun {
        let progress = self.progress.borrow();
        let started_at = progress.started_at.unwrap_or(self.begun.started_at);
        Begun { started_at, warnings: progress.warnings.clone(), ..self.begun.clone() }
    }

    /// The code begins now.
    pub fn start(&self) {
        // Nobody waits for this.
        self.progress.send_if_modified(|progress| {
            progress.started_at = Some(Timestamp::now());
            false
        });
    }

    pub fn warn(&self, warnings: Vec<String>) {
        self.progress.send_modify(|progress| progress.warnings = warnings);
    }

    pub fn watch(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    pub fn wrote(&self, output: Extent) {
        self.progress.send_modify(|progress| progress.output = output);
    }

    pub fn end(&self, record: ExecutionRecord, output: Extent) {
        self.progress.send_modify(|progress| {
            progress.output = output;
            progress.ended = Some(Arc::new(record));
        });
    }

    /// Waits for the end.
    pub async fn ended(&self) -> Arc<ExecutionRecord> {
        let mut progress = self.watch();
        match progress.wait_for(|progress| progress.ended.is_some()).await {
            Ok(progress) => progress.ended.clone().unwrap_or_else(|| Arc::new(self.record())),
            // The sender is ours, so it is there.
            Err(_) => Arc::new(self.record()),
        }
    }

    /// The record after at most `wait`, for the caller of the run.
    pub async fn record_after(&self, wait: Duration) -> ExecutionRecord {
        let waits = Waits::new(self);
        if tokio::time::timeout(wait, self.ended()).await.is_err() && !waits.give_up() {
            // It is being written down right now.
            self.ended().await;
        }
        self.record()
    }

    /// Whether somebody waits for the record, who is then bound to be answered with it.
    pub fn promise(&self) -> bool {
        let mut waiting = self.waiting();
        let waits = *waiting != Waiting::No;
        if waits {
            *waiting = Waiting::Promised;
        }
        waits
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the end. What the end was, `ended` tells.
    pub fn stop(&self, stop: Stop) {
        self.stop.send_if_modified(|asked| asked.is_none() && asked.replace(stop).is_none());
    }

    /// Waits until somebody asks for the end.
    pub async fn stopped(&self) -> Stop {
        let mut asked = self.stop.subscribe();
        match asked.wait_for(Option::is_some).await {
            Ok(stop) => stop.unwrap_or(Stop::Caller),
            // The sender is ours, so this never comes.
            Err(_) => Stop::Caller,
        }
    }
}

/// The caller of a run waits, until it leaves.
struct Waits<'a>(&'a Live);

impl<'a> Waits<'a> {
    fn new(live: &'a Live) -> Self {
        *live.waiting() = Waiting::Yes;
        Self(live)
    }

    /// False when it is too late for that.
    fn give_up(&self) -> bool {
        let mut waiting = self.0.waiting();
        if *waiting == Waiting::Yes {
            *waiting = Waiting::No;
        }
        *waiting == Waiting::No
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.give_up();
    }
}

#[derive(Default)]
pub struct Registry(Mutex<HashMap<ExecutionId, Arc<Live>>>);

impl Registry {
    pub fn insert(&self, live: Arc<Live>) {
        self.lock().insert(live.id().clone(), live);
    }

    pub fn remove(&self, id: &ExecutionId) {
        self.lock().remove(id);
    }

    /// An execution of this principal.
    pub fn find(&self, principal: &Principal, id: &ExecutionId) -> Option<Arc<Live>> {
        self.lock().get(id).filter(|live| live.principal == *principal).cloned()
    }

    /// An execution, whoever's it is.
    pub fn get(&self, id: &ExecutionId) -> Option<Arc<Live>> {
        self.lock().get(id).cloned()
    }

    pub fn all(&self) -> Vec<Arc<Live>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ExecutionId, Arc<Live>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
