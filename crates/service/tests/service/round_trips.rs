//! Database reads and write transactions per operation. If a number here grows, something is looked up twice.
//!
//! Story: one `run_js` over MCP read the row of its session four times and refreshed its TTL up to three times.

use crate::fixture::{Fixture, costs};
use heapstead_service::{
    Caller, CatalogQuery, CollectRequest, ContextRequest, Durability, EndLogical, ListHeaps, ListRequest, LogRequest, NamesRequest,
    RunParameters,
};
use heapstead_store::outputs::PageRequest;
use heapstead_store::records::{NewHeap, NewHeapEngine, TagQuery};
use heapstead_types::HeapKey;
use std::time::Duration;

#[tokio::test]
async fn a_run_outside_of_sessions_is_accepted_and_ended() {
    let fixture = Fixture::new().await;
    let (cost, _) = fixture.cost(fixture.run(&fixture.caller, "1", None)).await;
    assert_eq!(cost, costs(0, 3), "accept; reserve room for the heap, which is not synced; end");
}

#[tokio::test]
async fn a_run_in_a_live_session_is_one_write() {
    let fixture = Fixture::new().await;
    let session = fixture.service.sessions().open(&fixture.caller).await.expect("opened").id.to_string();
    fixture.run(&fixture.caller, "let x = 1", Some(&session)).await;
    let mut seen = Vec::new();
    for number in 2..12 {
        let (cost, result) = fixture.cost(fixture.run(&fixture.caller, "x += 1", Some(&session))).await;
        assert_eq!(result, number.to_string());
        seen.push(cost);
    }
    // Two transactions if the code takes long, or comes while the turn before it is being settled.
    assert!(seen.iter().all(|cost| [costs(0, 1), costs(0, 2)].contains(cost)), "the session is live, so it is not read: {seen:?}");
    assert!(seen.contains(&costs(0, 1)), "acceptance and end are one transaction: {seen:?}");
}

/// As over MCP, where `_meta` names the session.
#[tokio::test]
async fn a_request_that_enters_a_session_reads_it_once_and_knows_the_new_head() {
    let fixture = Fixture::with(|policy| policy.session_durability = Durability::Snapshot).await;
    let id = fixture.service.sessions().open(&fixture.caller).await.expect("opened").id;
    let request = async {
        let entered = fixture.service.sessions().enter_for_run(&fixture.caller, id).await.expect("entered");
        let caller = Caller { entered: Some(entered.clone()), ..fixture.caller.clone() };
        fixture.run(&caller, "let x = 1", None).await;
        fixture.service.sessions().current(&caller, &entered).await.expect("open")
    };
    let (cost, now) = fixture.cost(request).await;
    assert_eq!(cost, costs(1, 3));
    let stored = fixture.service.sessions().show(&fixture.caller, &id.to_string()).await.expect("shown");
    assert_eq!((now.sequence, now.head), (1, stored.head), "known without reading it again");
    assert!(stored.head.is_some());
}

#[tokio::test]
async fn a_run_in_a_logical_session_reads_it_once_more_in_its_turn() {
    let fixture = Fixture::new().await;
    let open = fixture.service.session_context(&fixture.caller, ContextRequest { intent: "task".into(), ..ContextRequest::default() });
    let (cost, context) = fixture.cost(open).await;
    let context = context.expect("opened");
    assert_eq!(cost, costs(5, 4), "find the intent (twice, the second time alone), room, reusable, notice; open, short name, use, notice");
    let session = context.logical_session_id;
    // The turn is released in the background.
    while !fixture.records.turns_without_execution().await.expect("read").is_empty() {
        tokio::task::yield_now().await;
    }
    let (cost, _) = fixture.cost(fixture.run(&fixture.caller, "1", Some(&session))).await;
    assert_eq!(cost, costs(2, 2), "resolve the session, read its execute session in the turn; accept, end");
    let again = fixture.service.session_context(&fixture.caller, ContextRequest { intent: "task".into(), ..ContextRequest::default() });
    let (cost, again) = fixture.cost(again).await;
    assert_eq!(again.expect("found").logical_session_id, session);
    assert_eq!(cost, costs(1, 1), "find the intent; its short name");
}

