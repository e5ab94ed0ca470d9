//! JWTs: tokens that a trusted issuer signed for this server are accepted; all others get the same refusal.

use crate::fixture::Server;
use crate::issuer::{AUDIENCE, Issuer, Key, base64url, claims, secs_from_now, unsigned};
use crate::peer::{Http, request};
use serde_json::{Value, json};

/// Status, challenge and body of the response to a request with these credentials.
pub async fn answer(server: &Server, token: &str) -> (u16, String, Value) {
    let response = server.client.get(format!("{}/api/executions", server.url)).bearer_auth(token).send().await.expect("an answer");
    let header = |name| response.headers().get(name).map(|value| value.to_str().expect("text").to_owned()).unwrap_or_default();
    let (status, challenge) = (response.status().as_u16(), header("www-authenticate"));
    (status, challenge, response.json().await.expect("JSON"))
}

pub async fn check_refused(server: &Server, token: &str) {
    let (status, challenge, body) = answer(server, token).await;
    assert_eq!((status, challenge.as_str()), (401, r#"Bearer realm="heapstead", error="invalid_token""#), "{body}");
    let expected = json!({
        "type": "urn:heapstead:error:unauthenticated", "title": "Unauthorized", "status": 401, "detail": "the credentials are not valid for this server, or have expired or been revoked"
    });
    assert_eq!(body, expected);
}

async fn check_accepted(server: &Server, token: &str) {
    let (status, _, body) = answer(server, token).await;
    assert_eq!(status, 200, "{body}");
}

type Spoil<'a> = &'a dyn Fn(&Key, Value) -> String;

/// A valid token is accepted; each of these manipulations of it is refused.
async fn check(spoils: &[Spoil<'_>]) {
    let key = Key::ed25519("one");
    let issuer = Issuer::publishing(&[&key]);
    let server = issuer.server(&[]);
    check_accepted(&server, &key.token(&claims("ann"))).await;
    for spoil in spoils {
        check_refused(&server, &spoil(&key, claims("ann"))).await;
    }
}

fn with(mut claims: Value, name: &str, value: impl Into<Value>) -> Value {
    claims[name] = value.into();
    claims
}

fn without(mut claims: Value, name: &str) -> Value {
    claims.as_object_mut().expect("an object").remove(name);
    claims
}

#[tokio::test]
async fn every_kind_of_key_is_accepted() {
    let keys = [Key::ed25519("ed"), Key::p256("ec"), Key::rsa("rsa")];
    let issuer = Issuer::publishing(&keys.each_ref());
    let server = issuer.server(&[]);
    for key in &keys {
        check_accepted(&server, &key.token(&claims("ann"))).await;
        check_accepted(&server, &key.token(&with(claims("ann"), "aud", json!(["other", AUDIENCE])))).await;
        // The only key of its type need not be named.
        check_accepted(&server, &key.token_with(&json!({ "alg": key.algorithm() }), &claims("ann"))).await;
        let token = key.token(&claims("ann"));
        let (rest, signature) = token.rsplit_once('.').expect("a signature");
        check_refused(&server, &format!("{rest}.{}{}", if signature.starts_with('A') { 'B' } else { 'A' }, &signature[1..])).await;
    }
}

#[tokio::test]
async fn alg_none_is_refused() {
    let none = |key: &Key| json!({ "typ": "JWT", "alg": "none", "kid": key.header()["kid"] });
    check(&[
        &|key, claims| format!("{}.", unsigned(&none(key), &claims)),
        &|key, claims| unsigned(&none(key), &claims),
        // Signed nevertheless.
        &|key, claims| key.token_with(&none(key), &claims),
    ])
    .await;
}

#[tokio::test]
async fn hs256_with_the_public_key_as_its_secret_is_refused() {
    // In every form in which an attacker could have the public key.
    let key = Key::rsa("rsa");
    let issuer = Issuer::publishing(&[&key]);
    let server = issuer.server(&[]);
    check_accepted(&server, &key.token(&claims("ann"))).await;
    let jwk = key.jwk();
    for secret in [key.public(), jwk["n"].as_str().expect("text").into(), jwk.to_string().into_bytes()] {
        for header in [json!({ "alg": "HS256", "kid": "rsa" }), json!({ "alg": "HS256" })] {
            let message = unsigned(&header, &claims("ann"));
            let tag = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret), message.as_bytes());
            check_refused(&server, &format!("{message}.{}", base64url(tag.as_ref()))).await;
        }
    }
}

#[tokio::test]
async fn an_algorithm_that_does_not_match_the_key_is_refused() {
    check(&[&|key, claims| key.token_with(&json!({ "alg": "ES256", "kid": "one" }), &claims)]).await;
}

#[tokio::test]
async fn another_issuer_is_refused() {
    check(&[&|key, claims| key.token(&with(claims, "iss", "https://elsewhere.example/")), &|key, claims| {
        key.token(&without(claims, "iss"))
    }])
    .await;
}

#[tokio::test]
async fn another_audience_is_refused() {
    check(&[
        &|key, claims| key.token(&with(claims, "aud", "elsewhere")),
        &|key, claims| key.token(&with(claims, "aud", json!(["elsewhere", "heapstead2"]))),
        &|key, claims| key.token(&without(claims, "aud")),
    ])
    .await;
}

#[tokio::test]
async fn a_signature_by_another_key_with_the_same_id_is_refused() {
    check(&[&|_, claims| Key::ed25519("one").token(&claims)]).await;
}

#[tokio::test]
async fn a_key_that_is_not_published_is_refused() {
    check(&[&|_, claims| Key::ed25519("two").token(&claims)]).await;
}

#[tokio::test]
async fn a_key_embedded_in_the_jwt_is_refused() {
    check(&[&|_, claims| {
        let own = Key::ed25519("mine");
        own.token_with(&json!({ "alg": "EdDSA", "kid": "mine", "jwk": own.jwk(), "jku": "http://127.0.0.1:1/" }), &claims)
    }])
    .await;
}

#[tokio::test]
async fn an_expired_jwt_is_refused() {
    check(&[&|key, claims| key.token(&with(claims, "exp", secs_from_now(-60)))]).await;
}

#[tokio::test]
async fn a_token_before_its_nbf_is_refused() {
    check(&[&|key, claims| key.token(&with(claims, "nbf", secs_from_now(60)))]).await;
}

#[tokio::test]
async fn small_clock_differences_are_accepted() {
    let key = Key::ed25519("one");
    let issuer = Issuer::publishing(&[&key]);
    let server = issuer.server(&[]);
    check_accepted(&server, &key.token(&with(claims("ann"), "exp", secs_from_now(-10)))).await;
    check_accepted(&server, &key.token(&with(claims("ann"), "nbf", secs_from_now(10)))).await;
}

#[tokio::test]
async fn a_token_without_expiry_is_refused() {
    check(&[&|key, claims| key.token(&without(claims, "exp")), &|key, claims| key.token(&with(claims, "exp", "tomorrow"))]).await;
}

#[tokio::test]
async fn a_token_with_unknown_critical_extensions_is_refused() {
    check(&[&|key, claims| key.token_with(&json!({ "alg": "EdDSA", "kid": "one", "crit": ["b64"], "b64": false }), &claims)]).await;
}

#[tokio::test]
async fn a_token_with_changed_claims_is_refused() {
    check(&[&|key, good| {
        let token = key.token(&good);
        let (_, signature) = token.rsplit_once('.').expect("a signature");
        format!("{}.{signature}", unsigned(&key.header(), &claims("bob")))
    }])
    .await;
}

#[tokio::test]
async fn invalid_tenant_and_subject_names_are_refused() {
    check(&[
        &|key, claims| key.token(&without(claims, "sub")),
        &|key, claims| key.token(&with(claims, "sub", "")),
        &|key, claims| key.token(&with(claims, "sub", "a\nb")),
        &|key, claims| key.token(&with(claims, "sub", 7)),
        &|key, claims| key.token(&with(claims, "tenant", "a/b")),
        &|key, claims| key.token(&with(claims, "tenant", Value::Null)),
    ])
    .await;
}

#[tokio::test]
async fn malformed_jwts_are_refused() {
    let texts = ["x", "a.b.c", "..", "eyJhbGciOiJFZERTQSJ9", "eyJhbGciOiJFZERTQSJ9.e30.", "hst_000000000000_00"];
    let spoils = texts.map(|text| move |_: &Key, _: Value| text.to_owned());
    check(&spoils.each_ref().map(|spoil| spoil as Spoil<'_>)).await;
}

#[tokio::test]
async fn the_owner_is_the_tenant_and_subject_of_the_jwt() {
    let key = Key::ed25519("one");
    let issuer = Issuer::publishing(&[&key]);
    let server = issuer.server(&["--jwt-tenant-claim", "https://id.example/org"]);
    let bearer = |claims: &Value| format!("Bearer {}", key.token(claims));
    let of_acme = with(claims("ann"), "https://id.example/org", "acme");
    let connection = Http::connect(&server, "2025-11-25", &[("authorization", &bearer(&of_acme))]).await;
    // A connection is visible only to its owner, which shows whether two callers have the same owner.
    for (claims, status) in [
        (with(of_acme.clone(), "exp", secs_from_now(900)), 200),
        (with(claims("ann"), "https://id.example/org", "other"), 404),
        (with(claims("bob"), "https://id.example/org", "acme"), 404),
        (claims("ann"), 404),
        (with(claims("ann"), "tenant", "acme"), 404),
    ] {
        let mut other = connection.clone();
        other.headers = vec![("authorization", bearer(&claims))];
        assert_eq!(other.send(&request("tools/list", json!({}))).await.status(), status, "{claims}");
    }
    // Without the claim, the tenant is `default`.
    let plain = Http::connect(&server, "2025-11-25", &[("authorization", &bearer(&claims("ann")))]).await;
    let mut same = plain.clone();
    same.headers = vec![("authorization", bearer(&with(claims("ann"), "https://id.example/org", "default")))];
    assert_eq!(same.send(&request("tools/list", json!({}))).await.status(), 200);
}

/// The issuer grants the permission to import heaps in the claim `scope`.
#[tokio::test]
async fn the_scope_of_a_jwt_grants_permissions() {
    let key = Key::ed25519("one");
    let issuer = Issuer::publishing(&[&key]);
    let server = issuer.server(&["--allow-heap-import"]);
    for (scope, expected) in [
        (None, 403),
        (Some(json!("")), 403),
        (Some(json!("heaps:imports heaps")), 403),
        (Some(json!(["heaps:import"])), 403),
        // Allowed, and then refused because it is not a heap.
        (Some(json!("openid heaps:import")), 400),
    ] {
        let claims = scope.iter().fold(claims("ann"), |claims, scope| with(claims, "scope", scope.clone()));
        let request = server.client.post(format!("{}/api/heaps", server.url)).header("content-type", "application/octet-stream");
        let answer = request.bearer_auth(key.token(&claims)).body("no heap").send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), expected, "{scope:?}");
    }
}
