//! Requests that arrive byte by byte.

use crate::abuse::Abuser;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

pub async fn trickle(abuser: Abuser) {
    let mut held = Vec::new();
    for _ in 0..abuser.times(100, 1_000) {
        held.extend(abuser.tenant.begin("POST", "/api/exec", "application/json", 1 << 20).await);
    }
    abuser.in_effect();
    loop {
        for stream in &mut held {
            let _ = stream.write_all(b" ").await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
