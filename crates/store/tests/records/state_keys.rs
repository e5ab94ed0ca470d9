//! Keys of the session state that clients carry.

use crate::common::{Place, now, race};

pub async fn state_keys_are_listed_newest_last_and_never_lost(place: &dyn Place) {
    let records = place.open();
    assert!(records.state_keys().await.expect("read").is_empty());
    records.state_keys_or(vec![1; 32], now()).await.expect("a key");
    records.add_state_key(vec![2; 32], now()).await.expect("added");
    let keys = records.state_keys_or(vec![9; 32], now()).await.expect("keys");
    assert_eq!(keys.iter().map(|key| key.key[0]).collect::<Vec<_>>(), [1, 2], "a first key is added only if there is none");
    assert!(keys[0].id < keys[1].id);
    drop(records);
    assert!(place.open().state_keys().await.expect("read") == keys, "after reopening");
}

pub async fn servers_that_start_at_once_have_the_same_first_key(place: &dyn Place) {
    let keys = race(place, 6, |number, records| async move { records.state_keys_or(vec![number; 32], now()).await.expect("a key") }).await;
    assert!(keys.iter().all(|found| found.len() == 1 && *found == keys[0]));
}
