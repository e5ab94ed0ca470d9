//! Uploads that are never finished: some stall and hold their share of memory, others are aborted and leave what was stored.

use crate::abuse::Abuser;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

static PIECE: [u8; 64 << 10] = [7; 64 << 10];

async fn begun(abuser: &Abuser, path: &str, announced: usize, sent: usize) -> Option<TcpStream> {
    let kind = if path == "/api/heaps" { "application/octet-stream" } else { "application/json" };
    let mut stream = abuser.tenant.begin("POST", path, kind, announced).await?;
    for _ in 0..sent / PIECE.len() {
        // A server that has refused the request stops reading.
        stream.write_all(&PIECE).await.ok()?;
    }
    Some(stream)
}

/// Of heaps, and of ordinary bodies.
pub async fn stall(abuser: Abuser) {
    let (heap, body) = (abuser.times(32, 511) << 20, abuser.times(8, 90) << 20);
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(begun(&abuser, "/api/heaps", 512 << 20, heap).await);
        held.push(begun(&abuser, "/api/exec", 100 << 20, body).await);
    }
    abuser.in_effect();
    std::future::pending::<()>().await;
}

pub async fn abort(abuser: Abuser) {
    let bytes = abuser.times(4, 60) << 20;
    loop {
        drop(begun(&abuser, "/api/heaps", 64 << 20, bytes).await);
        abuser.in_effect();
    }
}
