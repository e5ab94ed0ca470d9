//! The id of a session: 32 random bytes, written as 64 lowercase hex digits. It cannot be guessed.

use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId([u8; 32]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a session id is 64 lowercase hex digits")]
pub struct InvalidSessionId;

impl SessionId {
    pub fn random() -> Self {
        Self::from_random(crate::random_bytes())
    }

    pub fn from_random(bits: [u8; 32]) -> Self {
        Self(bits)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = InvalidSessionId;

    fn from_str(text: &str) -> Result<Self, InvalidSessionId> {
        let mut bits = [0; 32];
        match hex::decode_to_slice(text, &mut bits) {
            Ok(()) if crate::is_lowercase_hex(text, 32) => Ok(Self(bits)),
            _ => Err(InvalidSessionId),
        }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// An id grants use of its session, so logs show only enough of it to tell two sessions apart.
impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, ..] = self.0;
        write!(f, "SessionId({first:02x}{second:02x}…)")
    }
}

impl serde::Serialize for SessionId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_round_trips_and_other_texts_are_refused() {
        let id = SessionId::from_random([0xab; 32]);
        assert_eq!(id.to_string(), "ab".repeat(32));
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(format!("{id:?}"), "SessionId(abab…)");
        for bad in ["", &"ab".repeat(31), &"AB".repeat(32), &"ab".repeat(33), &"g0".repeat(32)] {
            assert_eq!(bad.parse::<SessionId>(), Err(InvalidSessionId), "{bad}");
        }
    }
}
