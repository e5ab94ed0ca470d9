//! Database reads and write transactions per operation. If a number here grows, something is looked up twice.
//!
//! Story: one `run_js` over MCP read the row of its session four times and refreshed its TTL up to three times.

use crate::fixture::{Fixture, costs};
use heapstead_service::{Caller, ContextRequest, ListRequest, LogRequest, NamesRequest, RunParameters};
use std::time::Duration;

#[tokio::test]
async fn a_run_outside_of_sessions_is_accepted_and_ended() {
    let fixture = Fixture::new().await;
    let (cost, _) = fixture.cost(fixture.run(&fixture.caller, "1", None)).await;
    assert_eq!(cost, costs(0, 2));
}

#[tokio::test]
async fn a_run_in_a_session_reads_the_session_once() {
    let fixture = Fixture::new().await;
    let session = fixture.service.sessions().open(&fixture.caller).await.expect("opened").id.to_string();
    fixture.run(&fixture.caller, "let x = 1", Some(&session)).await;
    let (cost, result) = fixture.cost(fixture.run(&fixture.caller, "x += 1", Some(&session))).await;
    assert_eq!(result, "2");
    assert_eq!(cost, costs(1, 2), "resolve the session; accept, which refreshes the TTL and returns the head; end");
}

/// As over MCP, where `_meta` names the session.
#[tokio::test]
async fn a_request_that_enters_a_session_reads_it_once_and_knows_the_new_head() {
    let fixture = Fixture::new().await;
    let id = fixture.service.sessions().open(&fixture.caller).await.expect("opened").id;
    let request = async {
        let entered = fixture.service.sessions().enter_for_run(&fixture.caller, id).await.expect("entered");
        let caller = Caller { entered: Some(entered.clone()), ..fixture.caller.clone() };
        fixture.run(&caller, "let x = 1", None).await;
        fixture.service.sessions().current(&caller, &entered).await.expect("open")
    };
    let (cost, now) = fixture.cost(request).await;
    assert_eq!(cost, costs(1, 2));
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
    assert_eq!(fixture.cost(service.sessions().show(caller, &session)).await.0, costs(1, 0));
    let log = async {
        let session = service.sessions().log_name(caller, Some(&session)).await.expect("resolved").expect("a session");
        service.sessions().log(caller, LogRequest { session, fields: Vec::new(), limit: None, cursor: None }).await
    };
    assert_eq!(fixture.cost(log).await.0, costs(2, 0), "resolve the session, read the log");
}

#[tokio::test]
async fn opening_and_ending_a_session_is_one_write_each() {
    let fixture = Fixture::new().await;
    let (cost, session) = fixture.cost(fixture.service.sessions().open(&fixture.caller)).await;
    assert_eq!(cost, costs(0, 1));
    let handle = session.expect("opened").id.to_string();
    let (cost, ended) = fixture.cost(fixture.service.sessions().end(&fixture.caller, &handle)).await;
    assert!(ended.is_ok());
    assert_eq!(cost, costs(2, 1), "resolve the session, find what runs in it; end it");
}
