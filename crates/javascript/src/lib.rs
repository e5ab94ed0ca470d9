//! Transformations of JavaScript and TypeScript source text, shared by the worker and the catalogs.

mod minify;
mod strip;

pub use minify::{minify_expression, minify_script};
pub use strip::{Goal, Stripped, as_object_literal, could_be_typescript, strip_types};

/// An error of the parser. Line and column count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    pub message: String,
    pub line: u32,
    pub column: u32,
}
