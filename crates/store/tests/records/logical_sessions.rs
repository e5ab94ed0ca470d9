//! Logical sessions and the execute sessions they are bound to.

use crate::common::{
    Place, ann, anyone, bob, end, heap, hours, id, in_session, logged_in, new, new_session, now, race, server, session, session_id, stored,
};
use heapstead_store::Records;
use heapstead_store::records::{
    Binding, CollectedHeap, ContinuityReport, ExecuteSession, ExecutionEnd, FoundHeap, LogicalSession, NewExecution, NewLogicalSession,
    NewSession, NewTurn, OpenedLogicalSession, RunSession, SessionFilter, TurnId,
};
use heapstead_types::{Principal, Status};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

pub fn uuid(number: u8) -> Uuid {
    Uuid::from_u128(number.into())
}

/// An execute session that expires in an hour.
pub fn execute(number: u8) -> ExecuteSession {
    ExecuteSession {
        id: format!("{number:032x}"),
        reuse_key: format!("reuse {number}"),
        prompt_hash: "hash".into(),
        symbols: "{}".into(),
        revision: 0,
        head: None,
        expires_at: now() + hours(1),
        lost: None,
    }
}

pub fn binding(logical: u8, execute: ExecuteSession) -> Binding {
    Binding { logical: uuid(logical), execute, replaces: None, head: None, import: None, undone_from: None, pending_notice: None }
}

/// A logical session with its number as id, session and execute session.
fn new_logical(number: u8, owner: &Principal, intent: &str) -> NewLogicalSession {
    let session = NewSession { principal: owner.clone(), expires_at: None, ..new_session(number) };
    NewLogicalSession { id: uuid(number), session, scope: String::new(), intent: intent.to_owned() }
}

async fn open(records: &Arc<dyn Records>, new: NewLogicalSession, sessions_max: Option<u32>) -> OpenedLogicalSession {
    let number = new.id.as_bytes()[15];
    let turn = NewTurn { id: TurnId::new(), session: session_id(number) };
    let binding = binding(number, execute(number));
    records.open_logical_session(new, binding, turn, sessions_max).await.expect("answered")
}

/// A logical session of ann, whose turn has been released.
pub(crate) async fn opened(records: &Arc<dyn Records>, number: u8) -> LogicalSession {
    assert_eq!(open(records, new_logical(number, &ann(), &format!("intent {number}")), None).await, OpenedLogicalSession::Opened);
    for (turn, _) in records.turns_without_execution().await.expect("read") {
        records.release_turn(&turn).await.expect("released");
    }
    found(records, number).await
}

pub(crate) async fn found(records: &Arc<dyn Records>, number: u8) -> LogicalSession {
    records.logical_session(&ann(), uuid(number)).await.expect("read").expect("known")
}

pub fn run_in(number: u64, logical: u8, expires_at: Timestamp) -> NewExecution {
    let session = RunSession::Opened { id: session_id(logical), logical: Some(uuid(logical)), expires_at };
    NewExecution { principal: ann(), session: Some(session), ..new(&id(number)) }
}

pub async fn an_intent_has_one_logical_session_per_owner_and_scope(place: &dyn Place) {
    let records = place.open_as(&server(1));
    let bound = Binding { head: Some(stored(heap(1), 10)), pending_notice: Some("notice".into()), ..binding(1, execute(1)) };
    let turn = TurnId::new();
    let new_turn = NewTurn { id: turn.clone(), session: session_id(1) };
    let first = records.open_logical_session(new_logical(1, &ann(), "plan"), bound.clone(), new_turn, None).await.expect("answered");
    assert_eq!(first, OpenedLogicalSession::Opened);
    let expected = LogicalSession {
        id: uuid(1),
        intent: "plan".into(),
        session: session_id(1),
        head: Some(heap(1)),
        server: server(1),
        pending_notice: Some("notice".into()),
        execute: Some(bound.execute),
    };
    assert_eq!(records.turns_without_execution().await.expect("read"), [(turn, server(1))], "it holds its first turn");
    assert!(matches!(records.find_heap(&ann(), heap(1)).await.expect("read"), FoundHeap::Owned(_)));
    let again = open(&records, new_logical(2, &ann(), "plan"), Some(0)).await;
    assert_eq!(again, OpenedLogicalSession::Exists(Box::new(expected.clone())), "also if the owner has no room");
    assert_eq!(records.logical_session(&ann(), uuid(2)).await.expect("read"), None, "nothing was written");
    assert!(!records.is_session(session_id(2)).await.expect("read"));
    assert_eq!(records.turns_without_execution().await.expect("read").len(), 1);
    let in_scope = NewLogicalSession { scope: "connection".into(), ..new_logical(3, &ann(), "plan") };
    assert_eq!(open(&records, in_scope, None).await, OpenedLogicalSession::Opened);
    assert_eq!(open(&records, new_logical(4, &bob(), "plan"), None).await, OpenedLogicalSession::Opened);
    drop(records);
    let records = place.open_as(&server(2));
    for (owner, scope, intent, number) in [
        (ann(), "", "plan", Some(1)),
        (ann(), "connection", "plan", Some(3)),
        (bob(), "", "plan", Some(4)),
        (bob(), "connection", "plan", None),
        (ann(), "", "Plan", None),
        (anyone(), "", "plan", None),
    ] {
        let found = records.logical_session_of_intent(&owner, scope, intent).await.expect("read");
        assert_eq!(found.map(|logical| logical.id), number.map(uuid), "{owner} {scope} {intent}");
    }
    assert_eq!(records.logical_session(&ann(), uuid(1)).await.expect("read"), Some(expected), "after reopening");
}

