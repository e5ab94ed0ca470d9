//! Recording of calls in conversation contexts: each call is recorded when it ends, in the background.
//!
//! ```text
//! a call ─► CallRecording ─┬─ ended ─────────────────────────────┐
//!                          └─ handed over to the run it started ─┴─► queue ─► which session? ─► Recorder ─► store
//! ```

use super::{Contexts, OpenContexts};
use crate::executions::{ExecutionRecord, RunningExecution};
use crate::sessions::SessionTarget;
use crate::stores::WeakStores;
use crate::{Caller, Stores};
use heapstead_context::text::{cut_args, result_summary, result_summary_of_text};
use heapstead_context::{Contexts as ContextRecords, Outcome, Recorder, Timestamp, ToolEnd};
use heapstead_types::Status;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use tokio::sync::{RwLock, mpsc, oneshot};

/// Bound on calls that wait to be recorded. Each is shortened before it waits.
const WAITING_MAX: usize = 4096;
const CANCELLED: &str = "The call was cancelled before it ended.";

/// The contexts of a server, and what records calls in them.
pub struct Conversations {
    pub store: OpenContexts,
    pub recorder: Recorder,
    ended_calls: EndedCalls,
}

/// The queue of ended calls.
#[derive(Debug, Clone)]
struct EndedCalls {
    queue: mpsc::Sender<Waiting>,
    dropped: Arc<AtomicU64>,
    /// Read-locked by each run that will be recorded when it ends.
    runs: Arc<RwLock<()>>,
}

#[derive(Debug)]
enum Waiting {
    Ended {
        call: Arc<Call>,
        summary: String,
    },
    /// Replied to once everything before it was passed to the recorder.
    Flush(oneshot::Sender<()>),
}

/// A call to record, once.
#[derive(Debug)]
pub struct Call {
    tool: &'static str,
    arguments: Map<String, Value>,
    called_at: Timestamp,
    caller: Caller,
    /// The argument that names its session.
    session: Option<String>,
    /// Whether the call started a run: only then does a new name become a session.
    started_run: AtomicBool,
    /// The session that the call itself resolved, so that it is not looked up again.
    target: OnceLock<SessionTarget>,
    /// Whether the session has to be looked up again, because it may have ended meanwhile.
    needs_lookup: AtomicBool,
    /// Whether its end is recorded already, or a run will do it.
    is_done: AtomicBool,
    ended_calls: EndedCalls,
}

/// A call in progress. If it is dropped before its end, it was cancelled.
pub struct CallRecording(Arc<Call>);

impl Conversations {
    pub fn start(store: OpenContexts, stores: &Stores) {
        let recorder = Recorder::start(store.contexts.clone());
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(record_all(stores.downgrade(), recorder.clone(), waiting));
        let ended_calls = EndedCalls { queue, dropped: Arc::default(), runs: Arc::default() };
        let counted = store.contexts.clone();
        stores.records.count_elsewhere(Arc::new(move |owner| {
            let contexts = counted.clone();
            // If the store is down, its contexts do not count, and nothing can be added to them.
            Box::pin(async move { contexts.owner_bytes(owner.name()).await.ok().flatten().unwrap_or_default() })
        }));
        // Set once, when the service is opened.
        let _ = stores.conversations.set(Self { store, recorder, ended_calls });
    }

    pub fn contexts(&self) -> &ContextRecords {
        &self.store.contexts
    }

    /// Calls that were dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.ended_calls.dropped.load(Relaxed)
    }

    /// Waits until every call that ended before was written to the store, or could not be.
    pub async fn flush(&self) {
        let (done, looked_up) = oneshot::channel();
        if self.ended_calls.queue.send(Waiting::Flush(done)).await.is_ok() {
            let _ = looked_up.await;
        }
        self.recorder.flush().await;
    }

    async fn close(&self) {
        drop(self.ended_calls.runs.write().await);
        self.flush().await;
        if let Some(memory) = &self.store.memory
            && let Err(error) = memory.close().await
        {
            tracing::error!(%error, "contexts could not be flushed: what changed since the last flush is lost");
        }
    }
}

impl Contexts<'_> {
    /// Begins to record a call. None if it belongs to no conversation.
    pub fn begin_call(&self, tool: &'static str, caller: &Caller, arguments: &Map<String, Value>) -> Option<CallRecording> {
        let conversations = self.0.conversations.get()?;
        let session = arguments.get("session").and_then(Value::as_str).map(str::to_owned);
        let is_in_one = session.is_some() || caller.entered.is_some() || caller.session.is_some() || caller.connection.is_some();
        is_in_one.then(|| {
            CallRecording(Arc::new(Call {
                tool,
                arguments: cut_args(arguments),
                called_at: conversations.contexts().clock().now(),
                caller: Caller { headers: Vec::new(), call: None, ..caller.clone() },
                session,
                started_run: AtomicBool::new(false),
                target: OnceLock::new(),
                needs_lookup: AtomicBool::new(false),
                is_done: AtomicBool::new(false),
                ended_calls: conversations.ended_calls.clone(),
            }))
        })
    }

    /// Records the last calls and flushes the memory. To be called after the last request.
    pub async fn close(&self) {
        if let Some(conversations) = self.0.conversations.get() {
            conversations.close().await;
        }
    }
}

