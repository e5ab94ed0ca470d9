//! Heap records: references and owners.

use crate::common::{
    Place, ann, anyone, bob, end, heap, hours, id, in_session, logged, logged_in, new, new_session, now, race, session_id, tags,
};
use heapstead_store::Tags;
use heapstead_store::records::{ExecutionEnd, NewExecution, NewSession};
use heapstead_types::{Principal, Status};

pub async fn a_heap_is_in_use_while_something_refers_to_it(place: &dyn Place) {
    let records = place.open();
    let (since, later) = (now() - hours(1), now() + hours(1));
    let uses = async |number, since| records.uses_heap(heap(number), since).await.expect("read");
    assert!(!uses(1, since).await);
    records.accept_execution(NewExecution { input_heap: Some(heap(1)), ..new(&id(1)) }, None).await.expect("accepted");
    assert!(uses(1, later).await, "a running execution started from it");
    let mut end = logged(&id(1), 2);
    if let Some(entry) = &mut end.log {
        entry.input_heap = Some(heap(1));
    }
    records.end_execution(id(1), end).await.expect("ended");
    assert!(uses(1, since).await && uses(2, since).await, "a recent log entry has both");
    assert!(!uses(1, later).await && !uses(2, later).await, "the entry is older than that");
    records.own_heap(&anyone(), heap(3), 1, now()).await.expect("owned");
    assert!(uses(3, since).await && !uses(3, later).await, "a recent use");
    records.set_tags(&anyone(), heap(2), tags(&[("keep", "me")])).await.expect("set");
    assert!(uses(2, later).await, "it has tags");
    records.set_tags(&anyone(), heap(2), Tags::new()).await.expect("set");
    assert!(!uses(2, later).await, "it has none any more");
    records.open_session(NewSession { head: Some(heap(4)), ..new_session(1) }, None).await.expect("opened");
    assert!(uses(4, later).await, "it is the head of a session");
    records.end_session(&anyone(), session_id(1), now()).await.expect("ended");
    assert!(!uses(4, later).await, "the session has ended");
}

pub async fn references_of_another_owner_do_not_count(place: &dyn Place) {
    let records = place.open();
    let (since, later) = (now() - hours(1), now() + hours(1));
    let of_ann = |new| NewExecution { principal: ann(), ..new };
    // One heap for each kind of reference.
    records.set_tags(&ann(), heap(1), tags(&[("a", "1")])).await.expect("set");
    records.accept_execution(NewExecution { input_heap: Some(heap(2)), ..of_ann(new(&id(1))) }, None).await.expect("accepted");
    records.own_heap(&ann(), heap(3), 1, now()).await.expect("owned");
    records.accept_execution(of_ann(new(&id(2))), None).await.expect("accepted");
    records.end_execution(id(2), ExecutionEnd { heap: None, ..logged(&id(2), 4) }).await.expect("ended");
    records.open_session(NewSession { principal: ann(), head: Some(heap(5)), ..new_session(1) }, None).await.expect("opened");
    for (number, is_lasting) in [(1, true), (2, true), (3, false), (4, false), (5, true)] {
        assert!(records.owner_uses_heap(&ann(), heap(number), since).await.expect("read"), "{number}");
        assert_eq!(records.owner_uses_heap(&ann(), heap(number), later).await.expect("read"), is_lasting, "{number}");
        assert!(!records.owner_uses_heap(&bob(), heap(number), since).await.expect("read"), "{number}");
        assert!(records.uses_heap(heap(number), since).await.expect("read"), "{number}");
    }
}

pub async fn a_heap_may_have_several_owners(place: &dyn Place) {
    let records = place.open();
    let (ann, bob, now) = (ann(), bob(), now());
    records.own_heap(&ann, heap(1), 100, now).await.expect("owned");
    records.own_heap(&ann, heap(1), 100, now).await.expect("idempotent");
    records.own_heap(&bob, heap(1), 100, now).await.expect("owned");
    assert_eq!(records.heap_bytes(&ann).await.expect("read"), 100);
    assert!(records.others_have_heap(&ann, heap(1)).await.expect("read"));
    assert_eq!(records.owned_heaps(&ann, vec![heap(1), heap(2)], false).await.expect("read"), [heap(1)]);
    assert_eq!(records.owned_heaps(&ann, vec![heap(1), heap(2)], true).await.expect("read"), [heap(1), heap(2)]);
    assert_eq!(records.owned_heaps(&anyone(), vec![heap(1), heap(2)], true).await.expect("read"), [heap(2)], "1 is not unowned");
    records.disown_heap(&ann, heap(1)).await.expect("disowned");
    assert!(!records.others_have_heap(&bob, heap(1)).await.expect("read"));
    assert_eq!(records.heap_bytes(&bob).await.expect("read"), 100, "other owners keep it");
    assert_eq!(records.heap_bytes(&ann).await.expect("read"), 0);
    assert!(records.knows_heap(heap(1)).await.expect("read"), "the other owner has it");
    records.delete_heap(heap(1)).await.expect("deleted");
    assert!(!records.knows_heap(heap(1)).await.expect("read"));
}

pub async fn a_heap_that_several_servers_add_counts_once(place: &dyn Place) {
    race(place, 4, |_, records| async move {
        for number in 0..10 {
            records.own_heap(&ann(), heap(number), 10, now()).await.expect("owned");
        }
    })
    .await;
    assert_eq!(place.open().heap_bytes(&ann()).await.expect("read"), 100);
    race(place, 4, |_, records| async move {
        for number in 0..5 {
            records.disown_heap(&ann(), heap(number)).await.expect("disowned");
        }
    })
    .await;
    assert_eq!(place.open().heap_bytes(&ann()).await.expect("read"), 50, "and is subtracted once");
}

pub async fn the_heap_of_a_run_belongs_to_its_owner(place: &dyn Place) {
    let records = place.open();
    records.open_session(NewSession { principal: ann(), ..new_session(1) }, None).await.expect("opened");
    records.accept_execution(NewExecution { principal: ann(), ..in_session(&id(1), 1) }, None).await.expect("accepted");
    records.end_execution(id(1), logged_in(&id(1), 1, 1)).await.expect("ended");
    records.accept_execution(NewExecution { principal: bob(), ..new(&id(2)) }, None).await.expect("accepted");
    records.end_execution(id(2), end(Status::Failed)).await.expect("ended");
    drop(records);
    let records = place.open();
    let owned = async |owner: Principal| records.owned_heaps(&owner, vec![heap(1)], false).await.expect("read");
    assert_eq!((owned(ann()).await, owned(bob()).await), (vec![heap(1)], vec![]));
    assert!(records.knows_heap(heap(1)).await.expect("read"));
    assert_eq!((records.heap_bytes(&ann()).await.expect("read"), records.heap_bytes(&bob()).await.expect("read")), (700, 0));
}
