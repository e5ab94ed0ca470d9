//! A symbol: a short name for one entity (`e1`), method (`m1`) or parameter (`p1`) in one symbol space.

use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SymbolKind {
    Entity,
    Method,
    Parameter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Symbol {
    pub kind: SymbolKind,
    /// Counted from 1.
    pub number: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a symbol: expected e, m or p and a number from 1")]
pub struct InvalidSymbol(String);

impl Symbol {
    pub fn entity(number: u32) -> Self {
        Self { kind: SymbolKind::Entity, number }
    }

    pub fn method(number: u32) -> Self {
        Self { kind: SymbolKind::Method, number }
    }

    pub fn parameter(number: u32) -> Self {
        Self { kind: SymbolKind::Parameter, number }
    }

    /// Whether a name has the form of a symbol.
    pub fn is_like(name: &str) -> bool {
        name.strip_prefix(['e', 'm', 'p']).is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.kind {
            SymbolKind::Entity => 'e',
            SymbolKind::Method => 'm',
            SymbolKind::Parameter => 'p',
        };
        write!(out, "{letter}{}", self.number)
    }
}

impl From<Symbol> for String {
    fn from(symbol: Symbol) -> Self {
        symbol.to_string()
    }
}

impl TryFrom<String> for Symbol {
    type Error = InvalidSymbol;

    fn try_from(text: String) -> Result<Self, InvalidSymbol> {
        let parse = || {
            let kind = match text.chars().next()? {
                'e' => SymbolKind::Entity,
                'm' => SymbolKind::Method,
                'p' => SymbolKind::Parameter,
                _ => return None,
            };
            let number = text[1..].parse().ok().filter(|number| *number > 0)?;
            // Each symbol has one spelling: no signs, no leading zeros.
            Some(Self { kind, number }).filter(|symbol: &Self| symbol.to_string() == text)
        };
        parse().ok_or_else(|| InvalidSymbol(text.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_symbol_has_one_spelling() {
        for text in ["e1", "m20", "p4294967295"] {
            assert_eq!(Symbol::try_from(text.to_owned()).map(String::from), Ok(text.to_owned()));
            assert!(Symbol::is_like(text));
        }
        for text in ["", "e", "e0", "e01", "e+1", "x1", "p4294967296", "é1"] {
            assert!(Symbol::try_from(text.to_owned()).is_err(), "{text:?}");
        }
        assert!(!Symbol::is_like("mean") && !Symbol::is_like("p") && !Symbol::is_like("e1a"));
    }
}
