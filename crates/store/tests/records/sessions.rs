//! Opened and named sessions.

use crate::common::{
    Place, ann, anyone, bob, heap, hours, id, in_session, logged, logged_in, new, new_session, now, race, server, session, session_id,
};
use heapstead_store::Records;
use heapstead_store::records::{Head, LogRange, NewExecution, NewSession, RunSession, SessionFilter};
use heapstead_types::SessionId;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use uuid::Uuid;

pub async fn a_session_is_found_by_its_owner_until_it_ends(place: &dyn Place) {
    let records = place.open();
    assert!(records.open_session(new_session(1), Some(1)).await.expect("opened"));
    assert!(!records.open_session(new_session(2), Some(1)).await.expect("answered"), "the owner has one already");
    let now = now();
    let opened = records.opened_session(&anyone(), session_id(1), now).await.expect("read").expect("open");
    assert_eq!((opened.head(), opened.logical), (Head { sequence: 0, heap: None }, None));
    assert_eq!(records.opened_session(&ann(), session_id(1), now).await.expect("read"), None, "another owner's does not exist");
    assert!(records.end_session(&anyone(), session_id(1), now).await.expect("ended"));
    assert!(!records.end_session(&anyone(), session_id(1), now).await.expect("answered"), "it ends once");
    assert_eq!(records.opened_session(&anyone(), session_id(1), now).await.expect("read"), None);
    assert!(records.was_opened(&anyone(), session_id(1)).await.expect("read"));
    assert!(records.has_room_for_session(&anyone(), Some(1)).await.expect("read"));
}

pub async fn a_session_expires_unless_it_is_used(place: &dyn Place) {
    let records = place.open();
    let now = now();
    let soon = now + SignedDuration::from_secs(10);
    let new = NewSession { expires_at: Some(soon), ..new_session(1) };
    records.open_session(new, None).await.expect("opened");
    assert_eq!(records.next_expiry().await.expect("read"), Some(soon));
    let later = now + SignedDuration::from_secs(11);
    assert_eq!(records.opened_session(&anyone(), session_id(1), later).await.expect("read"), None, "expired, if not ended yet");
    assert_eq!(records.expired_sessions(later).await.expect("read"), [(anyone(), session_id(1))]);
    records.refresh_session(session_id(1), now, now + SignedDuration::from_hours(1)).await.expect("refreshed");
    assert!(!records.expire_session(&anyone(), session_id(1), later).await.expect("answered"), "it was used meanwhile");
    assert_eq!(records.expired_sessions(later).await.expect("read"), []);
    records.accept_execution(in_session(&id(1), 1), None).await.expect("accepted");
    let expires_at = records.opened_session(&anyone(), session_id(1), now).await.expect("read").expect("open").expires_at;
    assert!(expires_at > Some(now + SignedDuration::from_mins(90)), "accepting a run refreshes the TTL too");
}

pub async fn opened_sessions_are_listed_in_pages_by_connection(place: &dyn Place) {
    let records = place.open();
    for number in 0..4 {
        let connection = (number % 2 == 0).then(|| "here".to_owned());
        records.open_session(NewSession { connection, ..new_session(number) }, None).await.expect("opened");
    }
    let list = async |filter: SessionFilter| {
        let page = records.opened_sessions(&anyone(), filter, Timestamp::now()).await.expect("read");
        page.map(|(sessions, more)| (sessions.into_iter().map(|session| session.id).collect::<Vec<_>>(), more))
    };
    let here = SessionFilter { connection: Some("here".into()), ..SessionFilter::default() };
    assert_eq!(list(here).await, Some((vec![session_id(0), session_id(2)], false)));
    let page = SessionFilter { limit: Some(2), after: Some(session_id(0)), ..SessionFilter::default() };
    assert_eq!(list(page).await, Some((vec![session_id(1), session_id(2)], true)));
    let unknown = SessionFilter { after: Some(session_id(99)), ..SessionFilter::default() };
    assert_eq!(list(unknown).await, None, "a cursor that is not the owner's");
}

