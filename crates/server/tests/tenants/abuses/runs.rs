//! Runs: as many as are accepted, none of which ends; and runs that take all the output, memory, time and lanes that they can.

use crate::abuse::Abuser;
use serde_json::{Value, json};
use std::time::Duration;

/// Refusals in a row after which a server counts as full.
const REFUSALS: usize = 20;

pub async fn spin(abuser: Abuser) {
    let max = abuser.times(200, 1_500);
    let mut refused = 0;
    for _ in 0..max {
        let status = abuser.send("POST", "/api/exec", Some(json!({ "code": "for (;;) {}", "execution_timeout_secs": 20 }))).await;
        refused = if status == 429 { refused + 1 } else { 0 };
        if refused == REFUSALS {
            break;
        }
    }
    abuser.in_effect();
    loop {
        abuser.send("POST", "/api/exec", Some(json!({ "code": "for (;;) {}", "execution_timeout_secs": 20 }))).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub async fn flood(abuser: Abuser) {
    let code = "for (;;) console.log('x'.repeat(1 << 16))";
    loop {
        for _ in 0..8 {
            abuser.send("POST", "/api/exec", Some(json!({ "code": code, "execution_timeout_secs": 10 }))).await;
        }
        abuser.in_effect();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

pub async fn fill_memory(abuser: Abuser) {
    let code = "const kept = []; for (;;) kept.push(new Uint8Array(1 << 20).fill(1), Array.from({ length: 1e4 }, (_, i) => ({ i })))";
    repeat(abuser, |_| json!({ "code": code, "execution_timeout_secs": 10 })).await;
}

pub async fn exceed_maxima(abuser: Abuser) {
    repeat(abuser, |number| match number % 2 {
        0 => json!({ "code": "for (;;) {}", "heap_memory_max_mb": 1_000_000 }),
        _ => json!({ "code": "for (;;) {}", "execution_timeout_secs": 1_000_000 }),
    })
    .await;
}

/// Each run names a session of its own, so that it might be scheduled beside the others and not behind them.
pub async fn many_lanes(abuser: Abuser) {
    repeat(abuser, |number| json!({ "code": "for (;;) {}", "execution_timeout_secs": 10, "session": format!("lane-{number}") })).await;
}

/// Submits runs without end, many more than there are slots at once.
async fn repeat(abuser: Abuser, body: impl Fn(usize) -> Value) {
    for number in 0.. {
        abuser.send("POST", "/api/exec", Some(body(number))).await;
        if number % 20 == 19 {
            abuser.in_effect();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
