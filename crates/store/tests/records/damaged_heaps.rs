//! Records of damaged heaps.

use crate::common::{Place, heap, hours, now, race};

pub async fn damaged_heaps_are_listed_until_they_are_removed(place: &dyn Place) {
    let records = place.open();
    let at = now();
    for (number, age) in [(1, 1), (2, 3), (3, 2)] {
        records.add_damaged_heap(heap(number), at - hours(age)).await.expect("added");
    }
    assert_eq!(records.damaged_heaps(9).await.expect("read"), [heap(2), heap(3), heap(1)], "oldest finding first");
    assert_eq!(records.damaged_heaps(2).await.expect("read"), [heap(2), heap(3)]);
    records.add_damaged_heap(heap(2), at).await.expect("added");
    assert_eq!(records.damaged_heaps(1).await.expect("read"), [heap(2)], "the first finding counts");
    records.remove_damaged_heaps(vec![heap(2), heap(1), heap(99)]).await.expect("removed");
    drop(records);
    assert_eq!(place.open().damaged_heaps(9).await.expect("read"), [heap(3)], "after reopening");
}

pub async fn a_heap_that_several_servers_find_damaged_is_listed_once(place: &dyn Place) {
    race(place, 4, |_, records| async move { records.add_damaged_heap(heap(1), now()).await.expect("added") }).await;
    assert_eq!(place.open().damaged_heaps(9).await.expect("read"), [heap(1)]);
}
