//! Tags.

use crate::common::{Place, ann, anyone, bob, heap, hours, now, race, stored, tags};
use heapstead_store::Tags;
use heapstead_store::records::TagQuery;

pub async fn tags_are_replaced_removed_and_found_by_all_their_pairs(place: &dyn Place) {
    let records = place.open();
    records.set_tags(&anyone(), heap(1), tags(&[("a", "1"), ("b", "2")])).await.expect("set");
    records.set_tags(&anyone(), heap(2), tags(&[("a", "1"), ("b", "3")])).await.expect("set");
    records.set_tags(&anyone(), heap(3), tags(&[("c", "1")])).await.expect("set");
    let find = async |pairs: &[(&str, &str)]| {
        let (found, _) = records.heaps_by_tags(&anyone(), TagQuery { pairs: tags(pairs), ..Default::default() }).await.expect("read");
        found.into_iter().map(|tagged| tagged.heap).collect::<Vec<_>>()
    };
    assert_eq!(find(&[("a", "1")]).await, [heap(1), heap(2)]);
    assert_eq!(find(&[("a", "1"), ("b", "3")]).await, [heap(2)]);
    assert_eq!(find(&[("a", "2")]).await, []);
    assert_eq!(find(&[]).await, [heap(1), heap(2), heap(3)]);
    records.set_tags(&anyone(), heap(1), tags(&[("z", "9")])).await.expect("set");
    assert_eq!(records.tags(&anyone(), heap(1)).await.expect("read"), tags(&[("z", "9")]), "set replaces all");
    records.remove_tags(&anyone(), heap(2), vec!["a".into(), "never".into()]).await.expect("removed");
    assert_eq!(records.tags(&anyone(), heap(2)).await.expect("read"), tags(&[("b", "3")]));
    records.set_tags(&anyone(), heap(2), Tags::new()).await.expect("cleared");
    assert_eq!(find(&[]).await, [heap(1), heap(3)], "a heap without tags is never found");
    let page =
        async |after| records.heaps_by_tags(&anyone(), TagQuery { after, limit: Some(1), ..Default::default() }).await.expect("read");
    let (first, more) = page(None).await;
    assert_eq!((first[0].heap, more), (heap(1), true));
    let (last, more) = page(Some(heap(1))).await;
    assert_eq!((last[0].heap, more), (heap(3), false));
}

pub async fn tags_of_another_owner_do_not_exist(place: &dyn Place) {
    let records = place.open();
    records.set_tags(&ann(), heap(1), tags(&[("a", "1")])).await.expect("set");
    assert_eq!(records.tags(&bob(), heap(1)).await.expect("read"), Tags::new());
    let query = || TagQuery { pairs: tags(&[("a", "1")]), ..Default::default() };
    assert_eq!(records.heaps_by_tags(&bob(), query()).await.expect("read"), (vec![], false));
    records.remove_tags(&bob(), heap(1), vec!["a".into()]).await.expect("answered");
    records.set_tags(&bob(), heap(1), tags(&[("a", "2")])).await.expect("set");
    records.set_tags(&bob(), heap(1), Tags::new()).await.expect("set");
    drop(records);
    assert_eq!(place.open().tags(&ann(), heap(1)).await.expect("read"), tags(&[("a", "1")]), "another owner changes nothing");
}

pub async fn tags_that_are_replaced_at_once_are_never_mixed(place: &dyn Place) {
    race(place, 4, |server, records| async move {
        for round in 0..10 {
            let value = format!("{server}.{round}");
            records.set_tags(&anyone(), heap(1), tags(&[("a", &value), ("b", &value)])).await.expect("set");
            let found = records.tags(&anyone(), heap(1)).await.expect("read");
            assert!(found.len() == 2 && found["a"] == found["b"], "{found:?}");
        }
    })
    .await;
}

pub async fn tags_on_heaps_that_their_owner_does_not_have_are_found_and_deleted(place: &dyn Place) {
    let records = place.open();
    records.own_heap(&ann(), stored(heap(1), 1), now()).await.expect("owned");
    for (owner, number) in [(ann(), 1), (ann(), 2), (bob(), 1)] {
        records.set_tags(&owner, heap(number), tags(&[("a", "1"), ("b", "2")])).await.expect("set");
    }
    assert_eq!(records.stray_tags(now() - hours(1)).await.expect("read"), [], "they were set a moment ago");
    let (soon, mut found) = (now() + hours(1), records.stray_tags(now() + hours(1)).await.expect("read"));
    found.sort();
    assert_eq!(found, [(ann(), heap(2)), (bob(), heap(1))]);
    records.own_heap(&ann(), stored(heap(2), 1), now()).await.expect("owned meanwhile");
    records.delete_stray_tags(found, soon).await.expect("deleted");
    for (owner, number, left) in [(ann(), 1, 2), (ann(), 2, 2), (bob(), 1, 0)] {
        assert_eq!(records.tags(&owner, heap(number)).await.expect("read").len(), left, "{owner} {number}");
    }
}
