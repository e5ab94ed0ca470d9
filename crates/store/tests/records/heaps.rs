//! Heap records: references, owners, and collection.

use crate::common::{
    Place, ann, anyone, bob, end, heap, hours, id, in_session, logged, logged_in, new, new_session, now, race, reservation, session_id,
    stored, tags,
};
use heapstead_store::Tags;
use heapstead_store::records::{
    CollectedHeap, DeletedHeap, ExecutionEnd, FoundHeap, HeapRange, HeapUse, NewExecution, NewHeap, NewHeapEngine, NewReservation,
    NewSession, RecordedEngine, Records, Released, Removal, Reserved, ReservedHeap, UnusedHeap,
};
use heapstead_types::{EngineId, HeapKey, Principal, Status};

fn engine(number: u8) -> EngineId {
    format!("v8-14.{number}/x86_64/flags-0000001a/natives-3-0000005e").parse().expect("an engine id")
}

async fn has(records: &dyn Records, owner: &Principal, key: HeapKey) -> bool {
    matches!(records.find_heap(owner, key).await.expect("read"), FoundHeap::Owned(_))
}

async fn keys(records: &dyn Records, owner: &Principal, after: Option<HeapKey>, limit: u32) -> (Vec<HeapKey>, bool) {
    let (heaps, more) = records.heaps(owner, HeapRange { after, limit: Some(limit) }).await.expect("read");
    (heaps.into_iter().map(|heap| heap.key).collect(), more)
}

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
    records.own_heap(&anyone(), stored(heap(3), 1), now()).await.expect("owned");
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

/// Two owners have the same six heaps. Each kind of reference of one keeps a heap for it, and for nobody else.
pub async fn references_of_another_owner_do_not_count(place: &dyn Place) {
    let records = place.open();
    let (since, later) = (now() - hours(1), now() + hours(1));
    let of_ann = |new| NewExecution { principal: ann(), ..new };
    for owner in [ann(), bob()] {
        for number in 1..=6 {
            records.own_heap(&owner, stored(heap(number), 1), now() - hours(2)).await.expect("owned");
        }
    }
    records.set_tags(&ann(), heap(1), tags(&[("a", "1")])).await.expect("set");
    records.accept_execution(NewExecution { input_heap: Some(heap(2)), ..of_ann(new(&id(1))) }, None).await.expect("accepted");
    records.own_heap(&ann(), stored(heap(3), 1), now()).await.expect("used");
    records.accept_execution(of_ann(new(&id(2))), None).await.expect("accepted");
    records.end_execution(id(2), ExecutionEnd { heap: None, ..logged(&id(2), 4) }).await.expect("ended");
    records.open_session(NewSession { principal: ann(), head: Some(heap(5)), ..new_session(1) }, None).await.expect("opened");
    records.reserve_heap(reservation(ann(), 6, 1), None).await.expect("reserved");
    let unused = async |owner: Principal, since| {
        let found = records.unused_heaps(&owner, since, HeapRange::default()).await.expect("read");
        found.into_iter().map(|unused| unused.key).collect::<Vec<_>>()
    };
    assert_eq!(unused(ann(), since).await, []);
    assert_eq!(unused(ann(), later).await, [heap(3), heap(4)], "a use and a log entry pass");
    assert_eq!(unused(bob(), since).await, [1, 2, 3, 4, 5, 6].map(heap), "nothing of this owner refers to them");
    for number in 1..=6 {
        assert_eq!(records.collect_heap(&ann(), heap(number), since).await.expect("collected"), CollectedHeap::Kept, "{number}");
        assert_eq!(records.collect_heap(&bob(), heap(number), since).await.expect("collected"), CollectedHeap::Disowned, "{number}");
        assert_eq!(
            records.collect_heap(&bob(), heap(number), since).await.expect("collected"),
            CollectedHeap::Kept,
            "not its heap any more"
        );
    }
    assert_eq!((records.count_heaps(&ann()).await.expect("read"), records.count_heaps(&bob()).await.expect("read")), (6, 0));
}

