//! Tags.

use crate::common::{Place, anyone, heap, tags};
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