#[tokio::test]
async fn reading_costs_one_read() {
    let fixture = Fixture::new().await;
    let session = fixture.service.sessions().open(&fixture.caller).await.expect("opened").id.to_string();
    let parameters = RunParameters { code: "1".into(), session: Some(session.clone()), ..RunParameters::default() };
    let execution = fixture.service.run(&fixture.caller, parameters).await.expect("accepted");
    execution.ended().await;
    let (service, caller, id) = (&fixture.service, &fixture.caller, execution.id().as_str());
    let mut registered = service.executions().running(caller, id).is_some();
    while registered {
        tokio::task::yield_now().await;
        registered = service.executions().running(caller, id).is_some();
    }
    assert_eq!(fixture.cost(service.execution(caller, id, Duration::ZERO)).await.0, costs(1, 0));
    assert_eq!(fixture.cost(service.executions().list(caller, ListRequest::default())).await.0, costs(1, 0));
    assert_eq!(fixture.cost(service.sessions().list_names(caller, NamesRequest::default())).await.0, costs(1, 0));
    assert_eq!(fixture.cost(service.sessions().show(caller, &session)).await.0, costs(2, 0), "the session, its checkpoint");
    let log = async {
        let session = service.sessions().log_name(caller, Some(&session)).await.expect("resolved").expect("a session");
        service.sessions().log(caller, LogRequest { session, fields: Some(Vec::new()), limit: None, cursor: None }).await
    };
    assert_eq!(fixture.cost(log).await.0, costs(2, 0), "resolve the session, read the log");
}

#[tokio::test]
async fn opening_and_ending_a_session_is_one_write_each() {
    let fixture = Fixture::new().await;
    let (cost, session) = fixture.cost(fixture.service.sessions().open(&fixture.caller)).await;
    assert_eq!(cost, costs(0, 1));
    let handle = session.expect("opened").id.to_string();
    let (cost, ended) = fixture.cost(fixture.service.sessions().end(&fixture.caller, &handle, EndLogical::ClearState)).await;
    assert!(ended.is_ok());
    assert_eq!(cost, costs(2, 1), "resolve the session, find what runs in it; end it");
}

/// With sessions that are old enough that every refresh of a TTL is written: a second one would be counted.
#[tokio::test]
async fn every_request_refreshes_the_ttl_once() {
    let ttl = Duration::from_secs(20);
    // Checkpoints would be counted.
    let fixture = Fixture::with(|policy| (policy.session_ttl, policy.session_durability) = (ttl, Durability::Snapshot)).await;
    let (sessions, caller) = (fixture.service.sessions(), &fixture.caller);
    let id = sessions.open(caller).await.expect("opened").id;
    let handle = id.to_string();
    let aged = async || tokio::time::sleep(ttl / 50).await;

    aged().await;
    let (cost, _) = fixture.cost(fixture.run(caller, "1", Some(&handle))).await;
    assert_eq!(cost, costs(1, 3), "a run refreshes it in the transaction that accepts it");

    aged().await;
    let request = async {
        let entered = sessions.enter_for_run(caller, id).await.expect("entered");
        let inside = Caller { entered: Some(entered.clone()), ..caller.clone() };
        fixture.run(&inside, "1", Some(&handle)).await;
        sessions.leave(&entered).await;
        sessions.current(&inside, &entered).await.expect("open")
    };
    assert_eq!(fixture.cost(request).await.0, costs(1, 3), "also a run in the session that `_meta` and the argument name");

    aged().await;
    let request = async {
        let entered = sessions.enter(caller, id).await.expect("entered");
        let inside = Caller { entered: Some(entered.clone()), ..caller.clone() };
        sessions.resolve(&inside, Some(&handle)).await.expect("resolved");
        sessions.leave(&entered).await;
    };
    assert_eq!(fixture.cost(request).await.0, costs(1, 1), "a request that runs nothing refreshes it when it enters the session");

    aged().await;
    assert_eq!(fixture.cost(sessions.log_name(caller, Some(&handle))).await.0, costs(1, 1), "reading its log");
    aged().await;
    assert_eq!(fixture.cost(sessions.show(caller, &handle)).await.0, costs(1, 0), "showing it does not");
}

#[tokio::test]
async fn runs_on_a_heap_that_the_caller_names_look_it_up_once() {
    let fixture = Fixture::new().await;
    let heap = heap_of(&fixture).await.to_string();
    let parameters = RunParameters { code: "x".into(), heap: Some(heap), ..RunParameters::default() };
    let run = async { fixture.service.run(&fixture.caller, parameters).await.expect("accepted").ended().await };
    let (cost, record) = fixture.cost(run).await;
    assert_eq!(record.result.as_deref(), Some("1"));
    assert_eq!(cost, costs(1, 3), "the owner of the heap; accept, reserve, end");
    let fails = async { fixture.service.run(&fixture.caller, throwing()).await.expect("accepted").ended().await };
    assert_eq!(fixture.cost(fails).await.0, costs(0, 2), "a run that fails has no heap to reserve room for");
}

