//! Executions of this process: their progress, the callers that wait for them, and requests to stop them.

use super::outcome::{ExecutionOutcome, ExecutionStart};
use super::record::ExecutionRecord;
use heapstead_store::outputs::Extent;
use heapstead_store::records::Head;
use heapstead_types::{ExecutionId, Failure, Principal, SessionId};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

pub struct RunningExecution {
    /// As it was accepted.
    pub start: ExecutionStart,
    pub principal: Principal,
    /// The opened session that it runs in.
    pub session: Option<SessionId>,
    /// The connection that started it outside of an opened session. Events of a session are for the session's subscribers alone.
    pub connection: Option<String>,
    progress: watch::Sender<Progress>,
    stop: watch::Sender<Option<StopReason>>,
    is_followed: AtomicBool,
    waiting: Mutex<Waiting>,
}

/// Whether the caller of a run waits for its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Waiting {
    #[default]
    No,
    Yes,
    /// The stored record says that the caller received it, so the caller has to.
    Promised,
}

/// Why an execution is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    Cancelled,
    Shutdown,
}

impl StopReason {
    pub fn outcome(self) -> ExecutionOutcome {
        match self {
            Self::Cancelled => ExecutionOutcome::Cancelled,
            Self::Shutdown => ExecutionOutcome::Failed(Failure::ServerStopped),
        }
    }
}

/// Progress of an execution. Every change wakes the callers that wait for it.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// When the code started; none while it is queued.
    pub started_at: Option<Timestamp>,
    pub output: Extent,
    /// Warnings for the caller, as soon as they are known.
    pub warnings: Vec<String>,
    /// Set once, when the end is committed; or when it could not be, and the run has failed for that reason.
    pub ended: Option<Arc<ExecutionRecord>>,
    /// The new head of its session, if the execution moved it.
    pub head: Option<Head>,
}

impl RunningExecution {
    pub fn new(start: ExecutionStart, principal: Principal, session: Option<SessionId>, connection: Option<&str>) -> Self {
        Self {
            start,
            principal,
            session,
            connection: connection.filter(|_| session.is_none()).map(str::to_owned),
            progress: watch::Sender::default(),
            stop: watch::Sender::default(),
            is_followed: AtomicBool::new(false),
            waiting: Mutex::default(),
        }
    }

    /// False if it has or had a follower already: its events are published once.
    pub fn begin_following(&self) -> bool {
        !self.is_followed.swap(true, Relaxed)
    }

    pub fn id(&self) -> &ExecutionId {
        &self.start.execution_id
    }

    pub fn record(&self) -> ExecutionRecord {
        match &self.progress.borrow().ended {
            Some(record) => ExecutionRecord::clone(record),
            None => self.known_start().running(),
        }
    }

    /// Its start and warnings, as far as they are known.
    pub fn known_start(&self) -> ExecutionStart {
        let progress = self.progress.borrow();
        let started_at = progress.started_at.unwrap_or(self.start.started_at);
        ExecutionStart { started_at, warnings: progress.warnings.clone(), ..self.start.clone() }
    }

    /// Notes that the code has started, so long ago. Returns when that was.
    pub fn code_started(&self, ago: Duration) -> Timestamp {
        let started_at = Timestamp::now().checked_sub(ago).unwrap_or(self.start.started_at);
        // No caller waits for this.
        self.progress.send_if_modified(|progress| {
            progress.started_at = Some(started_at);
            false
        });
        started_at
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

    pub fn end(&self, record: ExecutionRecord, output: Extent, head: Option<Head>) {
        self.progress.send_modify(|progress| {
            progress.output = output;
            progress.head = head;
            progress.ended = Some(Arc::new(record));
        });
    }

    /// Waits for the end.
    pub async fn ended(&self) -> Arc<ExecutionRecord> {
        let mut progress = self.watch();
        match progress.wait_for(|progress| progress.ended.is_some()).await {
            Ok(progress) => progress.ended.clone().unwrap_or_else(|| Arc::new(self.record())),
            // The sender lives as long as this.
            Err(_) => Arc::new(self.record()),
        }
    }

    /// The new head of its session, once it has ended and if it moved it.
    pub fn head(&self) -> Option<Head> {
        self.progress.borrow().head
    }

    /// The record after at most `wait`, for the caller of the run.
    pub async fn record_after(&self, wait: Duration) -> ExecutionRecord {
        let waits = Waits::new(self);
        if tokio::time::timeout(wait, self.ended()).await.is_err() && !waits.give_up() {
            // It is being committed right now.
            self.ended().await;
        }
        self.record()
    }

    /// Whether the caller waits for the record. If so, it keeps waiting until it has it.
    pub fn promise_delivery(&self) -> bool {
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

    /// Requests the end. `ended` returns what the end was.
    pub fn stop(&self, stop: StopReason) {
        self.stop.send_if_modified(|asked| asked.is_none() && asked.replace(stop).is_none());
    }

    /// Waits until a stop is requested.
    pub async fn stop_requested(&self) -> StopReason {
        let mut asked = self.stop.subscribe();
        match asked.wait_for(Option::is_some).await {
            Ok(stop) => stop.unwrap_or(StopReason::Cancelled),
            // The sender lives as long as this.
            Err(_) => StopReason::Cancelled,
        }
    }
}

/// The caller of a run waits while this exists.
struct Waits<'a>(&'a RunningExecution);

impl<'a> Waits<'a> {
    fn new(live: &'a RunningExecution) -> Self {
        *live.waiting() = Waiting::Yes;
        Self(live)
    }

    /// False if the caller was promised the record.
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
pub struct RunningExecutions(Mutex<HashMap<ExecutionId, Arc<RunningExecution>>>);

impl RunningExecutions {
    pub fn insert(&self, live: Arc<RunningExecution>) {
        self.lock().insert(live.id().clone(), live);
    }

    pub fn remove(&self, id: &ExecutionId) {
        self.lock().remove(id);
    }

    /// An execution of this principal.
    pub fn find(&self, principal: &Principal, id: &ExecutionId) -> Option<Arc<RunningExecution>> {
        self.lock().get(id).filter(|live| live.principal == *principal).cloned()
    }

    /// An execution of any principal.
    pub fn get(&self, id: &ExecutionId) -> Option<Arc<RunningExecution>> {
        self.lock().get(id).cloned()
    }

    /// Bytes of console output that this principal's executions have written so far.
    pub fn output_bytes(&self, principal: &Principal) -> u64 {
        self.lock().values().filter(|live| live.principal == *principal).map(|live| live.progress.borrow().output.bytes).sum()
    }

    pub fn all(&self) -> Vec<Arc<RunningExecution>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ExecutionId, Arc<RunningExecution>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
