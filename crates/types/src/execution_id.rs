//! The id of an execution: opaque to callers, 128 random bits in hex.

use std::fmt;
use std::str::FromStr;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ExecutionId(String);

/// The text is not a valid id, so no execution can have it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an execution id")]
pub struct InvalidExecutionId;

impl ExecutionId {
    pub fn random() -> Self {
        Self::from_random(crate::random_bytes())
    }

    pub fn from_random(bits: [u8; 16]) -> Self {
        Self(hex::encode(bits))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ExecutionId {
    type Err = InvalidExecutionId;

    fn from_str(text: &str) -> Result<Self, InvalidExecutionId> {
        if crate::is_lowercase_hex(text, 16) { Ok(Self(text.to_owned())) } else { Err(InvalidExecutionId) }
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
