//! Reservations and removals: the quota is never exceeded, and every heap file is named by a record, a reservation or a removal.

use crate::common::{Place, ann, anyone, bob, heap, hours, id, logged, new, now, race, reservation, server, stored};
use heapstead_store::records::{
    CollectedHeap, FoundHeap, NewHeap, NewReservation, Records, Released, Removal, ReservationId, Reserved, ReservedHeap,
};
use heapstead_types::Principal;

async fn used(records: &dyn Records, owner: &Principal) -> u64 {
    records.used_bytes(owner).await.expect("read")
}

async fn reserve(records: &dyn Records, new: &NewReservation, max: Option<u64>) -> Reserved {
    records.reserve_heap(new.clone(), max).await.expect("answered")
}

/// Reserves a heap and records it.
fn recorded(new: &NewReservation) -> NewHeap {
    let key = new.heap.expect("a heap").key;
    NewHeap { reservation: Some(new.id.clone()), ..stored(key, new.bytes) }
}

fn removing(released: Released) -> Removal {
    match released {
        Released::Removing(removal) => removal,
        other => panic!("{other:?}"),
    }
}

pub async fn a_reservation_counts_until_a_record_takes_its_place(place: &dyn Place) {
    let records = place.open();
    let first = reservation(ann(), 1, 60);
    assert_eq!(reserve(&*records, &first, Some(100)).await, Reserved::Done);
    assert_eq!(reserve(&*records, &reservation(ann(), 2, 41), Some(100)).await, Reserved::QuotaExceeded);
    assert_eq!(reserve(&*records, &reservation(bob(), 2, 41), Some(100)).await, Reserved::Done, "another owner's quota");
    assert_eq!(used(&*records, &ann()).await, 60);
    records.own_heap(&ann(), recorded(&first), now()).await.expect("recorded");
    assert_eq!((used(&*records, &ann()).await, records.reservations().await.expect("read").len()), (60, 1));
    assert!(records.own_heap(&ann(), recorded(&first), now()).await.is_err(), "its reservation is gone");
    assert_eq!(reserve(&*records, &reservation(ann(), 1, 60), Some(60)).await, Reserved::Done, "a heap that the owner has takes no room");
    assert_eq!(used(&*records, &ann()).await, 60);
}

pub async fn the_end_of_a_run_records_its_reserved_heap_or_nothing(place: &dyn Place) {
    let records = place.open();
    let first = reservation(anyone(), 1, 700);
    reserve(&*records, &first, None).await;
    records.accept_execution(new(&id(1)), None).await.expect("accepted");
    let mut end = logged(&id(1), 1);
    end.heap = Some(recorded(&first));
    records.end_execution(id(1), end.clone()).await.expect("ended");
    assert_eq!((used(&*records, &anyone()).await, records.reservations().await.expect("read").len()), (700, 0));
    records.accept_execution(new(&id(2)), None).await.expect("accepted");
    assert!(records.end_execution(id(2), end).await.is_err(), "its reservation is gone, so the file may be");
    assert_eq!(records.running_executions().await.expect("read").len(), 1, "nothing was changed");
}

pub async fn a_quota_holds_when_servers_reserve_at_once(place: &dyn Place) {
    let done = race(place, 4, |number, records| async move {
        let mut done = 0;
        for round in 0..10 {
            let new = reservation(ann(), u64::from(number) * 100 + round, 30);
            done += u64::from(reserve(&*records, &new, Some(299)).await == Reserved::Done);
        }
        done
    })
    .await;
    assert_eq!((done.iter().sum::<u64>(), used(&*place.open(), &ann()).await), (9, 270));
}

pub async fn a_reservation_grows_and_gets_its_heap(place: &dyn Place) {
    let records = place.open();
    let unnamed = NewReservation { heap: None, ..reservation(ann(), 0, 10) };
    reserve(&*records, &unnamed, Some(100)).await;
    let grow = async |bytes| records.grow_reservation(&ann(), &unnamed.id, bytes, Some(100)).await.expect("answered");
    assert_eq!((grow(100).await, grow(101).await), (Reserved::Done, Reserved::QuotaExceeded));
    assert_eq!(used(&*records, &ann()).await, 100);
    let named = ReservedHeap { key: heap(1), is_new: Some(true) };
    assert_eq!(records.name_reservation(&unnamed.id, named, 70).await.expect("answered"), Reserved::Done);
    assert_eq!(used(&*records, &ann()).await, 70, "the rest of the room is free again");
    let gone = ReservationId::new();
    assert_eq!(records.grow_reservation(&ann(), &gone, 1, None).await.expect("answered"), Reserved::Gone);
    assert_eq!(records.name_reservation(&gone, named, 1).await.expect("answered"), Reserved::Gone);
    let removal = removing(records.release_reservation(&unnamed.id, None).await.expect("released"));
    assert_eq!((removal.key, used(&*records, &ann()).await), (heap(1), 0));
}