pub async fn heads_move_with_completed_runs(place: &dyn Place) {
    let records = place.open();
    let at = now();
    records.open_session(NewSession { head: Some(heap(4)), ..new_session(1) }, None).await.expect("opened");
    records.open_session(new_session(2), None).await.expect("opened");
    let heads = async |at| records.heads(vec![session_id(1), session_id(2), session_id(3)], at).await.expect("read");
    let head = |sequence, number| Some(Head { sequence, heap: Some(heap(number)) });
    let empty = Some(Head { sequence: 0, heap: None });
    assert_eq!(heads(at).await, [(session_id(1), head(0, 4)), (session_id(2), empty), (session_id(3), None)]);
    for number in 1..=2 {
        records.accept_execution(in_session(&id(number), 1), None).await.expect("accepted");
        records.end_execution(id(number), logged_in(&id(number), 1, 5)).await.expect("ended");
    }
    assert_eq!(heads(at).await[0], (session_id(1), head(2, 5)), "the sequence grows although the heap is the same");
    let opened = records.opened_session(&anyone(), session_id(1), at).await.expect("read").expect("open");
    assert_eq!(Some(opened.head()), head(2, 5));
    assert_eq!(heads(at + hours(9)).await.into_iter().map(|(_, head)| head).collect::<Vec<_>>(), [None; 3], "expired");
    records.end_session(&anyone(), session_id(1), at).await.expect("ended");
    assert_eq!(heads(at).await[0], (session_id(1), None));
}

pub async fn a_named_session_is_created_only_on_request(place: &dyn Place) {
    let records = place.open();
    let name = session("notes");
    assert_eq!(records.named_session(&anyone(), &name, false).await.expect("read"), None);
    let created = records.named_session(&anyone(), &name, true).await.expect("created").expect("an id");
    assert_eq!(records.named_session(&anyone(), &name, false).await.expect("read"), Some(created));
    for text in [created.to_string().as_str(), "notes"] {
        assert_eq!(records.name_of_session(&anyone(), text).await.expect("read").as_ref(), Some(&name), "{text}");
        assert_eq!(records.name_of_session(&ann(), text).await.expect("read"), None, "{text} is not another owner's");
    }
    assert_eq!(records.name_of_session(&anyone(), "other").await.expect("read"), None);
    let of_ann = records.named_session(&ann(), &name, true).await.expect("created").expect("an id");
    assert_ne!(of_ann, created, "each owner has a session of this name");
    assert!(!records.was_opened(&anyone(), created).await.expect("read"), "it was not opened");
    assert_eq!(records.opened_session(&anyone(), created, now()).await.expect("read"), None);
    drop(records);
    assert_eq!(place.open().named_session(&anyone(), &name, false).await.expect("read"), Some(created), "after reopening");
}

pub async fn servers_that_create_a_named_session_at_once_get_one(place: &dyn Place) {
    let created = race(place, 6, |_, records| async move {
        records.named_session(&anyone(), &session("notes"), true).await.expect("created").expect("an id")
    })
    .await;
    assert!(created.iter().all(|id| *id == created[0]));
}

