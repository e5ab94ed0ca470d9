//! The contract of every context store: one function per promise.

use crate::place::{Place, TTL, access, change, new_session, record};
use heapstead_context::store::CONTEXT_BYTES;
use heapstead_context::{Document, Error, Refused, SCHEMA_VERSION, StoreError, Unreadable};
use serde_json::json;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

pub async fn nothing_is_there_until_something_is_stored(place: &Place) {
    let (store, session) = (place.open(), new_session());
    assert_eq!(store.read(access(&session)).await.expect("read"), None);
    assert!(!store.remove(access(&session)).await.expect("removed"));
    let fresh = place.contexts().get(access(&session)).await.expect("a fresh record");
    assert_eq!((fresh.session_id, fresh.schema_version, fresh.calls_total()), (session, SCHEMA_VERSION, 0));
    assert_eq!(store.read(access(&session)).await.expect("read"), None, "looking stores nothing");
}

pub async fn stored_bytes_are_returned_unchanged(place: &Place) {
    let session = new_session();
    let document = record(session, "\u{0} é \u{1f600}");
    assert!(place.open().replace(access(&session), None, &document).await.expect("stored"));
    for store in [place.open(), place.open()] {
        let found = store.read(access(&session)).await.expect("read").expect("there");
        assert_eq!(found.bytes(), document.bytes());
        assert_eq!(found.record(), document.record());
    }
    let raw = place.open_bare().read(access(&session)).await.expect("read").expect("there");
    assert_eq!(raw.bytes() == document.bytes(), !place.is_encrypted(), "the record itself where it is not encrypted");
}

pub async fn a_document_is_replaced_only_if_unchanged_since_the_read(place: &Place) {
    let (store, other, session) = (place.open(), place.open(), new_session());
    let [first, second, third] = ["1", "2", "3"].map(|note| record(session, note));
    assert!(!store.replace(access(&session), Some(&first), &second).await.expect("asked"), "there is nothing");
    assert!(store.replace(access(&session), None, &first).await.expect("asked"));
    assert!(!store.replace(access(&session), None, &second).await.expect("asked"), "there is something");
    let read = store.read(access(&session)).await.expect("read").expect("there");
    let read_too = other.read(access(&session)).await.expect("read").expect("there");
    assert!(store.replace(access(&session), Some(&read), &second).await.expect("asked"));
    assert!(!other.replace(access(&session), Some(&read_too), &third).await.expect("asked"), "it is another by now");
    let found = other.read(access(&session)).await.expect("read").expect("there");
    assert_eq!(found, second);
}

pub async fn a_removed_context_is_gone_and_can_be_created_again(place: &Place) {
    let (store, session) = (place.open(), new_session());
    store.replace(access(&session), None, &record(session, "1")).await.expect("stored");
    let read = store.read(access(&session)).await.expect("read").expect("there");
    assert!(store.remove(access(&session)).await.expect("removed"));
    assert_eq!(place.open().read(access(&session)).await.expect("read"), None);
    assert!(!store.replace(access(&session), Some(&read), &record(session, "2")).await.expect("asked"), "what was read is gone");
    assert!(store.replace(access(&session), None, &record(session, "3")).await.expect("asked"));
}

pub async fn sessions_do_not_see_each_other(place: &Place) {
    let (contexts, one, other) = (place.contexts(), new_session(), new_session());
    set(place, &one, "mine").await;
    assert_eq!(contexts.find(access(&other)).await.expect("asked"), None);
    set(place, &other, "other").await;
    contexts.clear(access(&other)).await.expect("cleared");
    assert_eq!(contexts.get(access(&one)).await.expect("there").custom["note"], "mine");
}

pub async fn reads_and_writes_refresh_the_ttl_and_idle_contexts_expire(place: &Place) {
    let (store, session) = (place.open(), new_session());
    set(place, &session, "kept").await;
    // Each use comes late in the TTL, and together they span far more than one TTL.
    for _ in 0..4 {
        place.pass(&session, TTL - 2 * MINUTE);
        assert!(store.read(access(&session)).await.expect("read").is_some(), "a read refreshes the TTL");
        // If the time of a read is written later, this waits for it.
        store.check().await.expect("well");
        place.pass(&session, TTL - 2 * MINUTE);
        set(place, &session, "kept").await;
    }
    place.pass(&session, TTL + 2 * MINUTE);
    assert_eq!(place.open().read(access(&session)).await.expect("read"), None, "it has expired");
    assert!(
        store.replace(access(&session), None, &record(session, "new")).await.expect("stored"),
        "an expired record does not block a new one"
    );
    place.pass(&session, TTL + 2 * MINUTE);
    store.sweep().await.expect("swept");
    assert!(!store.remove(access(&session)).await.expect("removed"), "the sweep has removed it");
}

