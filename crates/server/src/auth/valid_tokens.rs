//! The valid bearer tokens: the token file in memory, reloaded when it changes.

use super::Identity;
use super::refusal::Reason;
use super::token::{Token, TokenDigest};
use super::token_file::{Entry, TokenFile, TokenFileError};
use super::watch::Watch;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use subtle::ConstantTimeEq;

pub struct ValidTokens {
    file: TokenFile,
    state: Mutex<State>,
}

struct State {
    watch: Watch,
    by_id: HashMap<String, Entry>,
}

impl ValidTokens {
    pub fn open(path: &Path) -> Result<Self, TokenFileError> {
        let file = TokenFile::new(path);
        // The watch starts before the first read, so that no change is missed.
        let watch = Watch::new(path);
        let by_id = by_id(file.read()?);
        if by_id.is_empty() {
            tracing::warn!(file = %path.display(), "there are no tokens yet: create one with `heapstead auth add OWNER`");
        }
        Ok(Self { file, state: Mutex::new(State { watch, by_id }) })
    }

    pub fn identity(&self, text: &str) -> Result<Identity, Reason> {
        let digest = Token::digest(text);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.watch.has_changed() {
            state.by_id = self.reload();
        }
        let entry = Token::id_in(text).and_then(|id| state.by_id.get(id));
        // The comparison takes constant time and happens even if the id is unknown.
        let expected = entry.map_or(TokenDigest::default(), |entry| entry.sha256);
        let is_it = bool::from(expected.ct_eq(&digest));
        match entry {
            Some(entry) if is_it && entry.has_expired() => Err(Reason::ExpiredToken { id: entry.id.clone() }),
            Some(entry) if is_it => Ok(Identity { principal: entry.owner.clone(), permissions: entry.permissions.clone() }),
            _ => Err(Reason::UnknownToken),
        }
    }

    /// If the file cannot be read, all tokens are refused, because a revocation might be missed otherwise.
    fn reload(&self) -> HashMap<String, Entry> {
        match self.file.read() {
            Ok(entries) => by_id(entries),
            Err(error) => {
                tracing::error!(%error, "all bearer tokens are refused until this is fixed");
                HashMap::new()
            }
        }
    }
}

fn by_id(entries: Vec<Entry>) -> HashMap<String, Entry> {
    entries.into_iter().map(|entry| (entry.id.clone(), entry)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapstead_types::Permissions;
    use jiff::{SignedDuration, Timestamp};

    fn add(file: &TokenFile, owner: &str, lasts: Option<SignedDuration>) -> Token {
        let token = Token::random();
        let entry = Entry {
            id: token.id.clone(),
            owner: owner.parse().expect("an owner"),
            name: None,
            sha256: Token::digest(token.text()),
            created_at: Timestamp::now(),
            expires_at: lasts.map(|lasts| Timestamp::now() + lasts),
            permissions: Permissions::new(),
        };
        file.add(entry).expect("added");
        token
    }

    impl ValidTokens {
        fn owner(&self, text: &str) -> Result<heapstead_types::Principal, Reason> {
            self.identity(text).map(|identity| identity.principal)
        }
    }

    #[test]
    fn a_token_is_valid_from_its_creation_until_it_expires_or_is_revoked() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens.toml");
        let file = TokenFile::new(&path);
        let first = add(&file, "acme/ann", None);
        let tokens = ValidTokens::open(&path).expect("opened");
        assert_eq!(tokens.owner(first.text()), Ok("acme/ann".parse().expect("an owner")));
        let second = add(&file, "acme/bob", Some(SignedDuration::from_hours(1)));
        let expired = add(&file, "acme/bob", Some(SignedDuration::from_hours(-1)));
        assert_eq!(tokens.owner(second.text()), Ok("acme/bob".parse().expect("an owner")));
        assert_eq!(tokens.owner(expired.text()), Err(Reason::ExpiredToken { id: expired.id }));
        // The id of one token with the secret of another.
        let crossed = format!("hst_{}_{}", first.id, second.text().rsplit('_').next().expect("a secret"));
        for text in [crossed.as_str(), "hst_", "x"] {
            assert_eq!(tokens.owner(text), Err(Reason::UnknownToken), "{text}");
        }
        file.revoke(&first.id).expect("revoked");
        assert_eq!(tokens.owner(first.text()), Err(Reason::UnknownToken));
        assert!(matches!(file.revoke(&first.id), Err(TokenFileError::Unknown { .. })));
    }

    #[test]
    fn an_unreadable_file_refuses_all_tokens_until_it_is_readable() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens.toml");
        assert!(matches!(ValidTokens::open(&path), Err(TokenFileError::Missing { .. })));
        let token = add(&TokenFile::new(&path), "acme/ann", None);
        let tokens = ValidTokens::open(&path).expect("opened");
        let good = std::fs::read(&path).expect("a file");
        for bad in ["tokens = 7", "[[tokens]]\nid = \"x\"", &String::from_utf8_lossy(&good).replace("acme/ann", "local")] {
            std::fs::write(&path, bad).expect("written");
            assert_eq!(tokens.owner(token.text()), Err(Reason::UnknownToken), "{bad}");
        }
        std::fs::write(&path, good).expect("written");
        assert!(tokens.owner(token.text()).is_ok());
    }
}
