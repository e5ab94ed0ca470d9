//! The two stages of a graceful shutdown: requested, and all executions ended.

use std::future::Future;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time between the end of the last execution and the end of open calls, in which ready responses are sent.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub struct Shutdown {
    /// Shutdown has been requested: nothing new is started.
    pub asked: CancellationToken,
    /// Every execution has ended: there is nothing left to wait for.
    pub over: CancellationToken,
}

impl Shutdown {
    pub fn new(asked: CancellationToken) -> Self {
        Self { asked, over: CancellationToken::new() }
    }

    /// Cancelled when the remaining calls have been answered; event streams end then.
    pub fn streams_end(&self) -> CancellationToken {
        let (ends, last_call) = (CancellationToken::new(), self.last_call());
        let end = ends.clone();
        tokio::spawn(async move {
            last_call.await;
            end.cancel();
        });
        ends
    }

    /// Completes when the remaining calls must be answered.
    pub fn last_call(&self) -> impl Future<Output = ()> + Send + use<> {
        let over = self.over.clone();
        async move {
            over.cancelled_owned().await;
            tokio::time::sleep(LAST_ANSWERS).await;
        }
    }
}
