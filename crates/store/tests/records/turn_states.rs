//! States after turns whose heap is stored later.

use crate::common::{Place, ann, anyone, bob, heap, id, in_session, logged_in, new_session, now, session_id, stored};
use crate::journal::entry;
use heapstead_store::Records;
use heapstead_store::records::{
    ExecutionEnd, Head, JournalEntry, LogRange, NewExecution, NewSession, RunSession, StateHeap, Tail, TurnState,
};
use heapstead_types::{HeapKey, SessionName};
use std::sync::Arc;

fn state(number: u64) -> HeapKey {
    HeapKey::of_state(u128::from(number).to_be_bytes())
}

/// A turn in session 1 that leaves this state.
async fn turn(records: &Arc<dyn Records>, number: u64, before: Option<u64>) {
    let execution = NewExecution { principal: ann(), ..in_session(&id(number), 1) };
    records.accept_execution(execution, None).await.expect("accepted");
    let mut end = ExecutionEnd { heap: None, tags: None, state: Some(state(100 + number)), ..logged_in(&id(number), 1, 100 + number) };
    if let Some(entry) = &mut end.log {
        entry.input_heap = before.map(state);
        entry.output_heap = state(100 + number);
    }
    records.end_execution(id(number), end).await.expect("ended");
}

async fn with_turns(place: &dyn Place) -> Arc<dyn Records> {
    let records = place.open();
    records.open_session(NewSession { principal: ann(), ..new_session(1) }, None).await.expect("opened");
    for (number, before) in [(1, None), (2, Some(101)), (3, Some(102))] {
        turn(&records, number, before).await;
    }
    records
}

async fn heaps_of(records: &Arc<dyn Records>) -> Vec<StateHeap> {
    let mut heaps = Vec::new();
    for number in 1..=3 {
        heaps.push(records.turn_state_of(&ann(), &id(number)).await.expect("read").expect("a state").heap);
    }
    heaps
}

pub async fn a_turn_leaves_a_state_that_is_the_head(place: &dyn Place) {
    let records = with_turns(place).await;
    let expected = TurnState { id: state(102), execution: id(2), heap: StateHeap::Pending };
    assert_eq!(records.turn_state(&ann(), state(102)).await.expect("read"), Some(expected.clone()));
    assert_eq!(records.turn_state_of(&ann(), &id(2)).await.expect("read"), Some(expected));
    for (owner, number) in [(bob(), 102), (ann(), 105), (anyone(), 102)] {
        assert_eq!(records.turn_state(&owner, state(number)).await.expect("read"), None);
    }
    assert_eq!(records.turn_state_of(&bob(), &id(2)).await.expect("read"), None, "it is not theirs");
    let session = records.opened_session(&ann(), session_id(1), now()).await.expect("read").expect("a session");
    assert_eq!(session.head(), Head { sequence: 3, heap: Some(state(103)) });
    let execution = records.execution(&ann(), &id(3)).await.expect("read").expect("an execution");
    assert_eq!((execution.heap, execution.state_heap), (None, Some(StateHeap::Pending)));
    assert_eq!(
        records.stored_heaps(vec![heap(5), state(103)]).await.expect("read"),
        [Some(heap(5)), None],
        "other keys are those of heaps"
    );
}

pub async fn a_checkpoint_stores_the_heap_of_a_state_and_skips_earlier_ones(place: &dyn Place) {
    let records = with_turns(place).await;
    assert!(!records.add_checkpoint(&bob(), state(102), stored(heap(7), 700), now()).await.expect("answered"));
    assert!(!records.add_checkpoint(&ann(), state(109), stored(heap(7), 700), now()).await.expect("answered"));
    assert!(records.add_checkpoint(&ann(), state(102), stored(heap(8), 700), now()).await.expect("answered"));
    assert_eq!(heaps_of(&records).await, [StateHeap::Skipped, StateHeap::Stored(heap(8)), StateHeap::Pending]);
    let execution = records.execution(&ann(), &id(2)).await.expect("read").expect("an execution");
    assert_eq!((execution.heap, execution.state_heap), (Some(heap(8)), Some(StateHeap::Stored(heap(8)))));
    let execution = records.execution(&ann(), &id(1)).await.expect("read").expect("an execution");
    assert_eq!((execution.heap, execution.state_heap), (None, Some(StateHeap::Skipped)));
    assert_eq!(records.stored_heaps(vec![state(101), state(102), state(103)]).await.expect("read"), [None, Some(heap(8)), None]);
    // The log shows stored heaps, and links the turns by their states.
    let name: SessionName = session_id(1).to_string().parse().expect("a name");
    let (log, _) = records.session_log(&ann(), &name, LogRange::default()).await.expect("read");
    let shown: Vec<_> = log.iter().map(|entry| (entry.input_heap, entry.output_heap)).collect();
    assert_eq!(shown, [(None, None), (None, Some(heap(8))), (Some(heap(8)), None)]);
    assert_eq!(log.iter().map(|entry| entry.after).collect::<Vec<_>>(), [state(101), state(102), state(103)]);
    assert!(records.log_has_heap(session_id(1), heap(8)).await.expect("read"));
    // A skipped one may be stored later, which changes nothing else.
    assert!(records.add_checkpoint(&ann(), state(101), stored(heap(9), 700), now()).await.expect("answered"));
    assert_eq!(heaps_of(&records).await, [StateHeap::Stored(heap(9)), StateHeap::Stored(heap(8)), StateHeap::Pending]);
}

/// Story: they stayed pending until a later turn was checkpointed, and nothing would ever store them.
pub async fn a_turn_that_stores_its_heap_skips_those_before_it(place: &dyn Place) {
    let records = with_turns(place).await;
    let execution = NewExecution { principal: ann(), ..in_session(&id(4), 1) };
    records.accept_execution(execution, None).await.expect("accepted");
    records.end_execution(id(4), logged_in(&id(4), 1, 9)).await.expect("ended");
    assert_eq!(heaps_of(&records).await, [StateHeap::Skipped; 3]);
}

