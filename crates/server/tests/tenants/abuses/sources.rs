//! Queued runs with sources of megabytes, which wait in memory behind runs that do not end.

use crate::abuse::Abuser;
use bytes::Bytes;
use serde_json::json;

pub async fn queue(abuser: Abuser) {
    let bytes = abuser.times(2 << 20, 15 << 20);
    let endless = async || {
        for _ in 0..abuser.times(16, 64) {
            abuser.send("POST", "/api/exec", Some(json!({ "code": "for (;;) {}" }))).await;
        }
    };
    // Made once: the work of sending it is not what is measured.
    let body = Bytes::from(json!({ "code": format!("/*{}*/ 1", "x".repeat(bytes)) }).to_string());
    loop {
        endless().await;
        for _ in 0..12 {
            abuser.send_bytes("POST", "/api/exec", body.clone()).await;
        }
        abuser.in_effect();
    }
}