pub async fn the_last_owner_of_a_heap_removes_it(place: &dyn Place) {
    let records = place.open();
    let later = now() + hours(1);
    for owner in [ann(), bob()] {
        records.own_heap(&owner, stored(heap(1), 100), now()).await.expect("owned");
    }
    let unused = records.unused_heaps(&ann(), later, HeapRange { after: None, limit: Some(1) }).await.expect("read");
    assert_eq!(unused, [UnusedHeap { key: heap(1), bytes: 100 }]);
    assert_eq!(records.collect_heap(&ann(), heap(1), later).await.expect("collected"), CollectedHeap::Disowned);
    assert_eq!(records.unused_heaps(&ann(), later, HeapRange::default()).await.expect("read"), []);
    assert_eq!(records.used_bytes(&bob()).await.expect("read"), 100, "the other owner keeps it");
    let CollectedHeap::Removing(removal) = records.collect_heap(&bob(), heap(1), later).await.expect("collected") else {
        panic!("it has to be removed");
    };
    assert_eq!((removal.key, records.used_bytes(&bob()).await.expect("read")), (heap(1), 0));
    assert_eq!(records.find_heap(&anyone(), heap(1)).await.expect("read"), FoundHeap::OfOthers, "until it is removed nobody sees it");
    records.end_removal(&removal).await.expect("ended");
    assert_eq!(records.find_heap(&anyone(), heap(1)).await.expect("read"), FoundHeap::Unowned);
}

pub async fn a_heap_may_have_several_owners(place: &dyn Place) {
    let records = place.open();
    let (ann, bob, now) = (ann(), bob(), now());
    records.own_heap(&ann, stored(heap(1), 100), now).await.expect("owned");
    records.own_heap(&ann, stored(heap(1), 100), now).await.expect("idempotent");
    records.own_heap(&bob, stored(heap(1), 100), now).await.expect("owned");
    assert_eq!(records.used_bytes(&ann).await.expect("read"), 100);
    assert!(has(&*records, &ann, heap(1)).await && has(&*records, &bob, heap(1)).await);
    assert_eq!(records.find_heap(&anyone(), heap(1)).await.expect("read"), FoundHeap::OfOthers);
    assert_eq!(records.find_heap(&anyone(), heap(2)).await.expect("read"), FoundHeap::Unowned);
    assert_eq!(records.unowned_heaps(vec![heap(1), heap(2)]).await.expect("read"), [heap(2)]);
    records.collect_heap(&ann, heap(1), now + hours(1)).await.expect("collected");
    assert!(!has(&*records, &ann, heap(1)).await && has(&*records, &bob, heap(1)).await);
    assert_eq!((records.used_bytes(&ann).await.expect("read"), records.used_bytes(&bob).await.expect("read")), (0, 100));
}

/// Story: the engine and the time of a heap were read from its file, so that they told whether another owner had the same heap.
pub async fn each_owner_has_its_own_metadata_of_a_heap(place: &dyn Place) {
    let records = place.open();
    let (earlier, later) = (now() - hours(2), now() - hours(1));
    let own = async |owner: Principal, engine, at| {
        records.own_heap(&owner, NewHeap { engine, ..stored(heap(1), 100) }, at).await.expect("owned");
        match records.find_heap(&owner, heap(1)).await.expect("read") {
            FoundHeap::Owned(found) => (found.engine, found.stored_at),
            other => panic!("{other:?}"),
        }
    };
    let known = |number: Option<u8>| RecordedEngine::Known(number.map(engine));
    assert_eq!(own(ann(), NewHeapEngine::Produced(engine(1)), earlier).await, (known(Some(1)), earlier));
    assert_eq!(own(bob(), NewHeapEngine::Named(None), later).await, (known(None), later), "nothing of the other owner's");
    assert_eq!(own(ann(), NewHeapEngine::Named(Some(engine(2))), later).await, (known(Some(1)), later), "an import does not replace it");
    assert_eq!(own(bob(), NewHeapEngine::Named(Some(engine(2))), later).await.0, known(Some(2)), "an import may complete it");
    assert_eq!(own(bob(), NewHeapEngine::Produced(engine(1)), later).await.0, known(Some(1)), "a run knows");
}

