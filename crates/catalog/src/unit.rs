//! One file of a catalog as a module: the original source and the plain JavaScript.

use crate::error::Flaw;
use crate::forbidden;
use crate::links::Links;
use crate::source::{Found, Language, Source};
use heapstead_javascript::{Goal, strip_types};

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
        let javascript = match language {
            Language::JavaScript => text.to_owned(),
            Language::TypeScript => {
                let stripped = strip_types(text, Goal::Module).map_err(|error| (error.line as usize, Flaw::Syntax(error.message)))?;
                stripped.code
            }
        };
        let runtime = Source::parse(&javascript, Language::JavaScript)?;
        let runtime_links = Links::of(&runtime)?;
        Ok(Self { source, links, runtime, runtime_links })
    }
}
