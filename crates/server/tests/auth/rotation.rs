//! Key rotation of the issuer: new keys are accepted on first use, withdrawn keys are dropped, and an unreachable issuer changes nothing.

use crate::issuer::{Issuer, Key, claims};
use crate::jwt::{answer, check_refused};

#[tokio::test]
async fn a_new_key_is_accepted_on_first_use_and_the_old_one_is_refused() {
    let (old, new) = (Key::ed25519("old"), Key::p256("new"));
    let issuer = Issuer::publishing(&[&old]);
    let server = issuer.server(&[]);
    assert_eq!(issuer.fetches(), 1, "keys are fetched before the first request");
    assert_eq!(answer(&server, &old.token(&claims("ann"))).await.0, 200);
    issuer.publish(&[&new]);
    assert_eq!(answer(&server, &new.token(&claims("ann"))).await.0, 200);
    check_refused(&server, &old.token(&claims("ann"))).await;
    assert_eq!(issuer.fetches(), 2);
}

#[tokio::test]
async fn unknown_key_ids_do_not_cause_repeated_fetches() {
    let key = Key::ed25519("one");
    let issuer = Issuer::publishing(&[&key]);
    let server = issuer.server(&[]);
    let stranger = Key::ed25519("stranger").token(&claims("ann"));
    let asking: Vec<_> = (0..50).map(|_| answer(&server, &stranger)).collect();
    for (status, ..) in futures_util::future::join_all(asking).await {
        assert_eq!(status, 401);
    }
    assert_eq!(issuer.fetches(), 2, "one fetch at the start, one for all requests");
    assert_eq!(answer(&server, &key.token(&claims("ann"))).await.0, 200);
}

#[tokio::test]
async fn cached_keys_keep_working_while_the_issuer_is_down() {
    let key = Key::rsa("one");
    let issuer = Issuer::publishing(&[&key]);
    let server = issuer.server(&[]);
    drop(issuer);
    // For an unknown key the server tries to fetch, fails, and keeps the cached keys.
    check_refused(&server, &Key::ed25519("two").token(&claims("ann"))).await;
    assert_eq!(answer(&server, &key.token(&claims("ann"))).await.0, 200);
}

#[tokio::test]
async fn without_any_keys_requests_get_503() {
    let key = Key::ed25519("one");
    let issuer = Issuer::publishing(&[&key]);
    issuer.publish(&[]);
    let server = issuer.server(&[]);
    let (status, challenge, body) = answer(&server, &key.token(&claims("ann"))).await;
    assert_eq!((status, challenge.as_str()), (503, ""), "{body}");
}
