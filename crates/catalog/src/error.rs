//! Errors of loading a catalog and of picking entities from it.

use crate::limits::{CATALOG_BYTES_MAX, DEPTH_MAX, FILE_BYTES_MAX, FILES_MAX, NAME_CHARS_MAX};
use std::path::PathBuf;

/// Why a catalog cannot be loaded. The server does not start with an invalid catalog.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("{}: can't be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: a name that is not UTF-8", path.display())]
    NameNotUtf8 { path: PathBuf },
    #[error("{}: a link that leads out of the catalog's folder, or not a regular file", path.display())]
    LinkAway { path: PathBuf },
    #[error("{}: more than {FILES_MAX} files", path.display())]
    TooManyFiles { path: PathBuf },
    #[error("{}: more than {DEPTH_MAX} folders deep", path.display())]
    TooDeep { path: PathBuf },
    #[error("{}: {bytes} bytes: a file may have at most {FILE_BYTES_MAX}", path.display())]
    FileTooLarge { path: PathBuf, bytes: u64 },
    #[error("{}: more than {CATALOG_BYTES_MAX} bytes in all its files", path.display())]
    CatalogTooLarge { path: PathBuf },
    #[error("{}: {what}", path.display())]
    Manifest { path: PathBuf, what: String },
    #[error(
        "{}: `name` is {name:?}: expected a lowercase letter, then lowercase letters, digits or `_`, at most {NAME_CHARS_MAX}, no word that \
         JavaScript or the session's globals already use, and nothing like the symbols e1, m1, p1",
        path.display()
    )]
    Name { path: PathBuf, name: String },
    #[error("{}: there is no index.ts or index.js", path.display())]
    NoEntry { path: PathBuf },
    #[error("{}: both {first} and {second} are there: keep one", path.display())]
    TwoEntries { path: PathBuf, first: String, second: String },
    #[error("{}:{line}: {flaw}", path.display())]
    Source { path: PathBuf, line: usize, flaw: Flaw },
    #[error("{}: nothing is exported from {entry}", path.display())]
    NoExports { path: PathBuf, entry: String },
    #[error("{}: its files can't be bundled into one script: {what}", path.display())]
    Bundle { path: PathBuf, what: String },
    #[error("two catalogs are named `{name}`: {} and {}", first.display(), second.display())]
    Duplicate { name: String, first: PathBuf, second: PathBuf },
}

/// The error at one line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    #[error("{0}")]
    Syntax(String),
    #[error("not UTF-8")]
    NotUtf8,
    #[error("imports {0:?}: only files of the catalog can be imported, by a path that begins with ./ or ../")]
    ForeignImport(String),
    #[error("imports {0:?}: there is no such file in the catalog")]
    MissingImport(String),
    #[error("imports {0:?}: with attributes, or deferred, which is not supported")]
    SpecialImport(String),
    #[error("`import(…)` is not available: import at the top of the file")]
    DynamicImport,
    #[error("`import.meta` is not available: there are no modules in a session's heap")]
    ImportMeta,
    #[error("`await` outside of a function: a catalog is evaluated at once")]
    TopLevelAwait,
    #[error("top-level `using` is not supported: it would be disposed before the catalog is used")]
    TopLevelUsing,
    #[error("`import … = ` and `export = ` are not supported: use `import … from` and `export`")]
    CommonJs,
    #[error("files import each other in a circle: {0}")]
    Circle(String),
    #[error("{specifier:?} does not export `{name}` (if it is a type, write `import type` or `export type`)")]
    NotExported { specifier: String, name: String },
    #[error("`{0}` is exported, but not declared")]
    NotDeclared(String),
    #[error("`{0}` is exported twice")]
    ExportedTwice(String),
    #[error("`{0}` is exported with `let` or `var`: an export must not change, use `const`")]
    Changing(String),
    #[error("`{0}` can't be the name of an export: expected an identifier")]
    ExportName(String),
    #[error("`{0}` is named like a symbol (e1, m1, p1…), which the session gives out itself")]
    LikeSymbol(String),
}

/// Why a pick cannot be exposed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PickError {
    #[error("there is no catalog `{catalog}`{}", nearest(near))]
    UnknownCatalog { catalog: String, near: Vec<String> },
    #[error("catalog `{catalog}` has no entity `{entity}`{}", nearest(near))]
    UnknownEntity { catalog: String, entity: String, near: Vec<String> },
    #[error("catalog `{catalog}` has changed since its symbols were assigned: a new symbol space is needed")]
    Changed { catalog: String },
}

fn nearest(near: &[String]) -> String {
    match near {
        [] => "; `catalog_search` finds what there is".to_owned(),
        names => format!("; near names: {}", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    }
}
