//! Turns: the order of work in a session, across servers.

use crate::common::{Place, end, heap, id, in_session, logged_in, new_session, server, session_id};
use heapstead_store::records::{Accepted, EndedExecution, Head, NewTurn, Turn, TurnId};
use heapstead_types::Status;
use jiff::Timestamp;

pub async fn runs_of_a_session_have_turns_in_order_of_acceptance(place: &dyn Place) {
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

pub async fn a_preparation_has_a_turn_without_an_execution(place: &dyn Place) {
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

pub async fn an_ended_session_has_no_turns(place: &dyn Place) {
    let records = place.open();
    records.open_session(new_session(7), None).await.expect("opened");
    assert!(records.end_session(&crate::common::anyone(), session_id(7), Timestamp::now()).await.expect("ended"));
    assert!(!records.take_turn(NewTurn { id: TurnId::new(), session: session_id(7) }).await.expect("answered"));
    assert_eq!(records.accept_execution(in_session(&id(1), 7), None).await.expect("answered"), Accepted::SessionEnded);
    assert_eq!(records.turn(session_id(7), &TurnId::of_execution(&id(1))).await.expect("read"), None);
}
