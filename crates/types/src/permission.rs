//! What an owner may do beyond the ordinary, granted by the operator: in the token file, or by the issuer of a JWT.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Store heaps that this server did not write.
    ImportHeaps,
}

/// None, unless they were granted.
pub type Permissions = BTreeSet<Permission>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the only permission is `{}`", Permission::ImportHeaps)]
pub struct InvalidPermission;

impl Permission {
    pub const ALL: [Self; 1] = [Self::ImportHeaps];

    /// As it is written in the token file and in the claim `scope` of a JWT.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ImportHeaps => "heaps:import",
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Permission {
    type Err = InvalidPermission;

    fn from_str(text: &str) -> Result<Self, InvalidPermission> {
        Self::ALL.into_iter().find(|permission| permission.as_str() == text).ok_or(InvalidPermission)
    }
}
