//! One file of a catalog as a module: the original source and the plain JavaScript.

use crate::forbidden;
use crate::links::Links;
use crate::source::{Found, Language, Source};
use crate::strip::to_javascript;

pub struct Unit {
    /// The original: types, doc comments, lines.
    pub source: Source,
    pub links: Links,
    /// The JavaScript that is evaluated, without types.
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
