//! On whose behalf something is done, and whose it then is. Until callers are told apart, everything is anonymous.

use std::fmt;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Principal(String);

impl Principal {
    /// Whoever reaches a server that asks for no credentials.
    pub fn anonymous() -> Self {
        Self::default()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "anonymous" } else { &self.0 })
    }
}
