//! The manifest of a catalog, `catalog.json`.
//!
//! ```json
//! { "name": "statistics", "version": "1.0.0", "description": "optional" }
//! ```

use crate::error::CatalogError;
use crate::limits::NAME_CHARS_MAX;
use crate::symbol::Symbol;
use serde::Deserialize;
use std::path::Path;

pub const FILE: &str = "catalog.json";

/// Reserved words of strict JavaScript, and lowercase globals that a catalog would shadow in the session.
const TAKEN: &[&str] = &[
    "arguments",
    "as",
    "async",
    "atob",
    "await",
    "break",
    "btoa",
    "case",
    "catch",
    "class",
    "console",
    "const",
    "continue",
    "crypto",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "escape",
    "eval",
    "export",
    "extends",
    "false",
    "fetch",
    "finally",
    "for",
    "from",
    "function",
    "get",
    "global",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "mcp",
    "navigator",
    "new",
    "null",
    "of",
    "package",
    "performance",
    "private",
    "process",
    "protected",
    "public",
    "require",
    "return",
    "self",
    "set",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "type",
    "typeof",
    "undefined",
    "unescape",
    "var",
    "void",
    "while",
    "window",
    "with",
    "yield",
];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub name: String,
    pub version: String,
    #[serde(default)]
    pub description: String,
}

impl Manifest {
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, CatalogError> {
        let manifest: Self =
            serde_json::from_slice(bytes).map_err(|error| CatalogError::Manifest { path: path.to_owned(), what: error.to_string() })?;
        if !is_name(&manifest.name) {
            return Err(CatalogError::Name { path: path.to_owned(), name: manifest.name });
        }
        if manifest.version.trim().is_empty() {
            return Err(CatalogError::Manifest { path: path.to_owned(), what: "`version` is empty".to_owned() });
        }
        Ok(manifest)
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|character| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_')
        && name.len() <= NAME_CHARS_MAX
        && !TAKEN.contains(&name)
        && !Symbol::is_like(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_that_nothing_else_uses() {
        for (name, allowed) in [
            ("statistics", true),
            ("a", true),
            ("x_2", true),
            ("e", true),
            ("e1x", true),
            ("", false),
            ("2x", false),
            ("_x", false),
            ("Statistics", false),
            ("a-b", false),
            ("class", false),
            ("console", false),
            ("e1", false),
            ("p77", false),
            ("dätes", false),
        ] {
            assert_eq!(is_name(name), allowed, "{name:?}");
        }
        assert!(!is_name(&"x".repeat(NAME_CHARS_MAX + 1)));
    }

    #[test]
    fn manifest_errors_name_the_problem() {
        let refused = |text: &str| Manifest::parse(Path::new("c/catalog.json"), text.as_bytes()).expect_err("refused").to_string();
        assert!(refused("{").starts_with("c/catalog.json: EOF"), "{}", refused("{"));
        assert!(refused(r#"{"version":"1"}"#).contains("missing field `name`"));
        assert!(refused(r#"{"name":"a","version":"1","extra":1}"#).contains("unknown field `extra`"));
        assert!(refused(r#"{"name":"a","version":" "}"#).contains("`version` is empty"));
        assert!(refused(r#"{"name":"If","version":"1"}"#).contains("`name` is \"If\""));
    }
}
