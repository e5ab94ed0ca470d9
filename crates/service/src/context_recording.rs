//! Calls that conversations remember: each is noted when it ends, in the session it belongs to, and nobody waits for that.
//!
//! ```text
//! a call ─► Noting ─┬─ ended ───────────────────────┐
//!                   └─ handed to the run it began ──┴─► queue ─► which session? ─► Recorder ─► store
//! ```

use crate::context_store::OpenContexts;
use crate::live::Live;
use crate::{Archive, Caller, ExecutionRecord};
use heapstead_context::text::{cut_args, result_summary, result_summary_of_text};
use heapstead_context::{CONTEXT_TOOLS, Contexts, Outcome, Recorder, Timestamp, ToolEnd};
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use tokio::sync::{RwLock, mpsc, oneshot};

/// Calls whose session is not looked up yet. Each is cut before it waits.
const WAITING_MAX: usize = 4096;
/// Calls that only ask how far another one is.
const POLLING: [&str; 2] = ["get_execution", "get_execution_output"];
const CANCELLED: &str = "The call was cancelled before it ended.";

/// The contexts of a server, and what adds to them.
pub struct Conversations {
    pub store: OpenContexts,
    pub recorder: Recorder,
    noted: Noted,
}

/// Where calls are noted.
#[derive(Debug, Clone)]
struct Noted {
    queue: mpsc::Sender<Waiting>,
    dropped: Arc<AtomicU64>,
    /// Read while a run goes on that is to be noted at its end.
    runs: Arc<RwLock<()>>,
}

#[derive(Debug)]
enum Waiting {
    Ended {
        call: Arc<Call>,
        said: String,
    },
    /// Answered once the session of everything before it was looked up.
    Flush(oneshot::Sender<()>),
}

/// A call that is to be remembered, once.
#[derive(Debug)]
pub struct Call {
    tool: &'static str,
    arguments: Map<String, Value>,
    called_at: Timestamp,
    caller: Caller,
    /// The argument that names its session.
    session: Option<String>,
    /// Whether it changes nothing. What only asks about a name makes no session of it.
    reads: bool,
    /// Whether somebody has seen to it already.
    seen_to: AtomicBool,
    noted: Noted,
}

/// A call that goes on. Dropped before its end, it was cancelled.
pub struct Noting(Arc<Call>);

impl Conversations {
    pub fn start(store: OpenContexts, archive: &Archive) {
        let recorder = Recorder::start(store.contexts.clone());
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(look_up(Arc::downgrade(&archive.0), recorder.clone(), waiting));
        let noted = Noted { queue, dropped: Arc::default(), runs: Arc::default() };
        // Set once, when the service is opened.
        let _ = archive.0.conversations.set(Self { store, recorder, noted });
    }

    pub fn contexts(&self) -> &Contexts {
        &self.store.contexts
    }

    /// Calls that could not even wait.
    pub fn dropped(&self) -> u64 {
        self.noted.dropped.load(Relaxed)
    }

    /// Waits until everything that ended before has reached the store, or failed to.
    pub async fn flush(&self) {
        let (done, looked_up) = oneshot::channel();
        if self.noted.queue.send(Waiting::Flush(done)).await.is_ok() {
            let _ = looked_up.await;
        }
        self.recorder.flush().await;
    }

    async fn close(&self) {
        drop(self.noted.runs.write().await);
        self.flush().await;
        if let Some(memory) = &self.store.memory
            && let Err(error) = memory.close().await
        {
            tracing::error!(%error, "contexts could not be flushed: what changed since the last flush is lost");
        }
    }
}

