//! Turns: runs and preparations of one session, one after another.

use crate::fixture::{Fixture, LONG};
use heapstead_catalog::Pick;
use heapstead_service::{Caller, ContextRequest, Durability, OnStale, RunParameters};
use heapstead_types::{Principal, Status};

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
    let fixture = Fixture::with(|policy| policy.session_durability = Durability::Snapshot).await;
    let request = ContextRequest { intent: "task".into(), ..ContextRequest::default() };
    let session = fixture.service.session_context(&fixture.caller, request.clone()).await.expect("opened").logical_session_id;
    fixture.run(&fixture.caller, "globalThis.x = 1", Some(&session)).await;
    let before = lookups(&fixture).await;
    fixture.service.session_context(&fixture.caller, request).await.expect("found");
    assert_eq!(lookups(&fixture).await - before, 1, "session_context");
    fixture.run(&fixture.caller, "x", Some(&session)).await;
    assert_eq!(lookups(&fixture).await - before, 2, "a run");
    let in_session = RunParameters { code: "1".into(), session: Some(session), ..RunParameters::default() };
    let strict = RunParameters { on_stale: OnStale::Fail, ..in_session.clone() };
    fixture.service.run(&fixture.caller, strict).await.expect("accepted").ended().await;
    assert_eq!(lookups(&fixture).await - before, 4, "a run that fails if the state is lost: before it is accepted, and when it starts");
    let on_fresh_heap = RunParameters { heap: Some(String::new()), ..in_session };
    fixture.service.run(&fixture.caller, on_fresh_heap).await.expect("accepted").ended().await;
    assert_eq!(lookups(&fixture).await - before, 4, "a run on a fresh heap does not restore the head");
}

/// Story: a run in a logical session restored its heap before it had a slot, so a full queue held a thousand heaps in memory.
#[tokio::test]
async fn queued_runs_in_logical_sessions_hold_no_heaps() {
    let fixture = Fixture::with_engine(|_| (), |config| config.concurrent_max = 1).await;
    let mut sessions = Vec::new();
    for number in 0..5 {
        let request = ContextRequest { intent: format!("task {number}"), ..ContextRequest::default() };
        let session = fixture.service.session_context(&fixture.caller, request).await.expect("opened").logical_session_id;
        fixture.run(&fixture.caller, &format!("globalThis.x = {number}"), Some(&session)).await;
        sessions.push(session);
    }
    let slot = fixture.service.run(&fixture.caller, busy_for(2000)).await.expect("accepted");
    let before = lookups(&fixture).await;
    let mut queued = Vec::new();
    for session in sessions {
        let parameters = RunParameters { code: "x".into(), session: Some(session), ..RunParameters::default() };
        queued.push(fixture.service.run(&fixture.caller, parameters).await.expect("accepted"));
    }
    assert_eq!(slot.ended().await.status, Status::Completed);
    let restored = lookups(&fixture).await - before;
    assert!(restored <= 1, "{restored} heaps were restored before there was a slot for their runs");
    for (number, execution) in queued.iter().enumerate() {
        let record = fixture.service.wait_for_run(&fixture.caller, execution, LONG).await;
        assert_eq!(record.result, Some(number.to_string()), "{record:?}");
    }
}

/// Heaps that were restored, from the cache or the store.
async fn lookups(fixture: &Fixture) -> u64 {
    let metrics = fixture.service.metrics(&Principal::local()).await.expect("metrics");
    metrics.stores.map(|stores| stores.heap_cache_hits + stores.heap_cache_misses).expect("stores")
}

fn context(intent: &str) -> ContextRequest {
    ContextRequest { intent: intent.into(), picks: vec![Pick::new("statistics", "mean")], ..ContextRequest::default() }
}

fn busy_for(ms: u32) -> RunParameters {
    RunParameters { code: format!("const end = Date.now() + {ms}; while (Date.now() < end);"), ..RunParameters::default() }
}

/// Story: the preparation of an accepted run needed a second place, so the run failed if the queue was full.
#[tokio::test]
async fn the_preparation_of_an_accepted_run_is_not_refused_by_a_full_queue() {
    let small = |config: &mut heapstead_engine::Config| (config.concurrent_max, config.queued_max) = (1, 1);
    let fixture = Fixture::with_engine(|_| (), small).await;
    let session = fixture.service.session_context(&fixture.caller, context("task")).await.expect("opened").logical_session_id;
    let slot = fixture.service.run(&fixture.caller, busy_for(1000)).await.expect("accepted");
    while fixture.service.engine().load().running == 0 {
        tokio::task::yield_now().await;
    }
    // A fresh heap has no entities, so this run needs a preparation. It takes the only place in the queue.
    let needs_preparation =
        RunParameters { code: "e1([1, 3])".into(), heap: Some(String::new()), session: Some(session), ..RunParameters::default() };
    let run = fixture.service.run(&fixture.caller, needs_preparation).await.expect("accepted");
    let record = run.ended().await;
    assert_eq!((record.status, record.result.as_deref()), (Status::Completed, Some("2")), "{record:?}");
    assert_eq!(slot.ended().await.status, Status::Completed);
}

#[tokio::test]
async fn a_preparation_waits_in_the_lane_of_its_caller() {
    let fixture = Fixture::with_engine(|_| (), |config| config.concurrent_max = 1).await;
    let busy = Caller { principal: "acme/bob".parse().expect("an owner"), ..Caller::default() };
    let mut queued = Vec::new();
    for _ in 0..8 {
        queued.push(fixture.service.run(&busy, busy_for(200)).await.expect("accepted"));
    }
    fixture.service.session_context(&fixture.caller, context("task")).await.expect("prepared");
    let list = fixture.service.executions().list(&busy, Default::default()).await.expect("listed");
    let ended = list.executions.iter().filter(|execution| execution.status != Status::Running).count();
    assert!(ended <= 3, "{ended} of 8 runs of another lane came first");
    for execution in queued {
        execution.ended().await;
    }
}
