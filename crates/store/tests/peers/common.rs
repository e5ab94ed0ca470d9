//! What the suites share: a place that servers join, and a responder.

use async_trait::async_trait;
use heapstead_store::peers::{Peers, Question, Responder};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Notify;

/// Far more than any step takes. A test that reaches it has failed.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// An implementation of the traits, without servers at first.
pub trait Place: Send + Sync + 'static {
    /// Its module in `contract!`, by which another process finds `server_process`.
    const MODULE: &'static str;

    fn new() -> Self;

    /// Adds a server to the place at this address. Also called in other processes.
    fn join_at(address: &str) -> Arc<dyn Peers>;

    fn address(&self) -> String;

    fn join(&self) -> Arc<dyn Peers> {
        Self::join_at(&self.address())
    }
}

/// Never answers a cancellation, answers no for the first line of an output, and yes otherwise.
#[derive(Default)]
pub struct Answers {
    pub asked: Notify,
    pub is_dropped: Arc<AtomicBool>,
}

struct SetWhenDropped(Arc<AtomicBool>);

impl Drop for SetWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[async_trait]
impl Responder for Answers {
    async fn answer(&self, question: Question) -> bool {
        let _set = SetWhenDropped(self.is_dropped.clone());
        self.asked.notify_one();
        match question {
            Question::Cancel(_) => std::future::pending().await,
            Question::Line(_, number) => number > 1,
            _ => true,
        }
    }
}

/// Fails the test if this takes too long.
pub async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.expect("in time")
}
