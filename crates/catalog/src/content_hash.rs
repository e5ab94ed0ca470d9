//! The content of a catalog as one SHA-256: a changed path or byte makes a different catalog.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentHash(String);

impl ContentHash {
    /// Hashes paths and bytes in the order of the paths. Each is length-prefixed, so that different files cannot give the same input.
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut hash = Sha256::new();
        for (path, bytes) in files {
            absorb(&mut hash, path.as_bytes());
            absorb(&mut hash, bytes);
        }
        Self(hex::encode(hash.finalize()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Adds a length-prefixed byte string.
pub fn absorb(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_bytes_count_and_do_not_run_together() {
        let of = |files: &[(&str, &str)]| ContentHash::of(files.iter().map(|(path, text)| (*path, text.as_bytes())));
        let hash = of(&[("a", "bc"), ("d", "")]);
        assert_eq!(hash.as_str().len(), 64);
        assert_eq!(hash, of(&[("a", "bc"), ("d", "")]));
        for other in [of(&[("ab", "c"), ("d", "")]), of(&[("a", "bcd"), ("", "")]), of(&[("a", "bc")]), of(&[])] {
            assert_ne!(hash, other);
        }
    }
}
