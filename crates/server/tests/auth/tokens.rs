//! Bearer tokens are valid from their creation until they expire or are revoked, without a restart of the server.

use crate::common::{Place, Ran};
use crate::fixture::{Folders, Server};
use crate::jwt::{answer, check_refused};
use serde_json::Value;

/// A token file, managed with `heapstead auth`.
pub struct TokenFile {
    place: Place,
}

impl TokenFile {
    pub fn new() -> Self {
        Self { place: Place::new() }
    }

    pub fn path(&self) -> String {
        self.place.path("tokens.toml").to_str().expect("a name in UTF-8").to_owned()
    }

    pub fn auth(&self, arguments: &[&str]) -> Ran {
        self.place.ran([&["auth"], arguments, &["--auth-tokens", &self.path()]].concat())
    }

    /// Creates a token. Returns its id and text.
    pub fn add(&self, owner: &str, arguments: &[&str]) -> (String, String) {
        let ran = self.auth(&[&["add", owner, "--json"], arguments].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        (text(&ran.json()["id"]), text(&ran.json()["token"]))
    }

    pub fn server(&self, arguments: &[&str]) -> Server {
        Server::start_with(&Folders::new(), &[&["--auth-tokens", &self.path()], arguments].concat())
    }

    /// Moves the token's expiry into the past.
    fn let_expire(&self, id: &str) {
        let text = std::fs::read_to_string(self.path()).expect("the file");
        let at = text.find(id).expect("the token");
        let (before, after) = text.split_at(at);
        let line = after.lines().find(|line| line.starts_with("expires_at")).expect("an end");
        std::fs::write(self.path(), before.to_owned() + &after.replacen(line, "expires_at = \"2026-01-01T00:00:00Z\"", 1))
            .expect("written");
    }
}

#[tokio::test]
async fn a_token_is_valid_from_its_creation_until_it_is_revoked() {
    let file = TokenFile::new();
    let (first_id, first) = file.add("acme/ann", &[]);
    let server = file.server(&[]);
    assert_eq!(answer(&server, &first).await.0, 200);
    let (_, second) = file.add("acme/bob", &["--expires", "1h"]);
    assert_eq!(answer(&server, &second).await.0, 200);
    assert_eq!(file.auth(&["revoke", &first_id]).code, Some(0));
    check_refused(&server, &first).await;
    assert_eq!(answer(&server, &second).await.0, 200);
}

#[tokio::test]
async fn an_expired_token_is_refused() {
    let file = TokenFile::new();
    let (id, token) = file.add("acme/ann", &["--expires", "1m"]);
    let server = file.server(&[]);
    assert_eq!(answer(&server, &token).await.0, 200);
    file.let_expire(&id);
    check_refused(&server, &token).await;
}

#[tokio::test]
async fn partial_tokens_are_refused() {
    let file = TokenFile::new();
    let ((_, one), (_, other)) = (file.add("acme/ann", &[]), file.add("acme/bob", &[]));
    let server = file.server(&[]);
    let crossed = format!("{}{}", &one[..17], &other[17..]);
    let digest = std::fs::read_to_string(file.path()).expect("the file");
    let digest = digest.lines().find_map(|line| line.strip_prefix("sha256 = \"")?.strip_suffix('"')).expect("a digest");
    for bad in [
        &one[..80],
        &crossed,
        &one.to_uppercase(),
        &format!("{one}0"),
        &format!("{}{digest}", &one[..17]),
        "hst_",
        "eyJhbGciOiJub25lIn0.e30.",
    ] {
        check_refused(&server, bad).await;
    }
}

#[tokio::test]
async fn a_missing_or_invalid_token_file_refuses_all_until_it_is_restored() {
    let file = TokenFile::new();
    let (_, token) = file.add("acme/ann", &[]);
    let server = file.server(&[]);
    let good = std::fs::read(file.path()).expect("the file");
    std::fs::remove_file(file.path()).expect("removed");
    check_refused(&server, &token).await;
    std::fs::write(file.path(), "tokens = 7").expect("written");
    check_refused(&server, &token).await;
    std::fs::write(file.path(), good).expect("written");
    assert_eq!(answer(&server, &token).await.0, 200);
}

#[tokio::test]
async fn tokens_and_jwts_are_accepted_only_if_configured() {
    let file = TokenFile::new();
    let (_, token) = file.add("acme/ann", &[]);
    let key = crate::issuer::Key::ed25519("one");
    let issuer = crate::issuer::Issuer::publishing(&[&key]);
    let jwt = key.token(&crate::issuer::claims("ann"));
    let both = issuer.server(&["--auth-tokens", &file.path()]);
    assert_eq!((answer(&both, &token).await.0, answer(&both, &jwt).await.0), (200, 200));
    check_refused(&file.server(&[]), &jwt).await;
    check_refused(&issuer.server(&[]), &token).await;
}