pub async fn servers_that_open_an_intent_at_once_get_one_session(place: &dyn Place) {
    for round in 0..5 {
        let intent = format!("intent {round}");
        let answers = race(place, 6, |server, records| {
            let new = new_logical(round * 10 + server, &ann(), &intent);
            async move { open(&records, new, None).await }
        })
        .await;
        let opened = answers.iter().position(|answer| *answer == OpenedLogicalSession::Opened).expect("one opened it");
        for (number, answer) in answers.iter().enumerate().filter(|(number, _)| *number != opened) {
            let OpenedLogicalSession::Exists(found) = answer else { panic!("{number}: {answer:?}") };
            assert_eq!(found.id, uuid(round * 10 + opened as u8));
        }
    }
    let records = place.open();
    assert_eq!(records.totals().await.expect("read").sessions, 5);
    assert_eq!(records.turns_without_execution().await.expect("read").len(), 5, "only a session that was opened takes a turn");
}

/// Story: binding a logical session of another owner changed it, and a short name could be made for it.
pub async fn a_logical_session_of_another_owner_does_not_exist(place: &dyn Place) {
    let records = place.open();
    let before = opened(&records, 1).await;
    for other in [bob(), anyone()] {
        assert_eq!(records.logical_session(&other, uuid(1)).await.expect("read"), None);
        assert_eq!(records.logical_session_of_intent(&other, "", "intent 1").await.expect("read"), None);
        assert_eq!(records.opened_session_of_logical(&other, uuid(1), now()).await.expect("read"), None);
        assert!(records.is_logical_session_of_another_owner(&other, uuid(1)).await.expect("read"));
        for logical in [1, 2] {
            let changed = Binding { head: Some(stored(heap(9), 10)), ..binding(logical, execute(9)) };
            assert!(records.bind(&other, changed, now()).await.is_err(), "{logical}: another owner's is as unknown");
            assert!(records.session_ref(&other, uuid(logical)).await.is_err(), "{logical}: another owner's is as unknown");
        }
        assert_eq!(records.logical_session_by_ref(&other, 0).await.expect("read"), None);
        assert_eq!(records.used_bytes(&other).await.expect("read"), 0, "nothing was written");
    }
    for number in [1, 2] {
        assert!(!records.is_logical_session_of_another_owner(&ann(), uuid(number)).await.expect("read"));
    }
    assert_eq!(found(&records, 1).await, before, "unchanged");
}

pub async fn a_logical_session_counts_towards_the_quota_while_it_is_bound(place: &dyn Place) {
    let records = place.open();
    let max = Some(1);
    opened(&records, 1).await;
    assert_eq!(open(&records, new_logical(2, &ann(), "other"), max).await, OpenedLogicalSession::TooMany);
    assert_eq!(records.logical_session(&ann(), uuid(2)).await.expect("read"), None, "nothing was written");
    let has_room = async || records.has_room_for_session(&ann(), max).await.expect("read");
    assert!(!has_room().await);
    assert!(records.lose_execute_session(uuid(1), "cleared").await.expect("answered"));
    assert!(!records.lose_execute_session(uuid(1), "cleared").await.expect("answered"));
    assert!(has_room().await, "it lost its execute session");
    records.bind(&ann(), binding(1, execute(3)), now()).await.expect("bound");
    assert!(!has_room().await, "it is bound again");
    records.bind(&ann(), binding(1, execute(4)), now()).await.expect("bound");
    assert!(!has_room().await, "setting an execute session aside changes nothing");
    records.expire_execute_sessions(now() + hours(9)).await.expect("expired");
    records.expire_execute_sessions(now() + hours(9)).await.expect("expired");
    assert!(has_room().await, "both have expired, and only one of them was bound");
    assert_eq!(records.totals().await.expect("read").sessions, 0);
    assert!(!records.has_room_for_session(&ann(), Some(0)).await.expect("read"), "the count is not below zero");
}