/// A released reservation removes the file only if nothing else names the heap and the file was not there before.
pub async fn the_last_name_of_a_heap_removes_its_file(place: &dyn Place) {
    let records = place.open();
    let release = async |new: &NewReservation| records.release_reservation(&new.id, None).await.expect("released");
    let (first, second) = (reservation(ann(), 1, 10), reservation(bob(), 1, 10));
    let second = NewReservation { heap: second.heap.map(|heap| ReservedHeap { is_new: Some(false), ..heap }), ..second };
    reserve(&*records, &first, None).await;
    reserve(&*records, &second, None).await;
    assert_eq!(records.find_heap(&anyone(), heap(1)).await.expect("read"), FoundHeap::OfOthers, "a reserved heap is nobody else's");
    assert_eq!(release(&first).await, Released::Done, "another reservation names it");
    let removal = removing(release(&second).await);
    records.end_removal(&removal).await.expect("ended");
    assert_eq!(release(&second).await, Released::Done, "idempotent");

    let found = NewReservation { heap: Some(ReservedHeap { key: heap(2), is_new: Some(false) }), ..reservation(ann(), 2, 10) };
    reserve(&*records, &found, None).await;
    assert_eq!(release(&found).await, Released::Done, "the file was there before");

    let unknown = NewReservation { heap: Some(ReservedHeap { key: heap(3), is_new: None }), ..reservation(ann(), 3, 10) };
    for (is_new, expected) in [(false, false), (true, true)] {
        let unknown = NewReservation { id: ReservationId::new(), ..unknown.clone() };
        reserve(&*records, &unknown, None).await;
        let Released::Undecided(undecided) = release(&unknown).await else { panic!("it is not known") };
        assert_eq!((undecided.server, used(&*records, &ann()).await), (None, 10), "it counts until it is decided");
        let decided = records.release_reservation(&unknown.id, Some(is_new)).await.expect("released");
        assert_eq!((matches!(decided, Released::Removing(_)), used(&*records, &ann()).await), (expected, 0));
    }
}

/// Story: the lock between storing and collecting a heap was one of the process, so another server removed a heap before it was recorded.
pub async fn a_heap_is_stored_or_removed_and_never_both(place: &dyn Place) {
    let (one, two) = (place.open_as(&server(1)), place.open_as(&server(2)));
    let later = now() + hours(1);
    one.own_heap(&ann(), stored(heap(1), 10), now()).await.expect("owned");
    let storing = reservation(ann(), 1, 10);
    reserve(&*one, &storing, None).await;
    assert_eq!(two.collect_heap(&ann(), heap(1), later).await.expect("collected"), CollectedHeap::Kept, "it is being stored");
    assert_eq!(two.remove_unowned_heap(heap(1)).await.expect("answered"), None);
    one.own_heap(&ann(), recorded(&storing), now()).await.expect("recorded");

    let CollectedHeap::Removing(removal) = two.collect_heap(&ann(), heap(1), later).await.expect("collected") else { panic!("unused") };
    assert_eq!((removal.server.clone(), two.removals().await.expect("read")), (Some(server(2)), vec![removal.clone()]));
    let again = reservation(bob(), 1, 10);
    assert_eq!(reserve(&*one, &again, None).await, Reserved::BeingRemoved(removal.clone()), "it is being removed");
    assert_eq!(used(&*one, &bob()).await, 0);
    let unnamed = NewReservation { heap: None, ..reservation(bob(), 0, 10) };
    reserve(&*one, &unnamed, None).await;
    let named = one.name_reservation(&unnamed.id, ReservedHeap { key: heap(1), is_new: Some(false) }, 10).await.expect("answered");
    assert_eq!(named, Reserved::BeingRemoved(removal.clone()));
    two.end_removal(&removal).await.expect("ended");
    assert_eq!(reserve(&*one, &again, None).await, Reserved::Done);
}

/// A removal that failed, or whose server died, is taken over once, unless its heap is stored again before.
pub async fn an_interrupted_removal_is_taken_over_once(place: &dyn Place) {
    let (one, two) = (place.open_as(&server(1)), place.open_as(&server(2)));
    let removal = one.remove_unowned_heap(heap(1)).await.expect("answered").expect("not named");
    let taken = two.take_over_removal(&removal).await.expect("answered").expect("taken over");
    assert_eq!((taken.key, taken.server.clone()), (heap(1), Some(server(2))));
    assert_eq!(one.take_over_removal(&removal).await.expect("answered"), None, "that attempt is over");
    one.give_up_removal(&removal).await.expect("answered");
    assert_eq!(one.removals().await.expect("read"), vec![taken.clone()], "giving up an earlier attempt changes nothing");
    two.give_up_removal(&taken).await.expect("given up");
    let storing = NewReservation { heap: Some(ReservedHeap { key: heap(1), is_new: Some(false) }), ..reservation(ann(), 1, 10) };
    assert_eq!(reserve(&*one, &storing, None).await, Reserved::Done, "nobody is removing it");
    assert_eq!(two.take_over_removal(&taken).await.expect("answered"), None);
    let released = one.release_reservation(&storing.id, None).await.expect("released");
    assert!(matches!(released, Released::Removing(_)), "its file is still to be removed");
}

pub async fn reservations_name_their_server(place: &dyn Place) {
    place.open_as(&server(7)).reserve_heap(reservation(ann(), 1, 10), None).await.expect("reserved");
    let found = place.open_as(&server(8)).reservations().await.expect("read");
    assert_eq!(found.iter().map(|found| (found.server.clone(), found.key)).collect::<Vec<_>>(), [(Some(server(7)), Some(heap(1)))]);
}