pub async fn heaps_are_listed_in_pages_by_owner(place: &dyn Place) {
    let records = place.open();
    for number in 1..=5 {
        records.own_heap(&ann(), stored(heap(number), number), now()).await.expect("owned");
        records.own_heap(&bob(), stored(heap(number + 2), 1), now()).await.expect("owned");
    }
    assert_eq!(keys(&*records, &ann(), None, 3).await, ([1, 2, 3].map(heap).to_vec(), true));
    assert_eq!(keys(&*records, &ann(), Some(heap(3)), 3).await, ([4, 5].map(heap).to_vec(), false));
    assert_eq!(keys(&*records, &ann(), Some(heap(2)), 3).await, ([3, 4, 5].map(heap).to_vec(), false), "exactly the rest");
    assert_eq!(records.heaps(&anyone(), HeapRange::default()).await.expect("read"), (vec![], false));
    assert_eq!(records.heaps(&ann(), HeapRange::default()).await.expect("read").0.iter().map(|heap| heap.bytes).sum::<u64>(), 15);
}

pub async fn a_heap_that_several_servers_add_counts_once(place: &dyn Place) {
    race(place, 4, |_, records| async move {
        for number in 0..10 {
            records.own_heap(&ann(), stored(heap(number), 10), now()).await.expect("owned");
        }
    })
    .await;
    assert_eq!(place.open().used_bytes(&ann()).await.expect("read"), 100);
    let collected = race(place, 4, |_, records| async move {
        let mut removing = 0;
        for number in 0..5 {
            let collected = records.collect_heap(&ann(), heap(number), now() + hours(1)).await.expect("collected");
            removing += usize::from(matches!(collected, CollectedHeap::Removing(_)));
        }
        removing
    })
    .await;
    assert_eq!(collected.iter().sum::<usize>(), 5, "one server removes each");
    assert_eq!(place.open().used_bytes(&ann()).await.expect("read"), 50, "and is subtracted once");
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
    assert!(has(&*records, &ann(), heap(1)).await && !has(&*records, &bob(), heap(1)).await);
    assert_eq!((records.used_bytes(&ann()).await.expect("read"), records.used_bytes(&bob()).await.expect("read")), (700, 0));
}

/// Both owners have the same heaps. What one refers to, it can't delete; the other one can.
pub async fn an_owner_deletes_a_heap_unless_something_of_its_own_refers_to_it(place: &dyn Place) {
    let records = place.open();
    let delete = async |owner: Principal, number| records.delete_heap(&owner, heap(number)).await.expect("answered");
    for owner in [ann(), bob()] {
        for number in 1..=5 {
            records.own_heap(&owner, stored(heap(number), 100), now()).await.expect("owned");
            records.set_tags(&owner, heap(number), tags(&[("a", "1")])).await.expect("set");
        }
    }
    let of_ann = |new| NewExecution { principal: ann(), ..new };
    records.accept_execution(NewExecution { input_heap: Some(heap(1)), ..of_ann(new(&id(1))) }, None).await.expect("accepted");
    records.open_session(NewSession { principal: ann(), head: Some(heap(2)), ..new_session(1) }, None).await.expect("opened");
    let storing = reservation(ann(), 3, 100);
    records.reserve_heap(storing.clone(), None).await.expect("reserved");
    records.accept_execution(of_ann(new(&id(2))), None).await.expect("accepted");
    records.end_execution(id(2), ExecutionEnd { heap: None, ..logged(&id(2), 4) }).await.expect("ended");
    for (number, used_by) in [(1, HeapUse::Execution(id(1))), (2, HeapUse::Head(session_id(1))), (3, HeapUse::Storing)] {
        assert_eq!(delete(ann(), number).await, DeletedHeap::InUse(used_by), "{number}");
        assert_eq!(delete(bob(), number).await, DeletedHeap::Disowned, "{number}: nothing of this owner refers to it");
        assert_eq!(delete(bob(), number).await, DeletedHeap::Unknown, "{number}");
    }
    assert_eq!((delete(ann(), 4).await, delete(ann(), 5).await), (DeletedHeap::Disowned, DeletedHeap::Disowned), "a log entry and tags");
    assert_eq!(records.tags(&ann(), heap(5)).await.expect("read"), Tags::new());
    assert_eq!(records.tags(&bob(), heap(5)).await.expect("read").len(), 1, "the other owner's stay");
    assert_eq!(records.used_bytes(&ann()).await.expect("read"), 300);
    records.end_execution(id(1), end(Status::Completed)).await.expect("ended");
    records.end_session(&ann(), session_id(1), now()).await.expect("ended");
    records.release_reservation(&storing.id, None).await.expect("released");
    for number in 1..=3 {
        assert!(matches!(delete(ann(), number).await, DeletedHeap::Undecided(_)), "{number}");
    }
    assert_eq!(delete(anyone(), 5).await, DeletedHeap::Unknown, "it is another owner's");
}

