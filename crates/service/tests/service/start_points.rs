//! Which heap a run starts from, and which session it needs: rules of the service, whatever the protocol.

use crate::fixture::Fixture;
use heapstead_service::{Durability, OnMissingHeap, RunParameters, ServiceError};
use heapstead_types::ErrorCode;

fn parameters(code: &str) -> RunParameters {
    RunParameters { code: code.into(), ..RunParameters::default() }
}

#[tokio::test]
async fn a_run_continues_from_the_head_of_its_session_unless_a_heap_is_given() {
    let fixture = Fixture::with(|policy| policy.session_durability = Durability::Snapshot).await;
    let session = fixture.service.sessions().open(&fixture.caller).await.expect("opened").id.to_string();
    fixture.run(&fixture.caller, "globalThis.x = 1", Some(&session)).await;
    let first = fixture.service.sessions().show(&fixture.caller, &session).await.expect("shown").head.expect("a head");
    fixture.run(&fixture.caller, "x = 2", Some(&session)).await;
    assert_eq!(fixture.run(&fixture.caller, "x", Some(&session)).await, "2", "from the head");
    for (heap, expected) in [(first.to_string(), "1"), (String::new(), "\"undefined\"")] {
        let request = RunParameters {
            heap: Some(heap.clone()),
            session: Some(session.clone()),
            ..parameters("typeof x == 'undefined' ? 'undefined' : x")
        };
        let execution = fixture.service.run(&fixture.caller, request).await.expect("accepted");
        assert_eq!(execution.ended().await.result.as_deref(), Some(expected), "{heap}");
    }
    assert_eq!(fixture.run(&fixture.caller, "typeof x", None).await, "\"undefined\"", "outside of a session it is fresh");
}

#[tokio::test]
async fn a_missing_heap_is_refused_or_replaced_as_the_caller_says() {
    let fixture = Fixture::new().await;
    let missing = RunParameters { heap: Some("ab".repeat(32)), ..parameters("1") };
    let refused = fixture.service.run(&fixture.caller, missing.clone()).await.err().expect("refused");
    assert_eq!(refused.code(), ErrorCode::HeapNotFound);
    let fresh = RunParameters { on_missing_heap: Some(OnMissingHeap::Fresh), ..missing };
    let record = fixture.service.run(&fixture.caller, fresh).await.expect("accepted").ended().await;
    assert!(record.result.as_deref() == Some("1") && record.warnings.len() == 1, "{record:?}");
}

#[tokio::test]
async fn a_server_that_requires_sessions_refuses_runs_outside_of_them() {
    let fixture = Fixture::with(|policy| policy.require_session = true).await;
    let refused = fixture.service.run(&fixture.caller, parameters("1")).await.err().expect("refused");
    assert!(matches!(refused, ServiceError::SessionRequired), "{refused}");
    let session = fixture.service.sessions().open(&fixture.caller).await.expect("opened").id.to_string();
    assert_eq!(fixture.run(&fixture.caller, "1", Some(&session)).await, "1");
}

#[tokio::test]
async fn limits_are_checked_and_named() {
    let fixture = Fixture::new().await;
    let bad = RunParameters { execution_timeout_secs: Some(0), ..parameters("1") };
    let refused = fixture.service.run(&fixture.caller, bad).await.err().expect("refused");
    assert_eq!(refused.code(), ErrorCode::InvalidParameter);
    assert!(refused.to_string().contains("`execution_timeout_secs`"), "{refused}");
}
