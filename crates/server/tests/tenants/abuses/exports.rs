//! Exports of a heap whose readers read nothing.

use crate::abuse::Abuser;
use serde_json::json;

pub async fn idle(abuser: Abuser) {
    let code = "globalThis.kept = Array.from({ length: 2e5 }, (_, i) => ({ i, text: `item ${i}` })); 1";
    let (_, record) = abuser.tenant.ask("POST", "/api/exec", Some(json!({ "code": code, "wait_secs": 30 }))).await;
    let path = format!("/api/heaps/{}/file", record["heap"].as_str().unwrap_or_default());
    let mut held = Vec::new();
    for _ in 0..abuser.times(12, 50) {
        held.push(abuser.tenant.begin("GET", &path, "application/json", 0).await);
    }
    abuser.in_effect();
    std::future::pending::<()>().await;
}
