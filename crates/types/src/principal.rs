//! The principal: the authenticated identity a request runs as, and the owner of what it creates.

use std::fmt;
use std::str::FromStr;

pub const TENANT_CHARS_MAX: usize = 64;
pub const SUBJECT_CHARS_MAX: usize = 256;

/// A tenant and subject as authentication established them, or one of the two principals that need no authentication. As text:
/// `tenant/subject`, `local`, or empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Principal(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "an owner is `anonymous`, `local` or TENANT/SUBJECT: a tenant has 1 to {TENANT_CHARS_MAX} letters, digits, dots, dashes and underscores, \
     a subject 1 to {SUBJECT_CHARS_MAX} characters, none of them a control character"
)]
pub struct InvalidPrincipal;

const LOCAL: &str = "local";
const ANONYMOUS: &str = "anonymous";

impl Principal {
    /// Every HTTP client of a server without authentication.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// The user who started the process: callers over stdio and on the command line.
    pub fn local() -> Self {
        Self(LOCAL.to_owned())
    }

    pub fn authenticated(tenant: &str, subject: &str) -> Result<Self, InvalidPrincipal> {
        let tenant_fits = (1..=TENANT_CHARS_MAX).contains(&tenant.len())
            && tenant.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
        let subject_fits = (1..=SUBJECT_CHARS_MAX).contains(&subject.chars().count()) && !subject.chars().any(char::is_control);
        if tenant_fits && subject_fits { Ok(Self(format!("{tenant}/{subject}"))) } else { Err(InvalidPrincipal) }
    }

    pub fn is_anonymous(&self) -> bool {
        self.0.is_empty()
    }

    /// `None` for the two principals without authentication.
    pub fn tenant(&self) -> Option<&str> {
        self.0.split_once('/').map(|(tenant, _)| tenant)
    }

    /// The stored form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As it is shown: never empty.
    pub fn name(&self) -> &str {
        if self.is_anonymous() { ANONYMOUS } else { &self.0 }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Principal {
    type Err = InvalidPrincipal;

    fn from_str(text: &str) -> Result<Self, InvalidPrincipal> {
        match text {
            ANONYMOUS => Ok(Self::anonymous()),
            LOCAL => Ok(Self::local()),
            _ => text.split_once('/').ok_or(InvalidPrincipal).and_then(|(tenant, subject)| Self::authenticated(tenant, subject)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_round_trip_and_are_never_confused() {
        for text in ["anonymous", "local", "acme/ann", "acme/auth0|7/é"] {
            assert_eq!(text.parse::<Principal>().expect(text).to_string(), text);
        }
        assert_ne!(Principal::authenticated("local", "x"), Ok(Principal::local()));
        assert_eq!("acme/ann".parse::<Principal>().expect("an owner").tenant(), Some("acme"));
        assert_eq!(Principal::local().tenant(), None);
        for bad in
            ["", "acme", "acme/", "/ann", "a b/ann", "acme/a\nb", &format!("{}/a", "t".repeat(65)), &format!("t/{}", "s".repeat(257))]
        {
            assert_eq!(bad.parse::<Principal>(), Err(InvalidPrincipal), "{bad:?}");
        }
    }
}
