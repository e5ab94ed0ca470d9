//! Leaving: runs that end in time end as they would have, the rest are stopped and say why.

use crate::Service;
use crate::live::Stop;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

impl Service {
    /// Accepts nothing new, gives what runs this long to end, then stops it. When this returns, every execution has its end stored.
    pub async fn close(&self, grace: Duration) {
        self.running.closing.store(true, Relaxed);
        let running = self.0.live.all();
        let all_ended = async {
            for live in &running {
                live.ended().await;
            }
        };
        if tokio::time::timeout(grace, all_ended).await.is_ok() {
            return;
        }
        for live in &running {
            live.stop(Stop::Shutdown);
        }
        for live in &running {
            live.ended().await;
        }
    }
}