pub async fn the_newest_checkpoint_of_a_session_is_in_use(place: &dyn Place) {
    let records = with_turns(place).await;
    let later = now() + crate::common::hours(24 * 365);
    for (number_of_state, number) in [(101, 7), (102, 8)] {
        let heap_of_state = stored(heap(number), 700);
        assert!(records.add_checkpoint(&ann(), state(number_of_state), heap_of_state, now()).await.expect("answered"));
    }
    assert!(records.uses_heap(heap(8), later).await.expect("read"), "the session is resumed from it");
    assert!(!records.uses_heap(heap(7), later).await.expect("read"));
    assert!(records.end_session(&ann(), session_id(1), now()).await.expect("ended"));
    assert!(!records.uses_heap(heap(8), later).await.expect("read"));
    while records.delete_sessions(later).await.expect("deleted") {}
    assert_eq!(records.turn_state(&ann(), state(101)).await.expect("read"), None, "states go with their session");
}

/// Story: only the memory of the server knew the reason.
pub async fn the_reason_of_a_failed_checkpoint_stays_until_it_is_stored(place: &dyn Place) {
    let records = with_turns(place).await;
    records.checkpoint_failed(&bob(), state(103), "not theirs").await.expect("answered");
    records.checkpoint_failed(&ann(), state(102), "a full disk").await.expect("recorded");
    drop(records);
    let records = place.open();
    let reasons = async || {
        let mut reasons = Vec::new();
        for number in 1..=3 {
            reasons.push(records.execution(&ann(), &id(number)).await.expect("read").expect("an execution").heap_error);
        }
        reasons
    };
    let reason = Some("a full disk".to_owned());
    assert_eq!(reasons().await, [reason.clone(), reason, None], "earlier turns wait for it too");
    records.checkpoint_failed(&ann(), state(103), "a quota").await.expect("recorded");
    assert_eq!(reasons().await, vec![Some("a quota".to_owned()); 3], "the last one counts");
    assert!(records.add_checkpoint(&ann(), state(102), stored(heap(8), 700), now()).await.expect("answered"));
    assert_eq!(reasons().await, [None, None, Some("a quota".to_owned())]);
}

pub async fn the_tail_of_a_head_goes_back_to_the_newest_stored_heap(place: &dyn Place) {
    let records = place.open();
    records.open_session(NewSession { principal: ann(), ..new_session(1) }, None).await.expect("opened");
    for (number, before) in [(1, None), (2, Some(state(101))), (3, Some(state(102))), (4, Some(heap(5)))] {
        let execution = NewExecution { principal: ann(), ..in_session(&id(number), 1) };
        records.accept_execution(execution, None).await.expect("accepted");
        let journal = JournalEntry { session: Some(session_id(1)), input_heap: before, output_heap: Some(state(100 + number)), ..entry() };
        let mut end = ExecutionEnd { heap: None, tags: None, state: Some(state(100 + number)), ..logged_in(&id(number), 1, 100 + number) };
        end.journal = Some(journal);
        records.end_execution(id(number), end).await.expect("ended");
    }
    let tail = |checkpoint: Option<HeapKey>, turns| Tail { checkpoint, turns };
    let heads = vec![heap(9), state(101), state(103), state(104)];
    let expected = [tail(Some(heap(9)), 0), tail(None, 1), tail(None, 3), tail(Some(heap(5)), 1)];
    assert_eq!(records.tails(heads.clone()).await.expect("read"), expected);
    assert_eq!(records.tails(vec![heap(9)]).await.expect("read"), [tail(Some(heap(9)), 0)]);
    assert!(records.add_checkpoint(&ann(), state(102), stored(heap(8), 700), now()).await.expect("answered"));
    let expected = [tail(Some(heap(9)), 0), tail(None, 1), tail(Some(heap(8)), 1), tail(Some(heap(5)), 1)];
    assert_eq!(records.tails(heads).await.expect("read"), expected);
    assert_eq!(records.tails(vec![state(102)]).await.expect("read"), [tail(Some(heap(8)), 0)]);
    let links = async |state| {
        let links = records.links(&ann(), state).await.expect("read");
        links.into_iter().map(|link| (link.execution, link.input_heap)).collect::<Vec<_>>()
    };
    assert_eq!(links(state(101)).await, [(id(1), None)], "to a fresh heap");
    assert_eq!(links(state(103)).await, [(id(3), Some(state(102)))], "to a state that is stored");
    assert_eq!(links(state(102)).await, [(id(2), Some(state(101))), (id(1), None)], "also of one that is stored itself");
    assert_eq!(links(heap(8)).await, links(state(102)).await, "and of its heap");
    assert_eq!(links(state(104)).await, [(id(4), Some(heap(5)))], "to a heap");
    assert_eq!(records.links(&anyone(), state(103)).await.expect("read"), [], "another owner has none");
}

/// Only opened sessions have states.
pub async fn a_run_outside_of_an_opened_session_leaves_no_state(place: &dyn Place) {
    let records = place.open();
    records.accept_execution(crate::common::new(&id(1)), None).await.expect("accepted");
    let mut end = ExecutionEnd { state: Some(state(101)), ..crate::common::logged(&id(1), 5) };
    if let Some(entry) = &mut end.log {
        assert!(matches!(entry.session, RunSession::Named(_)));
        entry.output_heap = heap(5);
    }
    records.end_execution(id(1), end).await.expect("ended");
    assert_eq!(records.turn_state_of(&anyone(), &id(1)).await.expect("read"), None);
}
