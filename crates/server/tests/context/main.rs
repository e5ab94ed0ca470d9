//! Conversation contexts on the running server: what is recorded, for whom, where, and how it is monitored.

#[path = "../common/mod.rs"]
mod common;
#[path = "../server/fixture.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod fixture;
#[path = "../mcp/peer.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod peer;
#[path = "../../../context/tests/stores/redis_server.rs"]
#[allow(dead_code, reason = "the tests of the stores use the rest")]
mod redis_server;

mod concurrent_writers;
mod encryption;
mod health;
mod isolation;
mod kill;
mod load;
mod metrics;
mod quota;
mod recording;
mod redis;
mod removal;
mod restart;
mod rotation;
mod tools;

use fixture::Server;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Recording is asynchronous: polls the context of a session until the condition holds.
async fn context_when(server: &Server, session: &str, looks: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let (status, context) = server.get(&format!("/api/context?session={session}")).await;
        if status == 200 && looks(&context) {
            return context;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{status}: {context:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Polls health until the condition holds.
async fn health_when(server: &Server, looks: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let (status, health) = server.get("/api/health").await;
        if status == 200 && looks(&health) {
            return health;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{status}: {health:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Number of calls in the context, including folded ones.
fn calls(context: &Value) -> u64 {
    context["window_start_index"].as_u64().unwrap_or(0) + recent(context).len() as u64
}

fn recent(context: &Value) -> Vec<Value> {
    context["recent_tool_calls"].as_array().cloned().unwrap_or_default()
}

/// Runs code to its end in a session.
async fn run_in(server: &Server, session: &str, code: &str) -> Value {
    server.run_with(json!({ "code": code, "session": session })).await
}

/// The value of a metric, with labels.
async fn metric(server: &Server, name: &str) -> Option<f64> {
    let text = server.client.get(format!("{}/metrics", server.url)).send().await.expect("an answer").text().await.expect("a page");
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}