pub async fn a_session_of_another_owner_does_not_exist(place: &dyn Place) {
    let records = place.open();
    let now = now();
    records.open_session(NewSession { principal: ann(), ..new_session(1) }, None).await.expect("opened");
    let of_ann = records.named_session(&ann(), &session("notes"), true).await.expect("created").expect("an id");
    let before = records.opened_session(&ann(), session_id(1), now).await.expect("read").expect("open");
    for other in [bob(), anyone()] {
        assert_eq!(records.opened_session(&other, session_id(1), now).await.expect("read"), None);
        assert!(!records.was_opened(&other, session_id(1)).await.expect("read"));
        assert!(!records.end_session(&other, session_id(1), now).await.expect("answered"));
        assert!(!records.expire_session(&other, session_id(1), now + hours(9)).await.expect("answered"));
        assert_eq!(records.opened_sessions(&other, SessionFilter::default(), now).await.expect("read"), Some((vec![], false)));
        let after = SessionFilter { after: Some(session_id(1)), ..SessionFilter::default() };
        assert_eq!(records.opened_sessions(&other, after, now).await.expect("read"), None, "as an unknown cursor");
        assert!(records.has_room_for_session(&other, Some(1)).await.expect("read"));
        for id in [session_id(1), of_ann] {
            assert!(records.is_session_of_another_owner(&other, id).await.expect("read"));
        }
    }
    assert_eq!(records.opened_session(&ann(), session_id(1), now).await.expect("read"), Some(before), "unchanged");
    for (id, expected) in [(session_id(1), true), (of_ann, true), (session_id(2), false)] {
        assert_eq!(records.is_session(id).await.expect("read"), expected);
        assert!(!records.is_session_of_another_owner(&ann(), id).await.expect("read"));
    }
}

pub async fn a_quota_holds_when_servers_open_sessions_at_once(place: &dyn Place) {
    let opened = race(place, 4, |server, records| async move {
        let mut opened = 0;
        for round in 0..5 {
            opened += u32::from(records.open_session(new_session(server * 10 + round), Some(7)).await.expect("answered"));
        }
        opened
    })
    .await;
    assert_eq!(opened.iter().sum::<u32>(), 7);
    let records = place.open();
    assert!(!records.has_room_for_session(&anyone(), Some(7)).await.expect("read"));
    assert!(records.has_room_for_session(&anyone(), Some(8)).await.expect("read"));
    assert!(records.has_room_for_session(&anyone(), None).await.expect("read"));
    assert!(records.open_session(NewSession { principal: ann(), ..new_session(99) }, Some(1)).await.expect("opened"), "per owner");
    let (sessions, _) = records.opened_sessions(&anyone(), SessionFilter::default(), now()).await.expect("read").expect("a page");
    assert_eq!(sessions.len(), 7);
}

pub async fn a_session_that_several_servers_end_ends_once(place: &dyn Place) {
    let records = place.open();
    for number in 0..10 {
        records.open_session(new_session(number), None).await.expect("opened");
        let ended = race(place, 4, move |server, records| async move {
            // Half of the servers end it, the others find it expired.
            if server % 2 == 0 {
                records.end_session(&anyone(), session_id(number), now()).await.expect("answered")
            } else {
                records.expire_session(&anyone(), session_id(number), now() + hours(9)).await.expect("answered")
            }
        })
        .await;
        assert_eq!(ended.iter().filter(|ended| **ended).count(), 1);
    }
    assert_eq!(records.totals().await.expect("read").sessions, 0, "each is counted once");
    records.refresh_session(session_id(0), now(), now() + hours(1)).await.expect("answered");
    assert_eq!(records.opened_session(&anyone(), session_id(0), now()).await.expect("read"), None, "it stays ended");
    assert_eq!(records.next_expiry().await.expect("read"), None);
}

pub async fn sessions_that_ended_long_ago_are_deleted_with_their_logs(place: &dyn Place) {
    let records = place.open();
    let at = now();
    for number in 1..=3 {
        records.open_session(new_session(number), None).await.expect("opened");
        let execution = id(number.into());
        records.accept_execution(in_session(&execution, number), None).await.expect("accepted");
        records.end_execution(execution.clone(), logged_in(&execution, number, 5)).await.expect("ended");
    }
    records.end_session(&anyone(), session_id(1), at - hours(2)).await.expect("ended");
    records.end_session(&anyone(), session_id(2), at).await.expect("ended");
    let named = records.named_session(&anyone(), &session("notes"), true).await.expect("created").expect("an id");
    while records.delete_sessions(at - hours(1)).await.expect("deleted") {}
    let log = async |number| {
        let name = session(&session_id(number).to_string());
        records.session_log(&anyone(), &name, LogRange::default()).await.expect("read").0.len()
    };
    for (number, is_there) in [(1, false), (2, true), (3, true)] {
        assert_eq!(records.is_session(session_id(number)).await.expect("read"), is_there, "{number}");
        assert_eq!(records.was_opened(&anyone(), session_id(number)).await.expect("read"), is_there, "{number}");
        assert_eq!(log(number).await, usize::from(is_there), "{number}");
    }
    assert!(records.is_session(named).await.expect("read"), "a named session does not end");
}

