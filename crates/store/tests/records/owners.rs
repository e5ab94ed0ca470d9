//! Owners: who has records, and sums over all of them.

use crate::common::{Place, anyone, heap, id, new, new_session, now, race, session, session_id, tags};
use heapstead_store::records::{NewExecution, NewSession, Totals};
use heapstead_types::Principal;

fn owner(name: &str) -> Principal {
    name.parse().expect("an owner")
}

pub async fn every_owner_of_a_record_is_listed_once_and_in_order(place: &dyn Place) {
    let records = place.open();
    assert!(records.owners().await.expect("read").is_empty());
    let [with_tag, with_heap, with_execution, with_session] = ["acme/a", "acme/b", "acme/c", "acme/d"].map(owner);
    records.open_session(NewSession { principal: with_session.clone(), ..new_session(1) }, None).await.expect("opened");
    records.accept_execution(NewExecution { principal: with_execution.clone(), ..new(&id(1)) }, None).await.expect("accepted");
    records.own_heap(&with_heap, heap(1), 1, now()).await.expect("owned");
    records.set_tags(&with_tag, heap(1), tags(&[("a", "1")])).await.expect("set");
    assert_eq!(records.owners().await.expect("read"), [with_tag.clone(), with_heap.clone(), with_execution.clone(), with_session.clone()]);
    // A record of every kind does not list an owner twice.
    records.own_heap(&with_tag, heap(2), 1, now()).await.expect("owned");
    records.named_session(&with_tag, &session("notes"), true).await.expect("created");
    records.accept_execution(NewExecution { principal: with_tag.clone(), ..new(&id(2)) }, None).await.expect("accepted");
    records.named_session(&anyone(), &session("notes"), true).await.expect("created");
    let all = [anyone(), with_tag, with_heap.clone(), with_execution, with_session];
    assert_eq!(records.owners().await.expect("read"), all, "the anonymous owner is first");
    records.disown_heap(&with_heap, heap(1)).await.expect("disowned");
    drop(records);
    let rest: Vec<_> = all.into_iter().filter(|owner| *owner != with_heap).collect();
    assert_eq!(place.open().owners().await.expect("read"), rest, "an owner without records is not listed");
}

pub async fn totals_are_sums_over_all_owners(place: &dyn Place) {
    let records = place.open();
    assert_eq!(records.totals().await.expect("read"), Totals::default());
    let (ann, bob) = (owner("acme/ann"), owner("acme/bob"));
    for (number, owner) in [(1, &ann), (2, &ann), (3, &bob)] {
        records.open_session(NewSession { principal: owner.clone(), ..new_session(number) }, None).await.expect("opened");
    }
    records.named_session(&ann, &session("notes"), true).await.expect("created");
    for (owner, number, bytes) in [(&ann, 1, 100), (&ann, 1, 100), (&ann, 2, 20), (&bob, 1, 100)] {
        records.own_heap(owner, heap(number), bytes, now()).await.expect("owned");
    }
    assert_eq!(records.totals().await.expect("read"), Totals { sessions: 3, heap_bytes: 220 }, "a shared heap counts for each owner");
    records.end_session(&ann, session_id(1), now()).await.expect("ended");
    records.end_session(&ann, session_id(1), now()).await.expect("answered");
    records.disown_heap(&bob, heap(1)).await.expect("disowned");
    records.disown_heap(&bob, heap(1)).await.expect("idempotent");
    records.delete_heap(heap(2)).await.expect("deleted");
    drop(records);
    assert_eq!(place.open().totals().await.expect("read"), Totals { sessions: 2, heap_bytes: 100 }, "after reopening");
}

pub async fn totals_hold_when_servers_write_at_once(place: &dyn Place) {
    race(place, 4, |server, records| async move {
        let owner = owner(if server % 2 == 0 { "acme/ann" } else { "acme/bob" });
        for number in 0..10 {
            // Each owner gets the same ten heaps from two servers.
            records.own_heap(&owner, heap(number), 10, now()).await.expect("owned");
            let opened = NewSession { principal: owner.clone(), ..new_session(server * 10 + number as u8) };
            assert!(records.open_session(opened, None).await.expect("opened"));
        }
        for number in (0..10).step_by(2) {
            records.end_session(&owner, session_id(server * 10 + number), now()).await.expect("ended");
        }
    })
    .await;
    let records = place.open();
    assert_eq!(records.totals().await.expect("read"), Totals { sessions: 20, heap_bytes: 200 });
    race(place, 4, |_, records| async move {
        for number in 0..5 {
            records.delete_heap(heap(number)).await.expect("deleted");
        }
    })
    .await;
    assert_eq!(records.totals().await.expect("read").heap_bytes, 100);
}