impl Archive {
    /// A call begins. None when no conversation is to remember it.
    pub fn note(&self, tool: &'static str, reads: bool, caller: &Caller, arguments: &Map<String, Value>) -> Option<Noting> {
        let conversations = self.0.conversations.get()?;
        if POLLING.contains(&tool) || CONTEXT_TOOLS.contains(&tool) {
            return None;
        }
        let session = arguments.get("session").and_then(Value::as_str).map(str::to_owned);
        let is_in_one = session.is_some() || caller.within.is_some() || caller.session.is_some() || caller.connection.is_some();
        is_in_one.then(|| {
            Noting(Arc::new(Call {
                tool,
                arguments: cut_args(arguments),
                called_at: conversations.contexts().clock().now(),
                caller: Caller { headers: Vec::new(), call: None, ..caller.clone() },
                session,
                reads,
                seen_to: AtomicBool::new(false),
                noted: conversations.noted.clone(),
            }))
        })
    }

    /// The last calls are recorded, and what is only in memory is flushed. To be called when nobody calls any more.
    pub async fn close_contexts(&self) {
        if let Some(conversations) = self.0.conversations.get() {
            conversations.close().await;
        }
    }
}

impl Noting {
    /// For whatever does the call.
    pub fn call(&self) -> Arc<Call> {
        self.0.clone()
    }

    /// It answered this.
    pub fn answered(self, body: &Value) {
        self.0.ended(|| result_summary(&json!({ "structuredContent": brief(body) })));
    }

    pub fn failed(self, error: &impl std::fmt::Display) {
        self.0.ended(|| result_summary_of_text(&format!("Failed: {error}")));
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        self.0.ended(|| CANCELLED.to_owned());
    }
}

impl Call {
    /// The call was accepted as a run, and ends with it, however many ask for it meanwhile.
    pub fn hand_over(self: &Arc<Self>, run: Arc<Live>) {
        if self.seen_to.swap(true, Relaxed) {
            return;
        }
        let (call, going_on) = (self.clone(), self.noted.runs.clone().try_read_owned());
        tokio::spawn(async move {
            let record = run.ended().await;
            let said = of_run(&record);
            call.wait(said);
            drop(going_on);
        });
    }

    fn ended(self: &Arc<Self>, said: impl FnOnce() -> String) {
        if !self.seen_to.swap(true, Relaxed) {
            self.wait(said());
        }
    }

    fn wait(self: &Arc<Self>, said: String) {
        if self.noted.queue.try_send(Waiting::Ended { call: self.clone(), said }).is_err() {
            self.noted.dropped.fetch_add(1, Relaxed);
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

/// As much of an answer as a summary can show: long lists are counted, and long texts cut, without copying them.
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

/// One after another, so that the calls of a session stay in their order.
async fn look_up(archive: Weak<crate::archive::Kept>, recorder: Recorder, mut waiting: mpsc::Receiver<Waiting>) {
    while let Some(next) = waiting.recv().await {
        let (call, said) = match next {
            Waiting::Ended { call, said } => (call, said),
            Waiting::Flush(done) => {
                // Whoever waited may have left.
                let _ = done.send(());
                continue;
            }
        };
        let Some(kept) = archive.upgrade() else { return };
        let Some(session) = Archive(kept).conversation_of(&call).await else { continue };
        recorder.record(ToolEnd {
            session: &session,
            tenant: call.caller.principal.tenant().unwrap_or_default(),
            tool: call.tool,
            args: &call.arguments,
            called_at: call.called_at,
            outcome: Outcome::Said(&said),
        });
    }
}

impl Archive {
    /// The context that a call is noted in. One whose argument names no session that it may use is noted where it came from.
    async fn conversation_of(&self, call: &Call) -> Option<heapstead_context::SessionId> {
        let named = match &call.session {
            Some(session) => self.noted_in(call, Some(session), !call.reads).await,
            None => None,
        };
        match named {
            Some(id) => Some(id),
            None => self.noted_in(call, None, true).await,
        }
    }

    async fn noted_in(&self, call: &Call, session: Option<&str>, make: bool) -> Option<heapstead_context::SessionId> {
        let target = self.find_session_of(&call.caller, session).await.ok()?;
        self.context_key(&call.caller, target, make).await.ok().flatten().map(|key| key.id)
    }
}
