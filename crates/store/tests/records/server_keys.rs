//! Keys that all servers on one database share, by purpose.

use crate::common::{Place, now, race};
use heapstead_store::records::KeyPurpose::{Heaps, SessionState};

pub async fn server_keys_are_listed_newest_last_and_never_lost(place: &dyn Place) {
    let records = place.open();
    assert!(records.server_keys(Heaps).await.expect("read").is_empty());
    records.server_keys_or(Heaps, vec![1; 32], now()).await.expect("a key");
    records.add_server_key(Heaps, vec![2; 32], now()).await.expect("added");
    let keys = records.server_keys_or(Heaps, vec![9; 32], now()).await.expect("keys");
    assert_eq!(keys.iter().map(|key| key.key[0]).collect::<Vec<_>>(), [1, 2], "a first key is added only if there is none");
    assert!(keys[0].id < keys[1].id);
    drop(records);
    assert!(place.open().server_keys(Heaps).await.expect("read") == keys, "after reopening");
}

pub async fn keys_of_different_purposes_are_separate(place: &dyn Place) {
    let records = place.open();
    let heaps = records.server_keys_or(Heaps, vec![1; 32], now()).await.expect("a key");
    assert!(records.server_keys(SessionState).await.expect("read").is_empty());
    records.add_server_key(SessionState, vec![2; 32], now()).await.expect("added");
    assert!(records.server_keys(Heaps).await.expect("read") == heaps);
}

pub async fn servers_that_start_at_once_have_the_same_first_key(place: &dyn Place) {
    for purpose in [Heaps, SessionState] {
        let first = |number: u8| vec![number; 32];
        let keys =
            race(place, 6, |number, records| async move { records.server_keys_or(purpose, first(number), now()).await.expect("a key") })
                .await;
        assert!(keys.iter().all(|found| found.len() == 1 && *found == keys[0]), "{purpose:?}");
    }
}