pub async fn a_binding_grows_or_replaces_or_sets_aside(place: &dyn Place) {
    let records = place.open_as(&server(1));
    opened(&records, 1).await;
    let reusable = async |number| records.reusable_execute_session(format!("reuse {number}"), now()).await.expect("read");
    // It grows, on another server.
    let grown = ExecuteSession { symbols: "{1}".into(), revision: 1, expires_at: now() + hours(2), ..execute(1) };
    let bound = Binding { head: Some(stored(heap(1), 10)), ..binding(1, grown.clone()) };
    place.open_as(&server(2)).bind(&ann(), bound, now()).await.expect("bound");
    let now_bound = found(&records, 1).await;
    assert_eq!((now_bound.execute, now_bound.head, now_bound.server), (Some(grown.clone()), Some(heap(1)), server(2)));
    assert_eq!(reusable(1).await, None, "it is bound");
    // It is set aside, with its heap.
    let bound = Binding { head: Some(stored(heap(2), 20)), ..binding(1, execute(2)) };
    records.bind(&ann(), bound, now()).await.expect("bound");
    let aside = ExecuteSession { head: Some(heap(1)), ..grown };
    assert_eq!(reusable(1).await, Some(aside.clone()));
    let since = now() + hours(1);
    assert!(records.uses_heap(heap(1), since).await.expect("read"));
    assert_eq!(records.collect_heap(&ann(), heap(1), since).await.expect("collected"), CollectedHeap::Kept);
    assert_eq!(found(&records, 1).await.head, Some(heap(2)));
    // It is bound again, and the other one is lost.
    let bound = Binding { replaces: Some("damaged".into()), ..binding(1, aside) };
    records.bind(&ann(), bound, now()).await.expect("bound");
    let again = found(&records, 1).await;
    assert_eq!((again.execute.as_ref().map(|execute| execute.id.as_str()), again.head), (Some(execute(1).id.as_str()), Some(heap(1))));
    assert_eq!((reusable(1).await, reusable(2).await), (None, None), "one is bound, the other lost");
    assert!(!records.uses_heap(heap(2), since).await.expect("read"), "nothing refers to the heap of a lost one");
    assert_eq!(records.used_bytes(&ann()).await.expect("read"), 30);
}

/// Story: a session whose execute session had expired continued from the expired heap if the first run after that failed.
pub async fn a_new_execute_session_does_not_continue_from_the_previous_heap(place: &dyn Place) {
    let records = place.open();
    opened(&records, 1).await;
    for (number, replaces) in [(2, Some("expired".to_owned())), (3, None)] {
        let with_head = Binding { head: Some(stored(heap(1), 10)), ..binding(1, found(&records, 1).await.execute.expect("bound")) };
        records.bind(&ann(), with_head, now()).await.expect("bound");
        assert_eq!(found(&records, 1).await.head, Some(heap(1)));
        let execution = u64::from(number);
        records.accept_execution(run_in(execution, 1, now() + hours(1)), None).await.expect("accepted");
        let binding = Binding { replaces, ..binding(1, execute(number)) };
        records.end_execution(id(execution), ExecutionEnd { binding: Some(binding), ..end(Status::Failed) }).await.expect("ended");
        assert_eq!(found(&records, 1).await.head, None, "{number}");
    }
    let same = Binding { head: Some(stored(heap(5), 10)), ..binding(1, execute(3)) };
    records.bind(&ann(), same, now()).await.expect("bound");
    records.bind(&ann(), binding(1, execute(3)), now()).await.expect("bound");
    assert_eq!(found(&records, 1).await.head, Some(heap(5)), "the same one keeps its head");
}