pub async fn opened_sessions_are_there_after_reopening(place: &dyn Place) {
    let records = place.open_as(&server(1));
    let new = NewSession { connection: Some("here".into()), head: Some(heap(1)), ..new_session(1) };
    records.open_session(new.clone(), None).await.expect("opened");
    drop(records);
    let records = place.open_as(&server(2));
    assert_eq!(records.opened_session(&anyone(), session_id(1), now()).await.expect("read"), Some(new.opened(None)));
    assert_eq!(records.opened_session_of_logical(&anyone(), Uuid::nil(), now()).await.expect("read"), None);
    assert!(!records.has_room_for_session(&anyone(), Some(1)).await.expect("read"));
}

/// A completed run in a named session of ann.
async fn run_in(records: &Arc<dyn Records>, name: &str, number: u64) -> SessionId {
    let run = NewExecution { principal: ann(), session: Some(RunSession::Named(session(name))), ..new(&id(number)) };
    records.accept_execution(run, None).await.expect("accepted");
    let mut end = logged(&id(number), number);
    end.log.as_mut().expect("an entry").session = RunSession::Named(session(name));
    records.end_execution(id(number), end).await.expect("ended");
    records.named_session(&ann(), &session(name), false).await.expect("read").expect("an id")
}

pub async fn a_named_session_is_deleted_with_its_log_and_its_name_is_free(place: &dyn Place) {
    let records = place.open();
    let (first, other) = (run_in(&records, "notes", 1).await, run_in(&records, "other", 2).await);
    assert!(!records.end_named_session(&bob(), first, None, now()).await.expect("answered"), "of another owner");
    assert!(!records.end_named_session(&ann(), first, Some(now() - hours(1)), now()).await.expect("answered"), "it was used since");
    assert!(records.end_named_session(&ann(), first, None, now()).await.expect("answered"));
    assert!(!records.end_named_session(&ann(), first, None, now()).await.expect("answered"), "once");
    for text in ["notes", &first.to_string()] {
        assert_eq!(records.name_of_session(&ann(), text).await.expect("read"), None, "{text}");
    }
    assert_ne!(run_in(&records, "notes", 3).await, first, "the name is that of a new session");
    while records.delete_ended_log(first).await.expect("deleted") {}
    assert!(!records.is_session(first).await.expect("read"));
    assert!(!records.delete_ended_log(other).await.expect("answered"));
    let log = async |name| records.session_log(&ann(), &session(name), LogRange::default()).await.expect("read").0.len();
    assert_eq!((log("notes").await, log("other").await), (1, 1), "only ended sessions are deleted");
}

pub async fn unused_named_sessions_are_found(place: &dyn Place) {
    let records = place.open();
    let (used, idle) = (run_in(&records, "used", 1).await, records.named_session(&bob(), &session("idle"), true).await.expect("created"));
    assert_eq!(records.unused_sessions(now() - hours(1)).await.expect("read"), []);
    let found = records.unused_sessions(now() + hours(1)).await.expect("read");
    let found: Vec<_> = found.into_iter().map(|found| (found.principal, found.id, found.logical)).collect();
    assert_eq!(found, [(ann(), used, None), (bob(), idle.expect("an id"), None)]);
}
