//! Catalogs: libraries for agents' sessions. A catalog is a folder of JavaScript or TypeScript whose exports are described to a model under
//! short stable symbols and bound in the session's heap. This crate reads folders; it evaluates nothing and does not depend on the server,
//! store or engine.
#![forbid(unsafe_code)]

mod bundle;
mod catalog;
mod catalogs;
mod content_hash;
mod doc;
mod entity;
mod error;
mod folder;
mod forbidden;
#[doc(hidden)]
pub mod fuzzing;
mod graph;
pub mod limits;
mod links;
mod manifest;
mod near;
mod pick;
mod prompt_hash;
mod reader;
mod script;
mod search;
mod source;
mod specifier;
mod symbol;
mod symbols;
mod table;
mod unit;

pub use catalog::Catalog;
pub use catalogs::Catalogs;
pub use content_hash::ContentHash;
pub use entity::{Entity, EntityKind, Method, Parameter};
pub use error::{CatalogError, Flaw, PickError};
pub use pick::{Pick, primary, primary_entities};
pub use prompt_hash::PromptHash;
pub use script::{Warning, script, warnings};
pub use search::Hit;
pub use symbol::{InvalidSymbol, Symbol, SymbolKind};
pub use symbols::{EntitySymbols, Exposed, MethodSymbols, Symbols};
pub use table::{HEADER as TABLE_HEADER, table};