/// Story: a session was ended while a run in it was preparing, and the end of that run bound it again.
pub async fn an_execute_session_that_is_lost_during_a_run_stays_lost(place: &dyn Place) {
    let records = place.open();
    opened(&records, 1).await;
    records.accept_execution(run_in(1, 1, now() + hours(1)), None).await.expect("accepted");
    assert!(records.lose_execute_session(uuid(1), "cleared").await.expect("answered"));
    let grown = Binding { head: Some(stored(heap(1), 10)), ..binding(1, ExecuteSession { revision: 1, ..execute(1) }) };
    let cancelled = ExecutionEnd { binding: Some(grown), ..end(Status::Cancelled) };
    records.end_execution(id(1), cancelled).await.expect("ended");
    let lost = found(&records, 1).await;
    assert_eq!((lost.execute.and_then(|execute| execute.lost).as_deref(), lost.head), (Some("cleared"), None));
    assert_eq!(records.totals().await.expect("read").sessions, 0);
    assert_eq!(records.used_bytes(&ann()).await.expect("read"), 10, "the heap was stored, so the owner has it");
}

pub async fn an_execute_session_is_reused_by_key_until_it_expires(place: &dyn Place) {
    let records = place.open();
    let key = || "shared".to_owned();
    let start = now();
    opened(&records, 1).await;
    for (number, expires_in) in [(11, 2), (12, 3), (13, 1), (14, 9)] {
        let execute = ExecuteSession { reuse_key: key(), expires_at: start + hours(expires_in), ..execute(number) };
        let bound = Binding { head: Some(stored(heap(number.into()), 1)), ..binding(1, execute) };
        records.bind(&ann(), bound, start).await.expect("bound");
    }
    let reusable = async |key, at| records.reusable_execute_session(key, at).await.expect("read").map(|execute| execute.id);
    assert_eq!(reusable(key(), start).await, Some(execute(12).id), "the one that lives longest, of those that are not bound");
    assert_eq!(reusable("other".to_owned(), start).await, None);
    assert_eq!(reusable(key(), start + hours(3)).await, None, "expired, if not swept yet");
    assert_eq!(records.expire_execute_sessions(start + hours(2)).await.expect("expired"), [], "those that are set aside have no session");
    assert_eq!(reusable(key(), start).await, Some(execute(12).id));
    records.expire_execute_sessions(start + hours(3)).await.expect("expired");
    assert_eq!(reusable(key(), start).await, None, "expired ones are lost");
}

pub async fn an_execute_session_that_several_servers_lose_is_lost_once(place: &dyn Place) {
    let records = place.open();
    for number in 0..5 {
        let logical = opened(&records, number).await;
        let bound = Binding { head: Some(stored(heap(1), 1)), ..binding(number, logical.execute.expect("bound")) };
        records.bind(&ann(), bound, now()).await.expect("bound");
        let lost = race(place, 4, move |server, records| async move {
            let why = ["cleared", "damaged", "collected", "expired"][usize::from(server)];
            (why, records.lose_execute_session(uuid(number), why).await.expect("answered"))
        })
        .await;
        let losers: Vec<_> = lost.iter().filter(|(_, is_lost)| *is_lost).collect();
        assert_eq!(losers.len(), 1, "{lost:?}");
        let now_lost = found(&records, number).await;
        assert_eq!((now_lost.execute.and_then(|execute| execute.lost).as_deref(), now_lost.head), (Some(losers[0].0), None));
    }
    assert_eq!(records.totals().await.expect("read").sessions, 0, "each is counted once");
    assert!(!records.lose_execute_session(uuid(99), "cleared").await.expect("answered"), "there is none");
    let (sessions, _) = records.opened_sessions(&ann(), SessionFilter::default(), now()).await.expect("read").expect("a page");
    assert_eq!(sessions, [], "only bound sessions are listed");
    let found = records.opened_session_of_logical(&ann(), uuid(1), now()).await.expect("read").expect("it never ends");
    assert_eq!((found.id, found.logical, found.expires_at), (session_id(1), Some(uuid(1)), None));
}

