//! The two moments of an orderly end: when it is asked for, and when everything that ran has come to its own.

use std::future::Future;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Between the end of the last execution and that of whatever still waits: answers that are ready are on their way by then.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub struct Shutdown {
    /// Somebody wants the server to end: nothing new is begun.
    pub asked: CancellationToken,
    /// Every execution has ended: who still waits, waits for nothing.
    pub over: CancellationToken,
}

impl Shutdown {
    pub fn new(asked: CancellationToken) -> Self {
        Self { asked, over: CancellationToken::new() }
    }

    /// Cancelled when calls that still wait have been answered, as far as they can be: streams end then.
    pub fn streams_end(&self) -> CancellationToken {
        let (ends, last_call) = (CancellationToken::new(), self.last_call());
        let end = ends.clone();
        tokio::spawn(async move {
            last_call.await;
            end.cancel();
        });
        ends
    }

    /// Done when calls that still wait have to be answered.
    pub fn last_call(&self) -> impl Future<Output = ()> + Send + use<> {
        let over = self.over.clone();
        async move {
            over.cancelled_owned().await;
            tokio::time::sleep(LAST_ANSWERS).await;
        }
    }
}
