//! Records finished tool calls. Recording never delays or fails a call: records go through a bounded queue.

use crate::limits::TOOL_NAME_BYTES_MAX;
use crate::record::ToolCall;
use crate::text::{cut_args, cut_bytes, result_summary, result_summary_of_text};
use crate::{Access, Contexts, SessionId, Timestamp};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// Maximum queue length; further calls are dropped and counted. Calls are truncated before they are queued, so the queue takes a few
/// megabytes at most.
const WAITING_MAX: usize = 4096;
/// Batch size. A batch makes one update per session.
const TOGETHER_MAX: usize = 256;

/// Tools that operate on the context itself. Servers do not record these.
pub const CONTEXT_TOOLS: [&str; 6] = ["context_get", "context_set", "context_record", "context_check", "context_clear", "health_check"];

#[derive(Debug, Clone, Copy)]
pub struct ToolEnd<'a> {
    pub session: &'a SessionId,
    pub tenant: &'a str,
    /// As in [`Access`].
    pub owner: &'a str,
    pub owner_bytes_max: Option<u64>,
    pub tool: &'a str,
    pub args: &'a Map<String, Value>,
    pub called_at: Timestamp,
    pub outcome: Outcome<'a>,
}

#[derive(Debug, Clone, Copy)]
pub enum Outcome<'a> {
    /// A `CallToolResult`, from which the summary is derived.
    Result(&'a Value),
    /// A summary of the result in one or two sentences.
    Summary(&'a str),
}

/// Cheap to clone. When the last clone is dropped, the queue is drained and closed.
#[derive(Clone)]
pub struct Recorder {
    queue: mpsc::Sender<Waiting>,
    counters: Arc<Counters>,
}

enum Waiting {
    Call(Box<(Conversation, ToolCall)>),
    /// Acknowledged once everything queued before it is recorded.
    Flush(oneshot::Sender<()>),
}

/// Where a call is recorded.
struct Conversation {
    session: SessionId,
    tenant: Arc<str>,
    owner: Arc<str>,
    owner_bytes_max: Option<u64>,
}

#[derive(Default)]
struct Counters {
    recorded: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
    over_quota: AtomicU64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RecorderCounts {
    pub recorded: u64,
    /// The queue was full.
    pub dropped: u64,
    /// The store was unavailable, or holds a record with a newer schema version.
    pub failed: u64,
    /// The owner has as much as it may have.
    pub over_quota: u64,
}

impl Recorder {
    pub fn start(contexts: Contexts) -> Self {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        let counters = Arc::<Counters>::default();
        tokio::spawn(serve(contexts, waiting, counters.clone()));
        Self { queue, counters }
    }

    /// Returns immediately, whatever the state of the store.
    pub fn record(&self, end: ToolEnd<'_>) {
        let result_summary = match end.outcome {
            Outcome::Result(result) => result_summary(result),
            Outcome::Summary(text) => result_summary_of_text(text),
        };
        let tool = cut_bytes(end.tool, TOOL_NAME_BYTES_MAX);
        let call = ToolCall { tool, args: cut_args(end.args), called_at: end.called_at, result_summary };
        let conversation = Conversation {
            session: *end.session,
            tenant: end.tenant.into(),
            owner: end.owner.into(),
            owner_bytes_max: end.owner_bytes_max,
        };
        let waiting = Waiting::Call(Box::new((conversation, call)));
        if self.queue.try_send(waiting).is_err() {
            self.counters.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Waits until everything recorded before has been stored or has failed. For shutdown and tests.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.queue.send(Waiting::Flush(done)).await.is_ok() {
            let _ = flushed.await;
        }
    }

    pub fn counts(&self) -> RecorderCounts {
        let counters = &self.counters;
        RecorderCounts {
            recorded: counters.recorded.load(Relaxed),
            dropped: counters.dropped.load(Relaxed),
            failed: counters.failed.load(Relaxed),
            over_quota: counters.over_quota.load(Relaxed),
        }
    }
}

/// Processes batches. Within a batch, sessions are updated concurrently, and the calls of each session in order.
async fn serve(contexts: Contexts, mut waiting: mpsc::Receiver<Waiting>, counters: Arc<Counters>) {
    let mut batch = Vec::new();
    while waiting.recv_many(&mut batch, TOGETHER_MAX).await > 0 {
        let mut sessions: HashMap<(SessionId, Arc<str>), (Conversation, Vec<ToolCall>)> = HashMap::new();
        let mut flushes = Vec::new();
        for waiting in batch.drain(..) {
            match waiting {
                Waiting::Call(call) => {
                    let (conversation, call) = *call;
                    let key = (conversation.session, conversation.tenant.clone());
                    sessions.entry(key).or_insert_with(|| (conversation, Vec::new())).1.push(call);
                }
                Waiting::Flush(done) => flushes.push(done),
            }
        }
        let mut updates = JoinSet::new();
        for (conversation, calls) in sessions.into_values() {
            updates.spawn(add(contexts.clone(), conversation, calls, counters.clone()));
        }
        updates.join_all().await;
        for done in flushes {
            // The caller of `flush` may have been cancelled.
            let _ = done.send(());
        }
    }
}

async fn add(contexts: Contexts, conversation: Conversation, calls: Vec<ToolCall>, counters: Arc<Counters>) {
    let Conversation { session, tenant, owner, owner_bytes_max } = &conversation;
    let access = Access::new(session, "recorder").of_tenant(tenant).of_owner(owner).within(*owner_bytes_max);
    let added = contexts.update(access, |record| {
        calls.iter().cloned().for_each(|call| record.add_call(call));
        Ok(())
    });
    match added.await {
        Ok(()) => counters.recorded.fetch_add(calls.len() as u64, Relaxed),
        Err(error) => {
            tracing::debug!(session_id = %session, %error, "calls were not recorded");
            let counter = if error.is_over_quota() { &counters.over_quota } else { &counters.failed };
            counter.fetch_add(calls.len() as u64, Relaxed)
        }
    };
}
