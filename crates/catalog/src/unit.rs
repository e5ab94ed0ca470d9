//! One file of a catalog as a module: as its author wrote it, and as plain JavaScript.

use crate::forbidden;
use crate::links::Links;
use crate::source::{Found, Language, Source};
use crate::strip::to_javascript;

pub struct Unit {
    /// As written: types, doc comments, lines.
    pub source: Source,
    pub links: Links,
    /// What is evaluated: types and all that is only for them gone.
    pub runtime: Source,
    pub runtime_links: Links,
}

impl Unit {
    pub fn parse(text: &str, language: Language) -> Result<Self, Found> {
        let source = Source::parse(text, language)?;
        forbidden::check(&source)?;
        let links = Links::of(&source)?;
        let runtime = Source::parse(&to_javascript(text, language)?, Language::JavaScript)?;
        let runtime_links = Links::of(&runtime)?;
        Ok(Self { source, links, runtime, runtime_links })
    }
}