pub async fn an_execute_session_expires_unless_it_is_used(place: &dyn Place) {
    let (one, two) = (place.open_as(&server(1)), place.open_as(&server(2)));
    let start = now();
    for number in 1..=3 {
        opened(&one, number).await;
    }
    let expiry = async |number| found(&one, number).await.execute.expect("bound").expires_at;
    two.use_logical_session(uuid(1), start + hours(2)).await.expect("used");
    assert_eq!((expiry(1).await, found(&one, 1).await.server), (start + hours(2), server(2)));
    two.refresh_logical_session(uuid(1), start, start + hours(1)).await.expect("refreshed");
    assert_eq!(expiry(1).await, start + hours(2), "a refresh never shortens");
    two.refresh_logical_session(uuid(2), start, start + hours(3)).await.expect("refreshed");
    assert_eq!((expiry(2).await, found(&one, 2).await.server), (start + hours(3), server(1)), "a refresh does not change the server");
    let (before, late) = (expiry(3).await, start + hours(2));
    assert_eq!(one.next_expiry().await.expect("read"), Some(before));
    one.refresh_logical_session(uuid(3), late, start + hours(9)).await.expect("answered");
    assert_eq!(expiry(3).await, before, "it has expired");
    let opened = one.opened_session_of_logical(&ann(), uuid(2), late).await.expect("read").expect("open");
    assert_eq!(opened.expires_at, Some(start + hours(3)));
    let heads = one.heads(vec![session_id(1), session_id(2), session_id(3)], late).await.expect("read");
    assert_eq!(heads.iter().map(|(_, head)| head.is_some()).collect::<Vec<_>>(), [false, true, false]);
    let mut expired = one.expire_execute_sessions(late).await.expect("expired");
    expired.sort();
    assert_eq!(expired, [session_id(1), session_id(3)]);
    assert_eq!(found(&one, 1).await.execute.expect("bound").lost.as_deref(), Some("expired"));
    one.use_logical_session(uuid(1), start + hours(9)).await.expect("answered");
    let lost = found(&one, 1).await.execute.expect("bound");
    assert_eq!((lost.lost.as_deref(), lost.expires_at), (Some("expired"), start + hours(2)), "it stays lost");
    assert_eq!(one.next_expiry().await.expect("read"), Some(start + hours(3)));
    assert_eq!(one.expired_sessions(start + hours(99)).await.expect("read"), [], "a logical session never ends");
}

pub async fn servers_that_sweep_at_once_expire_each_execute_session_once(place: &dyn Place) {
    let records = place.open();
    for number in 0..8 {
        let logical = opened(&records, number).await;
        let bound = Binding { head: Some(stored(heap(number.into()), 1)), ..binding(number, logical.execute.expect("bound")) };
        records.bind(&ann(), bound, now()).await.expect("bound");
    }
    let expired =
        race(place, 4, |_, records| async move { records.expire_execute_sessions(now() + hours(9)).await.expect("expired") }).await;
    let mut expired = expired.concat();
    expired.sort();
    assert_eq!(expired, (0..8).map(session_id).collect::<Vec<_>>());
    for number in 0..8 {
        assert_eq!(found(&records, number).await.head, None);
    }
    assert_eq!(records.totals().await.expect("read").sessions, 0);
}

pub async fn an_unfinished_turn_extends_execute_sessions_of_its_server(place: &dyn Place) {
    let (one, two) = (place.open_as(&server(1)), place.open_as(&server(2)));
    let start = now();
    for number in 1..=3 {
        opened(&one, number).await;
    }
    // 1 runs on this server, 2 on another, and 3 does not run.
    let soon = start + hours(2);
    one.accept_execution(run_in(1, 1, start + hours(1)), None).await.expect("accepted");
    two.accept_execution(run_in(2, 2, start + hours(1)), None).await.expect("accepted");
    let expiries = async || {
        let mut expiries = Vec::new();
        for number in 1..=3 {
            expiries.push(found(&one, number).await.execute.expect("bound").expires_at);
        }
        expiries
    };
    let before = expiries().await;
    one.extend_running_execute_sessions(start, start + hours(5)).await.expect("extended");
    assert_eq!(expiries().await, before, "none expires that soon");
    one.extend_running_execute_sessions(soon, start + hours(5)).await.expect("extended");
    assert_eq!(expiries().await, [start + hours(5), before[1], before[2]]);
    one.end_execution(id(1), end(Status::Completed)).await.expect("ended");
    one.extend_running_execute_sessions(start + hours(6), start + hours(7)).await.expect("extended");
    assert_eq!(expiries().await[0], start + hours(5), "nothing runs in it any more");
}

