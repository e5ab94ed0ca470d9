//! The id of a session: 32 random bytes, written as 64 lowercase hex digits. Stores accept nothing else as a key.

use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId([u8; 32]);

/// Characters of a malformed id that the error repeats.
const SHOWN_CHARS_MAX: usize = 80;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid session ID format: {shown} (it is 64 lowercase hex digits)")]
pub struct InvalidSessionId {
    shown: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gave no random bytes")]
pub struct NoRandomness;

impl SessionId {
    /// A random id that cannot be guessed.
    pub fn random() -> Result<Self, NoRandomness> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomness)?;
        Ok(Self(bytes))
    }

    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = InvalidSessionId;

    fn from_str(text: &str) -> Result<Self, InvalidSessionId> {
        let mut bytes = [0; 32];
        let lowercase = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        if lowercase && hex::decode_to_slice(text, &mut bytes).is_ok() {
            return Ok(Self(bytes));
        }
        Err(InvalidSessionId { shown: text.chars().take(SHOWN_CHARS_MAX).flat_map(char::escape_debug).collect() })
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 64];
        hex::encode_to_slice(self.0, &mut digits).map_err(|_| fmt::Error)?;
        f.write_str(std::str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for SessionId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for SessionId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_64_lowercase_hex_digits_and_nothing_else() {
        let good = "0123456789abcdef".repeat(4);
        assert_eq!(good.parse::<SessionId>().expect("an id").to_string(), good);
        let upper = good.to_uppercase();
        for bad in [
            "",
            "abc",
            &good[1..],
            &format!("{good}0"),
            &upper,
            &format!("{}\n", &good[1..]),
            &format!("*{}", &good[1..]),
            &format!("{} ", &good[1..]),
        ] {
            let error = bad.parse::<SessionId>().expect_err(bad).to_string();
            assert!(error.starts_with("Invalid session ID format: "), "{error}");
            assert!(!error.contains('\n') && error.len() < 200, "{error}");
        }
    }

    #[test]
    fn ids_are_random() {
        assert_ne!(SessionId::random().expect("random"), SessionId::random().expect("random"));
    }
}
