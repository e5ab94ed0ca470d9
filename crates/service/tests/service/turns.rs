//! Turns: runs and preparations of one session, one after another.

use crate::fixture::{Fixture, LONG};
use heapstead_service::{ContextRequest, RunParameters};
use heapstead_types::Principal;

#[tokio::test]
async fn preparing_a_session_is_no_execution_of_its_caller() {
    let fixture = Fixture::with(|policy| policy.quotas.running_max = Some(1)).await;
    let loops = RunParameters { code: "for (;;);".into(), ..RunParameters::default() };
    let running = fixture.service.run(&fixture.caller, loops).await.expect("accepted");
    // The quota is used up; a preparation does not need it.
    let request = ContextRequest { intent: "task".into(), ..ContextRequest::default() };
    let context = fixture.service.session_context(&fixture.caller, request).await.expect("prepared");
    let refused = RunParameters { code: "1".into(), session: Some(context.logical_session_id), ..RunParameters::default() };
    assert!(fixture.service.run(&fixture.caller, refused).await.is_err(), "a run does");
    let list = fixture.service.executions().list(&fixture.caller, Default::default()).await.expect("listed");
    assert_eq!(list.executions.len(), 1, "only the run is listed");
    fixture.service.executions().cancel(&fixture.caller, running.id().as_str()).await.expect("cancelled");
}

#[tokio::test]
async fn concurrent_runs_of_a_session_each_see_the_heap_of_the_one_before() {
    let fixture = Fixture::new().await;
    let session = fixture.service.sessions().open(&fixture.caller).await.expect("opened").id.to_string();
    let mut accepted = Vec::new();
    for _ in 0..10 {
        let parameters = RunParameters {
            code: "globalThis.n = (globalThis.n ?? 0) + 1".into(),
            session: Some(session.clone()),
            ..RunParameters::default()
        };
        accepted.push(fixture.service.run(&fixture.caller, parameters).await.expect("accepted"));
    }
    for (number, execution) in accepted.iter().enumerate() {
        let record = fixture.service.wait_for_run(&fixture.caller, execution, LONG).await;
        assert_eq!(record.result, Some((number + 1).to_string()));
    }
}

/// Story: `session_context` restored the heap once to see whether it could, and once more to use it.
#[tokio::test]
async fn preparing_a_session_restores_its_heap_once() {
    let fixture = Fixture::new().await;
    let request = ContextRequest { intent: "task".into(), ..ContextRequest::default() };
    let session = fixture.service.session_context(&fixture.caller, request.clone()).await.expect("opened").logical_session_id;
    fixture.run(&fixture.caller, "globalThis.x = 1", Some(&session)).await;
    let lookups = async || {
        let metrics = fixture.service.metrics(&Principal::local()).await.expect("metrics");
        metrics.stores.map(|stores| stores.heap_cache_hits + stores.heap_cache_misses).expect("stores")
    };
    let before = lookups().await;
    fixture.service.session_context(&fixture.caller, request).await.expect("found");
    assert_eq!(lookups().await - before, 1, "session_context");
    fixture.run(&fixture.caller, "x", Some(&session)).await;
    assert_eq!(lookups().await - before, 2, "a run");
}
