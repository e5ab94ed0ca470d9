//! Queued runs with sources of megabytes, which wait in memory behind runs that do not end.

use crate::abuse::Abuser;
use serde_json::json;

pub async fn queue(abuser: Abuser) {
    let bytes = abuser.times(2 << 20, 15 << 20);
    let endless = async || {
        for _ in 0..abuser.times(16, 64) {
            abuser.send("POST", "/api/exec", Some(json!({ "code": "for (;;) {}" }))).await;
        }
    };
    loop {
        endless().await;
        for _ in 0..12 {
            let code = format!("/*{}*/ 1", "x".repeat(bytes));
            abuser.send("POST", "/api/exec", Some(json!({ "code": code }))).await;
        }
        abuser.in_effect();
    }
}
