//! Owners: who has records, and sums over all of them.

use crate::common::{Place, anyone, heap, hours, id, new, new_session, now, race, reservation, session, session_id, stored, tags};
use heapstead_store::Tags;
use heapstead_store::records::{NewExecution, NewSession, RecordsError, Reserved, Totals, Usage};
use heapstead_types::Principal;
use std::sync::Arc;

fn owner(name: &str) -> Principal {
    name.parse().expect("an owner")
}

pub async fn every_owner_of_a_record_is_listed_once_and_in_order(place: &dyn Place) {
    let records = place.open();
    assert!(records.owners().await.expect("read").is_empty());
    let [with_tag, with_heap, with_execution, with_session] = ["acme/a", "acme/b", "acme/c", "acme/d"].map(owner);
    records.open_session(NewSession { principal: with_session.clone(), ..new_session(1) }, None).await.expect("opened");
    records.accept_execution(NewExecution { principal: with_execution.clone(), ..new(&id(1)) }, None).await.expect("accepted");
    records.own_heap(&with_heap, stored(heap(1), 1), now()).await.expect("owned");
    records.set_tags(&with_tag, heap(1), tags(&[("a", "1")])).await.expect("set");
    assert_eq!(records.owners().await.expect("read"), [with_tag.clone(), with_heap.clone(), with_execution.clone(), with_session.clone()]);
    // A record of every kind does not list an owner twice.
    records.own_heap(&with_tag, stored(heap(2), 1), now()).await.expect("owned");
    records.named_session(&with_tag, &session("notes"), true).await.expect("created");
    records.accept_execution(NewExecution { principal: with_tag.clone(), ..new(&id(2)) }, None).await.expect("accepted");
    records.named_session(&anyone(), &session("notes"), true).await.expect("created");
    let all = [anyone(), with_tag, with_heap.clone(), with_execution, with_session];
    assert_eq!(records.owners().await.expect("read"), all, "the anonymous owner is first");
    records.collect_heap(&with_heap, heap(1), now() + hours(1)).await.expect("collected");
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
        records.own_heap(owner, stored(heap(number), bytes), now()).await.expect("owned");
    }
    assert_eq!(records.totals().await.expect("read"), Totals { sessions: 3, heap_bytes: 220 }, "a shared heap counts for each owner");
    records.end_session(&ann, session_id(1), now()).await.expect("ended");
    records.end_session(&ann, session_id(1), now()).await.expect("answered");
    for (owner, number) in [(&bob, 1), (&bob, 1), (&ann, 2)] {
        records.collect_heap(owner, heap(number), now() + hours(1)).await.expect("idempotent");
    }
    drop(records);
    assert_eq!(place.open().totals().await.expect("read"), Totals { sessions: 2, heap_bytes: 100 }, "after reopening");
}

pub async fn totals_hold_when_servers_write_at_once(place: &dyn Place) {
    race(place, 4, |server, records| async move {
        let owner = owner(if server % 2 == 0 { "acme/ann" } else { "acme/bob" });
        for number in 0..10 {
            // Each owner gets the same ten heaps from two servers.
            records.own_heap(&owner, stored(heap(number), 10), now()).await.expect("owned");
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
    race(place, 4, |server, records| async move {
        let owner = owner(if server % 2 == 0 { "acme/ann" } else { "acme/bob" });
        for number in 0..5 {
            records.collect_heap(&owner, heap(number), now() + hours(1)).await.expect("collected");
        }
    })
    .await;
    assert_eq!(records.totals().await.expect("read").heap_bytes, 100);
}

pub async fn an_owner_over_its_quota_stores_no_more_until_it_deletes(place: &dyn Place) {
    let records = place.open();
    let (ann, bob) = (owner("acme/ann"), owner("acme/bob"));
    records.limit_storage(Some(3_000));
    assert_eq!(records.usage(&ann).await.expect("read"), Usage::default());
    records.own_heap(&ann, stored(heap(1), 2_000), now()).await.expect("owned");
    let run = |number, owner: &Principal| NewExecution { principal: owner.clone(), ..new(&id(number)) };
    records.accept_execution(run(1, &ann), None).await.expect("accepted");
    records.set_tags(&ann, heap(1), tags(&[("a", "1")])).await.expect("set");
    assert_eq!(records.usage(&ann).await.expect("read"), Usage { heap_bytes: 2_000, other_bytes: 512 + 514, elsewhere_bytes: 0 });
    let over = |stored: Result<(), RecordsError>| match stored {
        Err(RecordsError::OverQuota { used_bytes: 3_026, bytes_max: 3_000 }) => {}
        other => panic!("{other:?}"),
    };
    over(records.accept_execution(run(2, &ann), None).await.map(drop));
    over(records.set_tags(&ann, heap(2), tags(&[("a", "1")])).await);
    over(records.open_session(NewSession { principal: ann.clone(), ..new_session(1) }, None).await.map(drop));
    over(records.named_session(&ann, &session("new"), true).await.map(drop));
    records.accept_execution(run(3, &bob), None).await.expect("of another owner");
    records.set_tags(&ann, heap(1), Tags::new()).await.expect("deleting is possible");
    records.accept_execution(run(2, &ann), None).await.expect("there is room again");
}

pub async fn what_another_store_has_counts_too(place: &dyn Place) {
    let records = place.open();
    let (ann, bob) = (owner("acme/ann"), owner("acme/bob"));
    records.limit_storage(Some(3_000));
    let elsewhere = ann.clone();
    records.count_elsewhere(Arc::new(move |owner| Box::pin(std::future::ready(if owner == elsewhere { 2_900 } else { 0 }))));
    let used = Usage { elsewhere_bytes: 2_900, ..Usage::default() };
    assert_eq!((records.usage(&ann).await.expect("read"), used.here_bytes(), used.bytes()), (used, 0, 2_900));
    records.set_tags(&ann, heap(1), tags(&[("a", "1")])).await.expect("there was room");
    match records.set_tags(&ann, heap(2), tags(&[("a", "1")])).await {
        Err(RecordsError::OverQuota { used_bytes: 3_414, bytes_max: 3_000 }) => {}
        other => panic!("{other:?}"),
    }
    let reserve = async |owner: &Principal, bytes| {
        let new = reservation(owner.clone(), bytes, bytes);
        (new.id.clone(), records.reserve_heap(new, None).await.expect("answered"))
    };
    assert_eq!(reserve(&ann, 1).await.1, Reserved::StorageQuotaExceeded);
    let (id, reserved) = reserve(&bob, 2_000).await;
    assert_eq!(reserved, Reserved::Done, "another owner");
    assert_eq!(records.grow_reservation(&ann, &id, 2_001, None).await.expect("answered"), Reserved::StorageQuotaExceeded);
    assert_eq!(records.grow_reservation(&bob, &id, 2_001, None).await.expect("answered"), Reserved::Done);
}

pub async fn owners_without_anything_are_forgotten(place: &dyn Place) {
    let records = place.open();
    records.set_tags(&owner("acme/ann"), heap(1), tags(&[("a", "1")])).await.expect("set");
    records.set_tags(&owner("acme/ann"), heap(1), Tags::new()).await.expect("deleted");
    records.own_heap(&owner("acme/bob"), stored(heap(1), 7), now()).await.expect("owned");
    records.delete_unused_owners().await.expect("deleted");
    assert_eq!(records.usage(&owner("acme/ann")).await.expect("read"), Usage::default());
    assert_eq!(records.usage(&owner("acme/bob")).await.expect("read").bytes(), 7);
}
