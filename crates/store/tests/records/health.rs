//! Health checks and counters.

use crate::common::{Place, anyone, id, new};

pub async fn a_check_succeeds_and_leaves_no_records(place: &dyn Place) {
    let records = place.open();
    records.check().await.expect("healthy");
    records.check().await.expect("healthy again");
    assert!(records.owners().await.expect("read").is_empty());
}

pub async fn reads_and_writes_are_counted_since_the_store_was_opened(place: &dyn Place) {
    let records = place.open();
    let before = records.counts();
    records.accept_execution(new(&id(1)), None).await.expect("accepted");
    let written = records.counts();
    assert_eq!((written.reads, written.writes), (before.reads, before.writes + 1));
    records.execution(&anyone(), &id(1)).await.expect("read");
    let read = records.counts();
    assert_eq!((read.reads, read.writes), (written.reads + 1, written.writes));
    assert_eq!(place.open().counts(), before, "each server counts its own");
}
