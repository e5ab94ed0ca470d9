//! Pages of output whose readers read nothing.

use crate::abuse::Abuser;
use serde_json::json;

pub async fn unread(abuser: Abuser) {
    // Each byte is six in JSON.
    let code = "for (let i = 0; i < 5; i++) console.log('\\x01'.repeat(1 << 20))";
    let (_, record) = abuser.tenant.ask("POST", "/api/exec", Some(json!({ "code": code, "wait_secs": 30 }))).await;
    let path = format!("/api/executions/{}/output?byte_offset=0&byte_limit=4194304", record["execution_id"].as_str().unwrap_or_default());
    let mut held = Vec::new();
    for _ in 0..abuser.times(20, 100) {
        held.push(abuser.tenant.begin("GET", &path, "application/json", 0).await);
    }
    abuser.in_effect();
    std::future::pending::<()>().await;
}
