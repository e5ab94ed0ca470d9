//! Opened and named sessions, and the keys for their state.

use crate::common::{Place, anyone, heap, id, in_session, logged_in, new_session, session, session_id};
use heapstead_store::records::{Head, NewSession, SessionFilter};
use heapstead_types::Principal;
use jiff::{SignedDuration, Timestamp};

pub async fn a_session_is_found_by_its_owner_until_it_ends(place: &dyn Place) {
    let records = place.open();
    let other: Principal = "acme/ann".parse().expect("an owner");
    assert!(records.open_session(new_session(1), Some(1)).await.expect("opened"));
    assert!(!records.open_session(new_session(2), Some(1)).await.expect("answered"), "the owner has one already");
    let now = Timestamp::now();
    let opened = records.opened_session(&anyone(), session_id(1), now).await.expect("read").expect("open");
    assert_eq!((opened.head(), opened.logical), (Head { sequence: 0, heap: None }, None));
    assert_eq!(records.opened_session(&other, session_id(1), now).await.expect("read"), None, "another owner's does not exist");
    assert!(records.is_session_of_another_owner(&other, session_id(1)).await.expect("read"));
    assert!(records.end_session(&anyone(), session_id(1), now).await.expect("ended"));
    assert!(!records.end_session(&anyone(), session_id(1), now).await.expect("answered"), "it ends once");
    assert_eq!(records.opened_session(&anyone(), session_id(1), now).await.expect("read"), None);
    assert!(records.was_opened(&anyone(), session_id(1)).await.expect("read"));
    assert!(records.has_room_for_session(&anyone(), Some(1)).await.expect("read"));
}

pub async fn a_session_expires_unless_it_is_used(place: &dyn Place) {
    let records = place.open();
    // As precise as records are.
    let now = Timestamp::from_microsecond(Timestamp::now().as_microsecond()).expect("a time");
    let soon = now + SignedDuration::from_secs(10);
    let new = NewSession { expires_at: Some(soon), ..new_session(1) };
    records.open_session(new, None).await.expect("opened");
    assert_eq!(records.next_expiry().await.expect("read"), Some(soon));
    let later = now + SignedDuration::from_secs(11);
    assert_eq!(records.opened_session(&anyone(), session_id(1), later).await.expect("read"), None, "expired, if not ended yet");
    assert_eq!(records.expired_sessions(later).await.expect("read"), [(anyone(), session_id(1))]);
    records.refresh_session(session_id(1), now, now + SignedDuration::from_hours(1)).await.expect("refreshed");
    assert!(!records.expire_session(&anyone(), session_id(1), later).await.expect("answered"), "it was used meanwhile");
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
    records.open_session(new_session(1), None).await.expect("opened");
    records.accept_execution(in_session(&id(1), 1), None).await.expect("accepted");
    records.end_execution(id(1), logged_in(&id(1), 1, 5)).await.expect("ended");
    let heads = records.heads(vec![session_id(1), session_id(2)], Timestamp::now()).await.expect("read");
    assert_eq!(heads, [(session_id(1), Some(Head { sequence: 1, heap: Some(heap(5)) })), (session_id(2), None)]);
    assert!(records.log_has_heap(session_id(1), heap(5)).await.expect("read"));
    assert!(!records.log_has_heap(session_id(1), heap(6)).await.expect("read"));
}

pub async fn a_named_session_is_created_on_request_only(place: &dyn Place) {
    let records = place.open();
    let name = session("notes");
    assert_eq!(records.named_session(&anyone(), &name, false).await.expect("read"), None);
    let created = records.named_session(&anyone(), &name, true).await.expect("created").expect("an id");
    assert_eq!(records.named_session(&anyone(), &name, false).await.expect("read"), Some(created));
    assert_eq!(records.name_of_session(&anyone(), &created.to_string()).await.expect("read"), Some(name));
}

pub async fn state_keys_are_shared_and_never_lost(place: &dyn Place) {
    let (one, two) = (place.open(), place.open());
    let now = Timestamp::now();
    let first = one.state_keys_or(vec![1; 32], now).await.expect("a key");
    let same = two.state_keys_or(vec![2; 32], now).await.expect("a key");
    assert!(first == same && first.len() == 1, "both have the first");
    two.add_state_key(vec![3; 32], now).await.expect("added");
    let keys = one.state_keys().await.expect("read");
    assert!(keys.len() == 2 && keys[0].id < keys[1].id && keys[1].key == vec![3; 32]);
}
