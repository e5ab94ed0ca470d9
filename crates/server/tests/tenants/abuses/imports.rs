//! Heaps that no server has made: with a right checksum, and contents of the tenant's choice. And imports that look for heaps of others.

use crate::abuse::Abuser;
use sha2::{Digest, Sha256};

pub async fn forged(abuser: Abuser) {
    let mut number = 0_u64;
    loop {
        number += 1;
        let payload: Vec<u8> = number.to_le_bytes().iter().copied().cycle().take(abuser.times(1, 8) << 20).collect();
        import(&abuser, &payload).await;
        abuser.in_effect();
    }
}

/// Imports guesses without an engine, and looks at what the server says about each.
pub async fn probe(abuser: Abuser) {
    let mut number = 0_u64;
    loop {
        number += 1;
        let payload = number.to_le_bytes().repeat(16 << 10);
        import(&abuser, &payload).await;
        let key = hex::encode(Sha256::digest(&payload));
        for path in [format!("/api/heaps/{key}"), format!("/api/heaps/{key}/tags"), format!("/api/heaps/{key}/file")] {
            abuser.send("GET", &path, None).await;
        }
        abuser.in_effect();
    }
}

async fn import(abuser: &Abuser, payload: &[u8]) {
    let file = [&b"MCPV8SNAP\0"[..], &Sha256::digest(payload), payload].concat();
    let request = abuser.tenant.request("POST", "/api/heaps").header("content-type", "application/octet-stream").body(file);
    if let Ok(response) = request.send().await {
        let _ = response.bytes().await;
    }
}