pub async fn a_notice_is_pending_until_it_is_cleared(place: &dyn Place) {
    let records = place.open();
    let logical = opened(&records, 1).await;
    let pending = async || records.pending_notice(uuid(1)).await.expect("read");
    assert_eq!(pending().await, None);
    let with_notice = |text: &str| Binding { pending_notice: Some(text.to_owned()), ..binding(1, logical.execute.clone().expect("bound")) };
    records.bind(&ann(), with_notice("first"), now()).await.expect("bound");
    records.bind(&ann(), binding(1, execute(1)), now()).await.expect("bound");
    assert_eq!(pending().await.as_deref(), Some("first"), "a binding without a notice keeps it");
    records.bind(&ann(), with_notice("second"), now()).await.expect("bound");
    records.clear_notice(uuid(1), "first".into()).await.expect("answered");
    assert_eq!(found(&records, 1).await.pending_notice.as_deref(), Some("second"), "a newer notice stays");
    records.clear_notice(uuid(1), "second".into()).await.expect("cleared");
    assert_eq!(pending().await, None);
    for (number, is_delivered, expected) in [(1, false, Some("report")), (2, true, None)] {
        records.accept_execution(run_in(number, 1, now() + hours(1)), None).await.expect("accepted");
        let continuity = Some(ContinuityReport { json: "report".into(), is_delivered });
        let end = ExecutionEnd { continuity, extends: Some((uuid(1), now() + hours(1))), ..end(Status::Completed) };
        records.end_execution(id(number), end).await.expect("ended");
        assert_eq!(pending().await.as_deref(), expected, "a report that its caller received is not pending");
    }
    assert_eq!(records.pending_notice(uuid(99)).await.expect("read"), None);
    records.clear_notice(uuid(99), "first".into()).await.expect("answered");
}

pub async fn the_end_of_a_run_changes_its_logical_session(place: &dyn Place) {
    let (one, two) = (place.open_as(&server(1)), place.open_as(&server(2)));
    let start = now();
    opened(&one, 1).await;
    two.accept_execution(run_in(1, 1, start + hours(3)), None).await.expect("accepted");
    let refreshed = found(&one, 1).await;
    assert_eq!((refreshed.execute.expect("bound").expires_at, refreshed.server), (start + hours(3), server(1)), "accepted");
    let grown = ExecuteSession { revision: 1, symbols: "{1}".into(), ..execute(1) };
    let mut end = logged_in(&id(1), 1, 7);
    end.extends = Some((uuid(1), start + hours(4)));
    end.binding = Some(Binding { head: Some(stored(heap(6), 10)), ..binding(1, grown) });
    two.end_execution(id(1), end).await.expect("ended");
    let ended = found(&one, 1).await;
    assert_eq!((ended.head, ended.server), (Some(heap(7)), server(2)), "the run moves the head after its preparation");
    let bound = ended.execute.expect("bound");
    assert_eq!((bound.revision, bound.symbols.as_str(), bound.expires_at), (1, "{1}", start + hours(4)));
    let opened = one.opened_session_of_logical(&ann(), uuid(1), start).await.expect("read").expect("open");
    assert_eq!((opened.sequence, opened.head, opened.expires_at), (1, Some(heap(7)), Some(start + hours(4))));
    assert_eq!(one.used_bytes(&ann()).await.expect("read"), 710, "both heaps are the owner's");
}

pub async fn an_execution_names_its_logical_session(place: &dyn Place) {
    let records = place.open();
    opened(&records, 1).await;
    records.open_session(new_session(2), None).await.expect("opened");
    records.accept_execution(run_in(1, 1, now() + hours(1)), None).await.expect("accepted");
    records.accept_execution(in_session(&id(2), 2), None).await.expect("accepted");
    records.accept_execution(new(&id(3)), None).await.expect("accepted");
    // Another owner may have a named session with the same text as its name.
    let same_name = Some(RunSession::Named(session(&session_id(1).to_string())));
    records.accept_execution(NewExecution { principal: bob(), session: same_name, ..new(&id(4)) }, None).await.expect("accepted");
    for (number, expected) in [(1, Some(uuid(1))), (2, None), (3, None), (4, None), (5, None)] {
        assert_eq!(records.logical_session_of_execution(&id(number)).await.expect("read"), expected, "{number}");
    }
    records.end_execution(id(1), end(Status::Completed)).await.expect("ended");
    assert_eq!(records.logical_session_of_execution(&id(1)).await.expect("read"), Some(uuid(1)), "also when it has ended");
}

