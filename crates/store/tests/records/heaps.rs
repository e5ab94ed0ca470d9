//! Heap records: references and owners.

use crate::common::{Place, anyone, heap, id, logged, new, tags};
use heapstead_store::records::NewExecution;
use jiff::{SignedDuration, Timestamp};

pub async fn heaps_are_in_use_for_a_reason(place: &dyn Place) {
    let records = place.open();
    let (since, later) = (Timestamp::now() - SignedDuration::from_hours(1), Timestamp::now() + SignedDuration::from_hours(1));
    assert!(!records.uses_heap(heap(1), since).await.expect("read"));
    records.accept_execution(NewExecution { input_heap: Some(heap(1)), ..new(&id(1)) }, None).await.expect("begun");
    assert!(records.uses_heap(heap(1), later).await.expect("read"), "a running execution began from it");
    records.end_execution(id(1), logged(&id(1), 2)).await.expect("ended");
    assert!(records.uses_heap(heap(2), since).await.expect("read"), "it was made a moment ago");
    assert!(!records.uses_heap(heap(2), later).await.expect("read"), "its time is over");
    records.set_tags(&anyone(), heap(2), tags(&[("keep", "me")])).await.expect("set");
    assert!(records.uses_heap(heap(2), later).await.expect("read"), "it has tags");
}

pub async fn owners_have_heaps_of_their_own_and_share_bytes(place: &dyn Place) {
    let records = place.open();
    let (ann, bob) = ("acme/ann".parse().expect("an owner"), "acme/bob".parse().expect("an owner"));
    let now = Timestamp::now();
    records.own_heap(&ann, heap(1), 100, now).await.expect("owned");
    records.own_heap(&ann, heap(1), 100, now).await.expect("idempotent");
    records.own_heap(&bob, heap(1), 100, now).await.expect("owned");
    assert_eq!(records.heap_bytes(&ann).await.expect("read"), 100);
    assert!(records.others_have_heap(&ann, heap(1)).await.expect("read"));
    assert_eq!(records.owned_heaps(&ann, vec![heap(1), heap(2)], false).await.expect("read"), [heap(1)]);
    assert_eq!(records.owned_heaps(&ann, vec![heap(1), heap(2)], true).await.expect("read"), [heap(1), heap(2)]);
    records.disown_heap(&ann, heap(1)).await.expect("disowned");
    assert_eq!(records.heap_bytes(&ann).await.expect("read"), 0);
    assert!(records.knows_heap(heap(1)).await.expect("read"), "the other owner has it");
    records.delete_heap(heap(1)).await.expect("deleted");
    assert!(!records.knows_heap(heap(1)).await.expect("read"));
}

pub async fn damaged_heaps_are_remembered_until_they_are_removed(place: &dyn Place) {
    let records = place.open();
    for number in 0..3 {
        records.add_damaged_heap(heap(number), Timestamp::now()).await.expect("added");
    }
    records.add_damaged_heap(heap(0), Timestamp::now()).await.expect("idempotent");
    assert_eq!(place.open().damaged_heaps(2).await.expect("read").len(), 2);
    records.remove_damaged_heaps(vec![heap(0), heap(1)]).await.expect("removed");
    assert_eq!(records.damaged_heaps(9).await.expect("read"), [heap(2)]);
}
