//! Health and usage, which look at stores and engine, polled without end.

use crate::abuse::Abuser;

/// Pollers at once.
const CONCURRENT: usize = 4;

pub async fn poll(abuser: Abuser) {
    let poll = || async {
        loop {
            for path in ["/api/health", "/api/usage", "/readyz", "/metrics"] {
                abuser.send("GET", path, None).await;
            }
            abuser.in_effect();
        }
    };
    futures_util::future::join_all((0..CONCURRENT).map(|_| poll())).await;
}
