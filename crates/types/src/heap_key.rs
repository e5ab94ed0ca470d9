//! The key of a heap: the SHA-256 of its snapshot payload, written as 64 lowercase hex digits.

use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeapKey([u8; 32]);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a heap key: expected 64 lowercase hex digits")]
pub struct InvalidHeapKey(String);

/// Characters of a refused value that the error repeats.
const SHOWN_CHARS_MAX: usize = 80;

/// What ids of states begin with.
const STATE: [u8; 16] = *b"heapstead: state";

impl HeapKey {
    pub const fn from_digest(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// An id of the form of a heap key, for a state whose heap is stored later. No heap has such a key: its SHA-256 would have to begin with
    /// 16 given bytes.
    pub fn of_state(random: [u8; 16]) -> Self {
        let mut id = [0; 32];
        id[..16].copy_from_slice(&STATE);
        id[16..].copy_from_slice(&random);
        Self(id)
    }

    pub fn is_state(&self) -> bool {
        self.0[..16] == STATE
    }

    pub const fn digest(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for HeapKey {
    type Err = InvalidHeapKey;

    fn from_str(text: &str) -> Result<Self, InvalidHeapKey> {
        let invalid = || InvalidHeapKey(text.chars().take(SHOWN_CHARS_MAX).collect());
        if !crate::is_lowercase_hex(text, 32) {
            return Err(invalid());
        }
        let mut digest = [0; 32];
        hex::decode_to_slice(text, &mut digest).map_err(|_| invalid())?;
        Ok(Self(digest))
    }
}

impl fmt::Display for HeapKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for HeapKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeapKey({self})")
    }
}

impl serde::Serialize for HeapKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for HeapKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_exactly_64_lowercase_hex_digits() {
        let good = "0123456789abcdef".repeat(4);
        assert_eq!(good.parse::<HeapKey>().expect("valid").to_string(), good);
        for bad in [
            "",
            "abc",
            &good[1..],
            &format!("{good}0"),
            &good.to_uppercase(),
            &good.replace('a', "g"),
            &"é".repeat(32),
            "../../../etc/passwd",
        ] {
            let error = bad.parse::<HeapKey>().expect_err(bad).to_string();
            assert!(error.contains("64 lowercase hex digits"), "{error}");
        }
    }
}