pub async fn unreadable_documents_are_quarantined_and_counted(place: &Place) {
    let contexts = place.contexts();
    for damaged in [&b"{\"schema_version\":1"[..], b"null", b"\xff\xfe", b"{\"schema_version\":1,\"session_id\":\"x\"}"] {
        let session = new_session();
        place.plant(&session, damaged).await;
        let before = contexts.counts().quarantined;
        assert_eq!(contexts.find(access(&session)).await.expect("not fatal"), None);
        assert_eq!(contexts.counts().quarantined, before + 1);
        let aside = place.aside(&session);
        assert!(
            !aside.is_empty() && (place.is_encrypted() || aside.iter().any(|bytes| bytes == damaged)),
            "it can be looked at: {aside:?}"
        );
        set(place, &session, "goes on").await;
        assert_eq!(contexts.get(access(&session)).await.expect("there").custom["note"], "goes on");
    }
}

pub async fn a_document_changed_meanwhile_is_not_quarantined(place: &Place) {
    let (store, session) = (place.open(), new_session());
    place.plant(&session, b"damaged").await;
    let damaged = store.read(access(&session)).await.expect("read").expect("there");
    let whole = record(session, "whole");
    assert!(store.replace(access(&session), Some(&damaged), &whole).await.expect("stored"));
    assert!(!store.quarantine(access(&session), &damaged, "late").await.expect("asked"));
    assert_eq!(store.read(access(&session)).await.expect("read"), Some(whole));
}

pub async fn a_record_under_another_id_is_not_given_out(place: &Place) {
    let (session, other) = (new_session(), new_session());
    place.plant(&session, record(other, "not yours").bytes()).await;
    let contexts = place.contexts();
    assert_eq!(contexts.find(access(&session)).await.expect("not fatal"), None);
    assert_eq!(contexts.counts().quarantined, 1);
}

pub async fn an_older_schema_is_migrated_and_stored_as_new(place: &Place) {
    let session = new_session();
    let old = json!({ "session_id": session, "created_at": "2026-01-01T00:00:00Z", "custom": { "note": "old" } });
    place.plant(&session, old.to_string().as_bytes()).await;
    let contexts = place.contexts();
    assert_eq!(contexts.get(access(&session)).await.expect("there").custom["note"], "old");
    contexts.update(access(&session), |_| Ok(())).await.expect("updated");
    let stored = place.open().read(access(&session)).await.expect("read").expect("there");
    let stored: serde_json::Value = serde_json::from_slice(stored.bytes()).expect("json");
    assert_eq!((&stored["schema_version"], &stored["custom"]["note"]), (&json!(1), &json!("old")));
}

pub async fn a_newer_schema_is_left_untouched(place: &Place) {
    let session = new_session();
    let newer = json!({ "schema_version": 2, "session_id": session, "shape": "unknown" }).to_string();
    place.plant(&session, newer.as_bytes()).await;
    let contexts = place.contexts();
    let is_newer = |error: Error| matches!(error, Error::Unreadable(Unreadable::Newer { found: 2, known: 1 }));
    assert!(is_newer(contexts.get(access(&session)).await.expect_err("newer")));
    assert!(is_newer(contexts.update(access(&session), |_| Ok(())).await.expect_err("newer")));
    assert!(is_newer(contexts.clear(access(&session)).await.expect_err("newer")));
    assert_eq!((contexts.counts().newer, contexts.counts().cleared), (3, 0));
    let stored = place.open().read(access(&session)).await.expect("read").expect("there");
    assert_eq!(stored, Document::from_bytes(newer.into_bytes()));
    assert!(place.aside(&session).is_empty());
}

pub async fn no_concurrent_update_is_lost(place: &Place) {
    let session = new_session();
    // Two independent users of the store, like two processes.
    let users = [place.contexts(), place.contexts()];
    let updates = (0..64).map(|index| {
        let contexts = users[index % 2].clone();
        tokio::spawn(async move {
            let key = format!("writer-{index}");
            change(&contexts, &session, |record| drop(record.custom.insert(key.clone(), json!(index)))).await.expect("updated");
        })
    });
    for update in updates.collect::<Vec<_>>() {
        update.await.expect("ended");
    }
    let found = users[0].get(access(&session)).await.expect("there");
    assert_eq!(found.custom.len(), 64);
}

pub async fn a_refused_change_changes_nothing(place: &Place) {
    let (contexts, session) = (place.contexts(), new_session());
    set(place, &session, "before").await;
    let before = contexts.get(access(&session)).await.expect("there");
    let refused = Refused { parameter: "custom".into(), value: "x".into(), allowed: "y".into() };
    let changed = contexts.update(access(&session), |record| {
        record.custom.clear();
        Err::<(), _>(refused.clone())
    });
    assert!(matches!(changed.await, Err(Error::Refused(error)) if error == refused));
    assert_eq!(contexts.get(access(&session)).await.expect("there"), before);
}

pub async fn a_record_never_gets_another_id(place: &Place) {
    let (contexts, session) = (place.contexts(), new_session());
    let changed = contexts.update(access(&session), |record| {
        record.session_id = new_session();
        Ok(())
    });
    let error = changed.await.expect_err("refused").to_string();
    assert!(error.starts_with("session_id mismatch: "), "{error}");
    assert_eq!(contexts.find(access(&session)).await.expect("asked"), None);
}

