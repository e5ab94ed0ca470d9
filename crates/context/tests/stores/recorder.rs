//! The recorder: keeps the order, adds no delay, and counts every lost call, whatever the store does.

use crate::place::{Place, access, new_session};
use heapstead_context::store::{ContextStore, Pending, Stats};
use heapstead_context::{Access, Contexts, Document, Outcome, Recorder, SessionId, StoreError, Timestamp, ToolEnd, window};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn end<'a>(session: &'a SessionId, tool: &'a str, args: &'a Value, result: &'a Value) -> ToolEnd<'a> {
    ToolEnd {
        session,
        tenant: crate::place::TENANT,
        owner: "",
        owner_bytes_max: None,
        tool,
        args: args.as_object().expect("an object"),
        called_at: Timestamp::from_ms(7),
        outcome: Outcome::Result(result),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_recorded_in_their_order_for_each_session() {
    let (place, sessions) = (Place::sqlite(), [new_session(), new_session(), new_session()]);
    let contexts = place.contexts();
    let recorder = Recorder::start(contexts.clone());
    let nothing = json!({});
    for index in 0..300 {
        for session in &sessions {
            recorder.record(end(session, &format!("tool-{index}"), &nothing, &nothing));
        }
        if index % 50 == 0 {
            recorder.flush().await;
        }
    }
    recorder.flush().await;
    for session in &sessions {
        let record = contexts.get(access(session)).await.expect("there");
        let recent: Vec<&str> = record.recent_tool_calls.iter().map(|call| call.tool.as_str()).collect();
        let expected: Vec<String> = (300 - recent.len()..300).map(|index| format!("tool-{index}")).collect();
        assert_eq!(recent, expected);
        assert_eq!((record.calls_total(), window::counted(&record) as usize + recent.len()), (300, 300));
    }
    assert_eq!((recorder.counts().recorded, recorder.counts().dropped, recorder.counts().failed), (900, 0, 0));
}

#[tokio::test]
async fn recorded_calls_are_small_and_without_secrets() {
    let (place, session) = (Place::memory(), new_session());
    let contexts = place.contexts();
    let recorder = Recorder::start(contexts.clone());
    let args = json!({ "code": "x".repeat(1 << 20), "token": "t0ps3cret" });
    let result = json!({ "isError": true, "content": [{ "type": "text", "text": "No access with password=hunter2. Try again. Or not." }] });
    recorder.record(end(&session, "run_js", &args, &result));
    recorder.flush().await;
    let record = contexts.get(access(&session)).await.expect("there");
    let call = &record.recent_tool_calls[0];
    assert_eq!(
        (call.tool.as_str(), call.called_at, call.result_summary.as_str()),
        ("run_js", Timestamp::from_ms(7), "Failed: No access with password=*** Try again. Or not.")
    );
    assert_eq!(call.args["token"], "***");
    assert!(serde_json::to_vec(&call.args).expect("json").len() <= heapstead_context::limits::ARGS_BYTES_MAX);
}

/// A store that fails or never answers.
struct Bad {
    hangs: bool,
}

impl Bad {
    fn answer<T: Send + 'static>(&self) -> Pending<'static, T> {
        let hangs = self.hangs;
        Box::pin(async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            Err(StoreError::Unavailable { backend: "bad", why: "it is".into() })
        })
    }
}

impl ContextStore for Bad {
    fn backend(&self) -> &'static str {
        "bad"
    }
    fn read<'a>(&'a self, _: Access<'a>) -> Pending<'a, Option<Document>> {
        self.answer()
    }
    fn replace<'a>(&'a self, _: Access<'a>, _: Option<&'a Document>, _: &'a Document) -> Pending<'a, bool> {
        self.answer()
    }
    fn remove<'a>(&'a self, _: Access<'a>) -> Pending<'a, bool> {
        self.answer()
    }
    fn quarantine<'a>(&'a self, _: Access<'a>, _: &'a Document, _: &'a str) -> Pending<'a, bool> {
        self.answer()
    }
    fn sweep(&self) -> Pending<'_, ()> {
        self.answer()
    }
    fn stats(&self) -> Pending<'_, Stats> {
        self.answer()
    }
    fn owner_bytes<'a>(&'a self, _: &'a str) -> Pending<'a, Option<u64>> {
        self.answer()
    }
    fn check(&self) -> Pending<'_, ()> {
        self.answer()
    }
}

#[tokio::test]
async fn a_store_that_fails_is_counted() {
    let (session, nothing) = (new_session(), json!({}));
    let recorder = Recorder::start(Contexts::new(Bad { hangs: false }));
    for _ in 0..10 {
        recorder.record(end(&session, "x", &nothing, &nothing));
    }
    recorder.flush().await;
    assert_eq!((recorder.counts().failed, recorder.counts().recorded), (10, 0));
}

#[tokio::test]
async fn a_hanging_store_delays_no_call_and_dropped_calls_are_counted() {
    let (session, nothing) = (new_session(), json!({}));
    let recorder = Recorder::start(Contexts::new(Bad { hangs: true }));
    let begun = Instant::now();
    for _ in 0..10_000 {
        recorder.record(end(&session, "x", &nothing, &nothing));
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!((recorder.counts().dropped, recorder.counts().recorded), (10_000 - 4096, 0));
}

#[tokio::test]
async fn health_does_not_wait_for_a_store_that_hangs() {
    let health = Contexts::new(Bad { hangs: true }).health().await;
    assert!(health.degraded[0].contains("did not answer"), "{health:?}");
}
