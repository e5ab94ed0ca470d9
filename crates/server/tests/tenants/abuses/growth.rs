//! Records that cost little to create: tags, named sessions, opened sessions.

use crate::abuse::Abuser;
use serde_json::{Map, Value, json};

pub async fn records(abuser: Abuser) {
    let tags: Map<String, Value> = (0..64).map(|number| (format!("tag{number}"), json!("x".repeat(1000)))).collect();
    let mut number = 0_u64;
    loop {
        for _ in 0..abuser.times(20, 200) {
            number += 1;
            let key = format!("{number:064x}");
            abuser.send("PUT", &format!("/api/heaps/{key}/tags"), Some(json!({ "tags": tags }))).await;
            abuser.send("POST", "/api/sessions", Some(json!({}))).await;
            abuser.send("GET", &format!("/api/sessions/name-{number}"), None).await;
        }
        abuser.in_effect();
    }
}
