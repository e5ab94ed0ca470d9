//! Turns: the order of work in a session, across servers.

use crate::common::{Place, anyone, end, heap, id, in_session, logged_in, new_session, race, server, session_id};
use heapstead_store::records::{Accepted, EndedExecution, Head, NewTurn, Turn, TurnId};
use heapstead_types::Status;
use jiff::Timestamp;
use std::collections::BTreeMap;

pub async fn runs_of_a_session_take_turns_in_order_of_acceptance(place: &dyn Place) {
    let (one, two) = (place.open_as(&server(1)), place.open_as(&server(2)));
    one.open_session(new_session(7), None).await.expect("opened");
    assert_eq!(one.accept_execution(in_session(&id(1), 7), None).await.expect("accepted"), Accepted::InSession { head: Some(None) });
    assert_eq!(two.accept_execution(in_session(&id(2), 7), None).await.expect("accepted"), Accepted::InSession { head: None });
    let turn = |number| TurnId::of_execution(&id(number));
    let ahead = two.turn(session_id(7), &turn(2)).await.expect("read").expect("open");
    assert_eq!(ahead, Turn { head: None, ahead: Some((turn(1), server(1))) });
    let ended = one.end_execution(id(1), logged_in(&id(1), 7, 5)).await.expect("ended");
    assert_eq!(ended, EndedExecution::Ended { head: Some(Head { sequence: 1, heap: Some(heap(5)) }) }, "the head moves with the end");
    let first = two.turn(session_id(7), &turn(2)).await.expect("read").expect("open");
    assert_eq!(first, Turn { head: Some(heap(5)), ahead: None });
    two.end_execution(id(2), end(Status::Failed)).await.expect("ended");
    let accepted = one.accept_execution(in_session(&id(3), 7), None).await.expect("accepted");
    assert_eq!(accepted, Accepted::InSession { head: Some(Some(heap(5))) }, "a failed run leaves the head and gives up its turn");
}

pub async fn a_preparation_takes_a_turn_without_an_execution(place: &dyn Place) {
    let (one, two) = (place.open_as(&server(1)), place.open_as(&server(2)));
    one.open_session(new_session(7), None).await.expect("opened");
    let turn = TurnId::new();
    assert!(one.take_turn(NewTurn { id: turn.clone(), session: session_id(7) }).await.expect("taken"));
    assert_eq!(two.turns_without_execution().await.expect("read"), [(turn.clone(), server(1))]);
    assert!(one.running_executions().await.expect("read").is_empty(), "it is not an execution");
    assert_eq!(two.accept_execution(in_session(&id(1), 7), Some(1)).await.expect("accepted"), Accepted::InSession { head: None });
    let ahead = two.turn(session_id(7), &TurnId::of_execution(&id(1))).await.expect("read").expect("open").ahead;
    assert_eq!(ahead, Some((turn.clone(), server(1))));
    two.release_turn(&turn).await.expect("released by the server that found it orphaned");
    two.release_turn(&turn).await.expect("idempotent");
    assert_eq!(two.turn(session_id(7), &TurnId::of_execution(&id(1))).await.expect("read").expect("open").ahead, None);
}

pub async fn an_ended_session_refuses_turns(place: &dyn Place) {
    let records = place.open();
    records.open_session(new_session(7), None).await.expect("opened");
    assert!(records.end_session(&anyone(), session_id(7), Timestamp::now()).await.expect("ended"));
    assert!(!records.take_turn(NewTurn { id: TurnId::new(), session: session_id(7) }).await.expect("answered"));
    assert_eq!(records.accept_execution(in_session(&id(1), 7), None).await.expect("answered"), Accepted::SessionEnded);
    assert_eq!(records.turn(session_id(7), &TurnId::of_execution(&id(1))).await.expect("read"), None);
}

pub async fn concurrent_turns_have_one_order(place: &dyn Place) {
    place.open().open_session(new_session(7), None).await.expect("opened");
    place.open().open_session(new_session(8), None).await.expect("opened");
    // Runs and preparations, and in another session too.
    let taken = race(place, 6, |number, records| async move {
        let mut turns = Vec::new();
        for round in 0..5 {
            let execution = id(u64::from(number) * 100 + round);
            records.accept_execution(in_session(&execution, 7), None).await.expect("accepted");
            let turn = TurnId::new();
            assert!(records.take_turn(NewTurn { id: turn.clone(), session: session_id(7) }).await.expect("taken"));
            assert!(records.take_turn(NewTurn { id: TurnId::new(), session: session_id(8) }).await.expect("taken"));
            turns.extend([TurnId::of_execution(&execution), turn]);
        }
        turns
    })
    .await;
    let records = place.open();
    let mut ahead_of = BTreeMap::new();
    for (number, turns) in taken.iter().enumerate() {
        for turn in turns {
            let ahead = records.turn(session_id(7), turn).await.expect("read").expect("open").ahead;
            ahead_of.insert(turn.to_string(), ahead.map(|(turn, _)| turn.to_string()));
        }
        for pair in turns.windows(2) {
            assert!(ahead_of[pair[1].as_str()].is_some(), "server {number} took a turn before it");
        }
    }
    // Every turn but one is directly behind exactly one other, from the last to the first.
    let behind: BTreeMap<_, _> = ahead_of.iter().filter_map(|(turn, ahead)| ahead.as_ref().map(|ahead| (ahead, turn))).collect();
    assert_eq!((ahead_of.len(), behind.len()), (60, 59));
    let mut at = ahead_of.iter().find(|(_, ahead)| ahead.is_none()).expect("a first turn").0;
    let mut length = 1;
    while let Some(next) = behind.get(at) {
        (at, length) = (next, length + 1);
    }
    assert_eq!(length, 60);
}

pub async fn turns_are_there_after_reopening(place: &dyn Place) {
    let (one, two) = (place.open_as(&server(1)), place.open_as(&server(2)));
    one.open_session(new_session(7), None).await.expect("opened");
    let (first, second) = (TurnId::new(), TurnId::new());
    assert!(one.take_turn(NewTurn { id: first.clone(), session: session_id(7) }).await.expect("taken"));
    assert!(two.take_turn(NewTurn { id: second.clone(), session: session_id(7) }).await.expect("taken"));
    drop((one, two));
    let records = place.open_as(&server(3));
    let turn = records.turn(session_id(7), &second).await.expect("read").expect("open");
    assert_eq!(turn.ahead, Some((first.clone(), server(1))), "a server that died keeps its turn until it is released");
    let mut turns: Vec<_> = records.turns_without_execution().await.expect("read").into_iter().map(|(turn, _)| turn).collect();
    turns.sort_by_key(ToString::to_string);
    let mut taken = [first, second];
    taken.sort_by_key(ToString::to_string);
    assert_eq!(turns, taken);
}

pub async fn a_turn_for_a_session_that_does_not_exist_is_refused(place: &dyn Place) {
    let records = place.open();
    assert!(!records.take_turn(NewTurn { id: TurnId::new(), session: session_id(1) }).await.expect("answered"));
    assert!(records.turns_without_execution().await.expect("read").is_empty());
    assert_eq!(records.turn(session_id(1), &TurnId::new()).await.expect("read"), None);
    assert_eq!(records.accept_execution(in_session(&id(1), 1), None).await.expect("answered"), Accepted::SessionEnded);
    assert!(records.running_executions().await.expect("read").is_empty(), "nothing was written");
}
