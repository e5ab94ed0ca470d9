//! A session log whose entries have large sources, and readers of all of it at once.

use crate::abuse::Abuser;
use serde_json::json;

pub async fn pages(abuser: Abuser) {
    let (entries, bytes) = (abuser.times(6, 30), abuser.times(1 << 20, 12 << 20));
    for number in 0..entries {
        let code = format!("/*{}*/ {number}", "x".repeat(bytes));
        abuser.send("POST", "/api/exec", Some(json!({ "code": code, "session": "large", "wait_secs": 30 }))).await;
    }
    abuser.in_effect();
    let read = || async {
        loop {
            abuser.send("GET", "/api/sessions/large?fields=index,code,input_heap,output_heap", None).await;
        }
    };
    futures_util::future::join_all((0..4).map(|_| read())).await;
}
