//! The id of a server process among those that share a database: 64 random bits in hex, new at every start.

use std::fmt;
use std::str::FromStr;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ServerId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a server id")]
pub struct InvalidServerId;

impl ServerId {
    pub fn from_random(bits: [u8; 8]) -> Self {
        Self(hex::encode(bits))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ServerId {
    type Err = InvalidServerId;

    fn from_str(text: &str) -> Result<Self, InvalidServerId> {
        if crate::is_lowercase_hex(text, 8) { Ok(Self(text.to_owned())) } else { Err(InvalidServerId) }
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
