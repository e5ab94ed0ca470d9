//! The two stages of a graceful shutdown: requested, and all executions ended.

use std::future::Future;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time after the end of the last execution in which open calls can still be answered.
const LAST_RESPONSES: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub struct Shutdown {
    /// Cancelled when shutdown is requested: no new executions start.
    pub requested: CancellationToken,
    /// Cancelled when all executions have ended.
    pub over: CancellationToken,
}

impl Shutdown {
    pub fn new(requested: CancellationToken) -> Self {
        Self { requested, over: CancellationToken::new() }
    }

    /// Cancelled when time is up for open calls; event streams end then.
    pub fn streams_end(&self) -> CancellationToken {
        let (ends, last_call) = (CancellationToken::new(), self.last_call());
        let end = ends.clone();
        tokio::spawn(async move {
            last_call.await;
            end.cancel();
        });
        ends
    }

    /// Completes when time is up for calls that are still open.
    pub fn last_call(&self) -> impl Future<Output = ()> + Send + use<> {
        let over = self.over.clone();
        async move {
            over.cancelled_owned().await;
            tokio::time::sleep(LAST_RESPONSES).await;
        }
    }
}