impl CallRecording {
    /// For the caller, so that a run can take it over.
    pub fn call(&self) -> Arc<Call> {
        self.0.clone()
    }

    pub fn answered(self, body: &Value) {
        self.0.ended(|| result_summary(&json!({ "structuredContent": brief(body) })));
    }

    pub fn failed(self, error: &impl std::fmt::Display) {
        self.0.ended(|| result_summary_of_text(&format!("Failed: {error}")));
    }
}

impl Drop for CallRecording {
    fn drop(&mut self) {
        self.0.ended(|| CANCELLED.to_owned());
    }
}

impl Call {
    /// The call started a run, and is recorded when the run ends.
    pub fn hand_over(self: &Arc<Self>, run: Arc<RunningExecution>) {
        if self.is_done.swap(true, Relaxed) {
            return;
        }
        self.started_run.store(true, Relaxed);
        let (call, run_lock) = (self.clone(), self.ended_calls.runs.clone().try_read_owned());
        tokio::spawn(async move {
            let record = run.ended().await;
            // Its session may have ended and cancelled it, and then has no context any more.
            call.needs_lookup.store(record.status != Status::Completed, Relaxed);
            let summary = of_run(&record);
            call.enqueue(summary);
            drop(run_lock);
        });
    }

    /// Notes the session that the call itself resolved.
    pub fn resolved(&self, argument: Option<&str>, target: &SessionTarget) {
        if argument == self.session.as_deref() {
            // The first resolution counts.
            let _ = self.target.set(target.clone());
        }
    }

    fn ended(self: &Arc<Self>, summary: impl FnOnce() -> String) {
        if !self.is_done.swap(true, Relaxed) {
            self.enqueue(summary());
        }
    }

    fn enqueue(self: &Arc<Self>, summary: String) {
        if self.ended_calls.queue.try_send(Waiting::Ended { call: self.clone(), summary }).is_err() {
            self.ended_calls.dropped.fetch_add(1, Relaxed);
        }
    }
}

fn of_run(record: &ExecutionRecord) -> String {
    match (&record.result, &record.error) {
        (Some(result), _) => result_summary_of_text(result),
        (None, Some(error)) => result_summary_of_text(&format!("Failed: {error}")),
        (None, None) => record.status.as_str().to_owned(),
    }
}

/// As much of an answer as a summary can show: lists are counted and long texts cut, without copying them.
fn brief(body: &Value) -> Value {
    const TEXT_CHARS_MAX: usize = 200;
    match body {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| {
                let short = match value {
                    Value::String(text) => text.chars().take(TEXT_CHARS_MAX).collect::<String>().into(),
                    Value::Array(items) if items.len() == 1 => "1 item".into(),
                    Value::Array(items) => format!("{} items", items.len()).into(),
                    other => other.clone(),
                };
                (name.clone(), short)
            })
            .collect(),
        other => other.clone(),
    }
}

/// One after another, so that the calls of a session stay in order.
async fn record_all(stores: WeakStores, recorder: Recorder, mut waiting: mpsc::Receiver<Waiting>) {
    while let Some(next) = waiting.recv().await {
        let (call, summary) = match next {
            Waiting::Ended { call, summary } => (call, summary),
            Waiting::Flush(done) => {
                // The caller may have stopped waiting.
                let _ = done.send(());
                continue;
            }
        };
        let Some(stores) = stores.upgrade() else { return };
        let Some(session) = stores.contexts().conversation_of(&call).await else { continue };
        let principal = &call.caller.principal;
        // If the database can't be read, the call is recorded: its context is bounded.
        let owner_bytes_max = stores.contexts().bytes_max_of(principal).await.unwrap_or_default();
        recorder.record(ToolEnd {
            session: &session,
            tenant: principal.tenant().unwrap_or_default(),
            owner: principal.name(),
            owner_bytes_max,
            tool: call.tool,
            args: &call.arguments,
            called_at: call.called_at,
            outcome: Outcome::Summary(&summary),
        });
    }
}

impl Contexts<'_> {
    /// The context to record a call in. If its argument names no session of the caller, the call is recorded where it came from.
    async fn conversation_of(&self, call: &Call) -> Option<heapstead_context::SessionId> {
        let named = match &call.session {
            Some(session) => self.context_id(call, Some(session), call.started_run.load(Relaxed)).await,
            None => None,
        };
        match named {
            Some(id) => Some(id),
            None => self.context_id(call, None, true).await,
        }
    }

    async fn context_id(&self, call: &Call, session: Option<&str>, create: bool) -> Option<heapstead_context::SessionId> {
        let is_current = !call.needs_lookup.load(Relaxed) && session == call.session.as_deref();
        let resolved = call.target.get().filter(|_| is_current);
        let target = match resolved {
            Some(target) => target.clone(),
            None => self.0.sessions().resolve_for_recording(&call.caller, session).await.ok()?,
        };
        self.context_key(&call.caller, &target, create).await.ok().flatten().map(|key| key.id)
    }
}