#[tokio::test]
async fn what_operations_on_executions_and_heaps_cost() {
    let fixture = Fixture::new().await;
    let (service, caller) = (&fixture.service, &fixture.caller);
    let heap = heap_of(&fixture).await;
    let endless = RunParameters { code: "for (;;);".into(), ..RunParameters::default() };
    let running = service.run(caller, endless).await.expect("accepted");
    let (executions, heaps, id) = (service.executions(), service.heaps(), running.id().as_str());
    let tags = [("a".to_owned(), "1".to_owned())].into_iter().collect();
    let page = PageRequest::lines(1, 10);
    let (export, exported) = fixture.cost(heaps.export(caller, heap)).await;
    let file = exported.expect("exported").read().await.expect("read");
    let measured = [
        ("output of a running execution", fixture.cost(executions.output(caller, id, page, Duration::ZERO)).await.0),
        ("cancel", fixture.cost(executions.cancel(caller, id)).await.0),
        ("set tags", fixture.cost(heaps.set_tags(caller, heap, tags)).await.0),
        ("tags", fixture.cost(heaps.tags(caller, heap)).await.0),
        ("find by tags", fixture.cost(heaps.find_by_tags(caller, TagQuery::default())).await.0),
        ("delete tags", fixture.cost(heaps.delete_tags(caller, heap, None)).await.0),
        ("show", fixture.cost(heaps.show(caller, heap)).await.0),
        ("list", fixture.cost(heaps.list(caller, ListHeaps::default())).await.0),
        ("export", export),
        ("import", fixture.cost(heaps.import(caller, file, None)).await.0),
        ("a collection with one heap", fixture.cost(heaps.collect(caller, CollectRequest::default())).await.0),
        ("catalog search", fixture.cost(async { service.search_catalogs(caller, &CatalogQuery::default()) }).await.0),
    ];
    let expected = [(0, 0), (0, 1), (0, 1), (1, 0), (1, 0), (0, 1), (1, 0), (1, 0), (1, 0), (0, 3), (3, 0), (0, 0)];
    assert_eq!(measured, std::array::from_fn(|at| (measured[at].0, costs(expected[at].0, expected[at].1))));
}

/// Story: every page listed the whole store and described each of its heaps, so its cost grew with all heaps of all owners.
#[tokio::test]
async fn a_page_of_heaps_costs_one_read_and_nothing_of_the_store() {
    let fixture = Fixture::new().await;
    let at = jiff::Timestamp::now();
    let key = |number: u64| HeapKey::from_digest(std::array::from_fn(|byte| if byte < 8 { number.to_be_bytes()[byte] } else { 7 }));
    // Records alone: a page that looked at the store would not find these heaps.
    let mut owned = tokio::task::JoinSet::new();
    for number in 0..10_000 {
        let (records, owner) = (fixture.records.clone(), fixture.caller.principal.clone());
        let heap = NewHeap { key: key(number), bytes: 1, engine: NewHeapEngine::Named(None), reservation: None };
        owned.spawn(async move { records.own_heap(&owner, heap, at).await.expect("owned") });
    }
    owned.join_all().await;
    for (after, expected) in [(None, 0..100), (Some(key(5_000)), 5_001..5_101), (Some(key(9_949)), 9_950..10_000)] {
        let request = ListHeaps { after, limit: Some(100), unknown: false };
        let (cost, page) = fixture.cost(fixture.service.heaps().list(&fixture.caller, request)).await;
        let page = page.expect("listed");
        assert_eq!(cost, costs(1, 0));
        assert_eq!(page.next_cursor.is_some(), expected.end < 10_000);
        assert_eq!(page.heaps.iter().map(|heap| heap.heap).collect::<Vec<_>>(), expected.map(key).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn what_operations_on_sessions_cost() {
    let fixture = Fixture::with(|policy| policy.session_durability = Durability::Snapshot).await;
    let (sessions, caller) = (fixture.service.sessions(), &fixture.caller);
    let handle = sessions.open(caller).await.expect("opened").id.to_string();
    fixture.run(caller, "1", Some(&handle)).await;
    assert_eq!(fixture.cost(sessions.list_opened(caller, None, None)).await.0, costs(1, 0), "list");
    let (cost, forked) = fixture.cost(sessions.fork(caller, &handle, None)).await;
    assert!(forked.is_ok());
    assert_eq!(cost, costs(1, 1), "fork");
}

async fn heap_of(fixture: &Fixture) -> HeapKey {
    let parameters = RunParameters { code: "globalThis.x = 1".into(), ..RunParameters::default() };
    let record = fixture.service.run(&fixture.caller, parameters).await.expect("accepted").ended().await;
    record.heap.expect("a heap")
}

fn throwing() -> RunParameters {
    RunParameters { code: "throw 1".into(), ..RunParameters::default() }
}