pub async fn short_names_are_numbered_per_owner(place: &dyn Place) {
    let records = place.open();
    for number in 1..=3 {
        opened(&records, number).await;
    }
    open(&records, new_logical(4, &bob(), "plan"), None).await;
    let number = async |owner: Principal, logical| records.session_ref(&owner, uuid(logical)).await.expect("a number");
    assert_eq!((number(ann(), 1).await, number(ann(), 2).await), (0, 1));
    assert_eq!(number(ann(), 1).await, 0, "it keeps its number");
    assert_eq!(number(bob(), 4).await, 0, "numbers of another owner do not matter");
    for name in ["s2", "s3"] {
        records.named_session(&ann(), &session(name), true).await.expect("created");
    }
    assert_eq!(number(ann(), 3).await, 4, "s2 and s3 are names of sessions");
    drop(records);
    let records = place.open();
    for (owner, number, logical) in [(ann(), 0, Some(1)), (ann(), 4, Some(3)), (bob(), 0, Some(4)), (ann(), 2, None), (bob(), 1, None)] {
        let found = records.logical_session_by_ref(&owner, number).await.expect("read");
        assert_eq!(found, logical.map(uuid), "{owner} {number}");
    }
}

pub async fn servers_that_number_sessions_at_once_agree(place: &dyn Place) {
    let records = place.open();
    for number in 0..6 {
        opened(&records, number).await;
    }
    let numbers = race(place, 4, |_, records| async move {
        let mut numbers = Vec::new();
        for logical in 0..6 {
            numbers.push(records.session_ref(&ann(), uuid(logical)).await.expect("a number"));
        }
        numbers
    })
    .await;
    assert!(numbers.iter().all(|found| *found == numbers[0]), "{numbers:?}");
    assert_eq!(numbers[0].iter().copied().collect::<BTreeSet<_>>(), (0..6).collect());
}

pub async fn a_forgotten_logical_session_frees_its_intent_and_never_its_ref(place: &dyn Place) {
    let records = place.open();
    for (number, intent) in [(1, "plan"), (2, "other")] {
        open(&records, new_logical(number, &ann(), intent), None).await;
        assert_eq!(records.session_ref(&ann(), uuid(number)).await.expect("numbered"), u64::from(number) - 1);
    }
    records.lose_execute_session(uuid(1), "cleared").await.expect("lost");
    assert!(!records.forget_logical_session(&bob(), uuid(1), None, now()).await.expect("answered"), "of another owner");
    assert!(!records.forget_logical_session(&ann(), uuid(1), Some(now() - hours(1)), now()).await.expect("answered"), "used since");
    for number in [1, 2] {
        assert!(records.forget_logical_session(&ann(), uuid(number), None, now()).await.expect("answered"));
        assert!(!records.forget_logical_session(&ann(), uuid(number), None, now()).await.expect("answered"), "once");
        assert_eq!(records.logical_session(&ann(), uuid(number)).await.expect("read"), None);
    }
    assert_eq!(records.totals().await.expect("read").sessions, 0, "each is counted once, with and without state");
    assert!(records.was_opened(&ann(), session_id(1)).await.expect("read"), "its session has ended");
    assert_eq!(open(&records, new_logical(3, &ann(), "plan"), None).await, OpenedLogicalSession::Opened, "a new session");
    assert_eq!(records.session_ref(&ann(), uuid(3)).await.expect("numbered"), 2, "a ref never changes its meaning");
}

pub async fn lost_execute_sessions_are_deleted_unless_their_session_is_bound_to_them(place: &dyn Place) {
    let records = place.open();
    open(&records, new_logical(1, &ann(), "plan"), None).await;
    let stored = async || records.usage(&ann()).await.expect("read").other_bytes;
    let with_one = stored().await;
    let replaced = Binding { replaces: Some("expired".into()), ..binding(1, execute(2)) };
    records.bind(&ann(), replaced, now()).await.expect("bound");
    records.lose_execute_session(uuid(1), "cleared").await.expect("lost");
    assert!(!records.delete_execute_sessions(now()).await.expect("answered"), "they would not have expired yet");
    while records.delete_execute_sessions(now() + hours(9)).await.expect("deleted") {}
    assert_eq!(stored().await, with_one, "the first is gone");
    let bound = records.logical_session(&ann(), uuid(1)).await.expect("read").expect("known").execute.expect("bound");
    assert_eq!((bound.id, bound.lost.as_deref()), (execute(2).id, Some("cleared")), "the loss can still be reported");
}
