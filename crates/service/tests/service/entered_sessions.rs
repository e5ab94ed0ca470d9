//! What a request learns about the session that it has entered, without reading it again.

use crate::fixture::{Fixture, LONG};
use heapstead_service::{Caller, RunParameters};
use heapstead_store::outputs::PageRequest;
use std::time::Duration;

/// Story: the answer promised an expiry of its own, which was later than the stored one.
#[tokio::test]
async fn the_expiry_after_a_run_is_the_stored_one() {
    let fixture = Fixture::new().await;
    let (sessions, caller) = (fixture.service.sessions(), &fixture.caller);
    let id = sessions.open(caller).await.expect("opened").id;
    let entered = sessions.enter_for_run(caller, id).await.expect("entered");
    let inside = Caller { entered: Some(entered.clone()), ..caller.clone() };
    fixture.run(&inside, "1", None).await;
    let reported = sessions.current(&inside, &entered).await.expect("open").expires_at.map(heapstead_service::iso_8601);
    assert_eq!(reported, sessions.show(caller, &id.to_string()).await.expect("shown").expires_at);
}

/// Story: only `get_execution` reported the head that the run it waited for had moved.
#[tokio::test]
async fn waiting_for_output_reports_the_new_head() {
    let fixture = Fixture::new().await;
    let (sessions, caller) = (fixture.service.sessions(), &fixture.caller);
    let id = sessions.open(caller).await.expect("opened").id;
    let parameters = RunParameters { code: "globalThis.x = 1".into(), session: Some(id.to_string()), ..RunParameters::default() };
    let entered = sessions.enter(caller, id).await.expect("entered");
    let inside = Caller { entered: Some(entered.clone()), ..caller.clone() };
    let execution = fixture.service.run(caller, parameters).await.expect("accepted");
    fixture.service.executions().output(&inside, execution.id().as_str(), PageRequest::lines(1, 10), LONG).await.expect("a page");
    assert_eq!(sessions.current(&inside, &entered).await.expect("open").sequence, 1);
}

/// Story: a run that was refused left the session to expire if the session was named by an argument.
#[tokio::test]
async fn a_refused_run_refreshes_the_ttl_too() {
    let ttl = Duration::from_secs(20);
    let fixture = Fixture::with(|policy| policy.session_ttl = ttl).await;
    let (sessions, caller) = (fixture.service.sessions(), &fixture.caller);
    let id = sessions.open(caller).await.expect("opened").id.to_string();
    let before = sessions.show(caller, &id).await.expect("shown").expires_at;
    // A refresh that moves the expiry by less than a hundredth of the TTL is not written.
    tokio::time::sleep(ttl / 50).await;
    let missing = RunParameters { code: "1".into(), session: Some(id.clone()), heap: Some("ab".repeat(32)), ..RunParameters::default() };
    assert!(fixture.service.run(caller, missing).await.is_err());
    assert!(sessions.show(caller, &id).await.expect("shown").expires_at > before);
}
