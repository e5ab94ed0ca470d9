//! Cursors that nobody returned, and pages as large as they may be.

use crate::abuse::Abuser;

pub async fn strange(abuser: Abuser) {
    let cursors = ["18446744073709551615", "9223372036854775808", "-1", "999999999999999999", "%00", "a", "recent"];
    loop {
        for list in ["/api/executions", "/api/sessions", "/api/sessions/opened", "/api/heaps", "/api/sessions/large", "/api/heaps/tags"] {
            for cursor in cursors {
                abuser.send("GET", &format!("{list}?cursor={cursor}&limit=10000"), None).await;
            }
        }
        abuser.in_effect();
    }
}
