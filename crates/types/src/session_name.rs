//! The name of a session, chosen by the client.

use std::fmt;
use std::str::FromStr;

/// Longer names are assumed to be mistakes.
pub const SESSION_NAME_CHARS_MAX: usize = 256;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(transparent)]
pub struct SessionName(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a session name is 1 to {SESSION_NAME_CHARS_MAX} characters, none of them a control character")]
pub struct InvalidSessionName;

impl SessionName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionName {
    type Err = InvalidSessionName;

    fn from_str(text: &str) -> Result<Self, InvalidSessionName> {
        let fits = !text.is_empty() && text.chars().count() <= SESSION_NAME_CHARS_MAX;
        if fits && !text.chars().any(char::is_control) { Ok(Self(text.to_owned())) } else { Err(InvalidSessionName) }
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_printable() {
        let longest = "é".repeat(SESSION_NAME_CHARS_MAX);
        for good in ["a", "my session / 7", &longest] {
            assert_eq!(good.parse::<SessionName>().expect(good).as_str(), good);
        }
        for bad in ["", "a\nb", "a\0", "\u{85}", &format!("{longest}x")] {
            assert_eq!(bad.parse::<SessionName>(), Err(InvalidSessionName), "{bad:?}");
        }
    }
}