/// The file of a heap that this database stored first goes at once. One that was there before may be another database's: it goes when it is
/// old. If that is not known, it counts until it is decided.
pub async fn the_file_of_a_deleted_heap_goes_unless_another_database_may_have_it(place: &dyn Place) {
    let records = place.open();
    let store = async |owner: Principal, is_new| {
        let new = NewReservation { heap: Some(ReservedHeap { key: heap(1), is_new }), ..reservation(owner.clone(), 1, 100) };
        assert_eq!(records.reserve_heap(new.clone(), None).await.expect("reserved"), Reserved::Done);
        let heap = NewHeap { reservation: Some(new.id), ..stored(heap(1), 100) };
        records.own_heap(&owner, heap, now()).await.expect("recorded");
    };
    let removal = |deleted| match deleted {
        DeletedHeap::Removing(removal) => removal,
        other => panic!("{other:?}"),
    };
    let delete = async |owner: Principal| records.delete_heap(&owner, heap(1)).await.expect("deleted");
    store(ann(), Some(true)).await;
    store(bob(), Some(false)).await;
    assert_eq!(delete(ann()).await, DeletedHeap::Disowned);
    let first = removal(delete(bob()).await);
    assert_eq!((first.only_old, &first.server), (false, &None), "it was ours, and no server removes it yet");
    store(ann(), Some(false)).await;
    assert_eq!(records.removals().await.expect("read"), [], "storing it again ends the removal");
    let again = removal(delete(ann()).await);
    assert!(!again.only_old, "the file is still ours");
    let Removal { server, .. } = records.take_over_removal(&again).await.expect("taken over").expect("a removal");
    assert!(server.is_some());
    for removal in records.removals().await.expect("read") {
        records.end_removal(&removal).await.expect("ended");
    }
    store(ann(), Some(false)).await;
    let foreign = removal(delete(ann()).await);
    assert!(foreign.only_old, "it was there before");
    store(ann(), Some(false)).await;
    let again = removal(delete(ann()).await);
    assert!(again.only_old, "it is still not ours");
    records.end_removal(&again).await.expect("ended");
    store(ann(), None).await;
    let DeletedHeap::Undecided(undecided) = delete(ann()).await else { panic!("it is not known") };
    assert_eq!(records.used_bytes(&ann()).await.expect("read"), 100, "it counts as long as its file may stay");
    assert!(!has(&*records, &ann(), heap(1)).await);
    assert_eq!(records.find_heap(&anyone(), heap(1)).await.expect("read"), FoundHeap::OfOthers, "nobody sees it");
    assert!(matches!(records.release_reservation(&undecided.id, Some(true)).await.expect("released"), Released::Removing(_)));
    assert_eq!(records.used_bytes(&ann()).await.expect("read"), 0);
}