pub async fn a_clear_during_updates_brings_nothing_old_back(place: &Place) {
    let session = new_session();
    let (contexts, other) = (place.contexts(), place.contexts());
    for round in 0..10 {
        set(place, &session, "old").await;
        let add = change(&contexts, &session, |record| drop(record.custom.insert(format!("new-{round}"), json!(1))));
        let (added, cleared) = tokio::join!(add, other.clear(access(&session)));
        added.expect("added");
        cleared.expect("cleared");
        if let Some(found) = contexts.find(access(&session)).await.expect("asked") {
            assert!(!found.custom.contains_key("note"), "{:?}", found.custom);
        }
        contexts.clear(access(&session)).await.expect("cleared");
    }
    assert_eq!((contexts.counts().cleared, other.counts().cleared), (10, 10));
}

pub async fn it_counts_sessions_and_can_be_probed(place: &Place) {
    let contexts = place.contexts();
    let sessions = [new_session(), new_session(), new_session()];
    for session in &sessions {
        set(place, session, "x").await;
    }
    // Other tests use the same Redis.
    assert!(contexts.stats().await.expect("stats").sessions >= Some(3));
    let health = contexts.health().await;
    assert!(health.degraded.is_empty() && health.redis_ok && health.session_count >= Some(3), "{health:?}");
    assert_eq!(health.backend, place.open().backend());
}

pub async fn another_sessions_context_does_not_exist(place: &Place) {
    let (contexts, own, other) = (place.contexts(), new_session(), new_session());
    set(place, &other, "secret").await;
    contexts.own(&own, &own.to_string()).expect("its own");
    let missing = contexts.own(&own, &new_session().to_string()).expect_err("not there").to_string();
    assert_eq!(contexts.own(&own, &other.to_string()).expect_err("not there").to_string(), missing, "there or not, the answer is the same");
    assert_eq!(contexts.counts().isolation_violations, 2);
    for injected in ["*", "", "x\r\nFLUSHALL", &format!("{other}*")] {
        let error = contexts.own(&own, injected).expect_err("no id").to_string();
        assert!(error.starts_with("Invalid session ID format: "), "{error}");
    }
}

async fn set(place: &Place, session: &heapstead_context::SessionId, note: &str) {
    change(&place.contexts(), session, |record| drop(record.custom.insert("note".into(), note.into()))).await.expect("set");
}

pub async fn contexts_count_for_their_owner_and_are_refused_above_its_limit(place: &Place) {
    let (store, bare) = (place.open(), place.open_bare());
    let [first, second, other] = [new_session(), new_session(), new_session()];
    let of = async |owner: &str| store.owner_bytes(owner).await.expect("counted");
    let Some(0) = of("ann").await else {
        assert_eq!(of("ann").await, None, "not counted by this store");
        return;
    };
    let [short, long] = ["1", &"2".repeat(4000)].map(|note| record(first, note));
    assert!(store.replace(access(&first).of_owner("ann"), None, &short).await.expect("stored"));
    assert!(store.replace(access(&other).of_owner("bob"), None, &record(other, "1")).await.expect("stored"));
    let stored = bare.read(access(&first)).await.expect("read").expect("there").bytes().len() as u64;
    let one = stored + CONTEXT_BYTES;
    assert_eq!(of("ann").await, Some(one));
    // The second is as long as the first, give or take the digits of its times.
    let limited = |session, max| access(session).of_owner("ann").within(Some(max));
    let over = |replaced: Result<bool, StoreError>| match replaced {
        Err(StoreError::OverQuota { used_bytes, bytes_max }) => assert!(used_bytes == one && bytes_max == one + 100),
        other => panic!("{other:?}"),
    };
    over(store.replace(limited(&second, one + 100), None, &record(second, "1")).await);
    let read = store.read(access(&first)).await.expect("read").expect("there");
    over(store.replace(limited(&first, one + 100), Some(&read), &long).await);
    assert_eq!((of("ann").await, store.read(access(&second)).await.expect("read")), (Some(one), None), "nothing was changed");
    assert!(store.replace(limited(&first, one + 5000), Some(&read), &long).await.expect("stored"), "there is room");
    let read = store.read(access(&first)).await.expect("read").expect("there");
    assert!(store.replace(limited(&first, 0), Some(&read), &short).await.expect("stored"), "one that gets shorter is not refused");
    let read = store.read(access(&first)).await.expect("read").expect("there");
    assert!(store.replace(access(&first), Some(&read), &short).await.expect("stored"), "an owner that is not given stays");
    assert_eq!(of("ann").await, Some(one));
    store.remove(access(&first)).await.expect("removed");
    assert_eq!(of("ann").await, Some(0));
    place.pass(&other, TTL + 2 * MINUTE);
    store.sweep().await.expect("swept");
    assert_eq!(of("bob").await, Some(0), "expired contexts do not count");
}
