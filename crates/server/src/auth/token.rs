//! A bearer token that Heapstead issues: `hst_<id>_<secret>`, both in hex. The id finds its entry in the token file; the secret
//! authenticates.

use heapstead_types::{is_lowercase_hex, random_bytes};
use sha2::{Digest, Sha256};

/// Lets people and secret scanners recognise a token.
const PREFIX: &str = "hst_";
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;

/// Never shown by `Debug` and never stored: the file has its digest.
pub struct Token {
    pub id: String,
    text: String,
}

pub type TokenDigest = [u8; 32];

impl Token {
    pub fn random() -> Self {
        let (id, secret) = (hex::encode(random_bytes::<ID_BYTES>()), hex::encode(random_bytes::<SECRET_BYTES>()));
        Self { text: format!("{PREFIX}{id}_{secret}"), id }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn looks_like_one(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// The id in a text that has the form of a token.
    pub fn id_in(text: &str) -> Option<&str> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        (is_lowercase_hex(id, ID_BYTES) && is_lowercase_hex(secret, SECRET_BYTES)).then_some(id)
    }

    /// Stored instead of the token. A plain hash is enough: slow hashes protect guessable passwords, and 32 random bytes cannot be guessed.
    pub fn digest(text: &str) -> TokenDigest {
        Sha256::digest(text).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_contains_its_id_and_is_unique() {
        let (one, other) = (Token::random(), Token::random());
        assert_eq!(Token::id_in(one.text()), Some(one.id.as_str()));
        assert_ne!(one.text()[17..], other.text()[17..]);
        assert_eq!(one.text().len(), 4 + 12 + 1 + 64);
        for bad in ["", "hst_", "hst_abc_def", &one.text()[1..], &one.text()[..80], &one.text().to_uppercase(), &format!("{}0", one.text())]
        {
            assert_eq!(Token::id_in(bad), None, "{bad}");
        }
    }
}
