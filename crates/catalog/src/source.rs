//! One parsed source file.

use crate::error::Flaw;
use swc_common::comments::{CommentKind, Comments, SingleThreadedComments};
use swc_common::sync::Lrc;
use swc_common::{BytePos, FileName, SourceFile, SourceMap, Span, Spanned};
use swc_ecma_ast::{EsVersion, Module};
use swc_ecma_parser::error::Error;
use swc_ecma_parser::{EsSyntax, Syntax, TsSyntax, parse_file_as_module};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    JavaScript,
    TypeScript,
}

impl Language {
    /// `None` if it is not a source file.
    pub fn of(file: &str) -> Option<Self> {
        match file.rsplit_once('.')?.1 {
            "js" | "mjs" => Some(Self::JavaScript),
            "ts" => Some(Self::TypeScript),
            _ => None,
        }
    }

    fn syntax(self) -> Syntax {
        match self {
            Self::JavaScript => Syntax::Es(EsSyntax { import_attributes: true, explicit_resource_management: true, ..Default::default() }),
            Self::TypeScript => Syntax::Typescript(TsSyntax::default()),
        }
    }
}

/// A flaw and its line, counted from 1.
pub type Found = (usize, Flaw);

pub struct Source {
    pub module: Module,
    file: Lrc<SourceFile>,
    map: Lrc<SourceMap>,
    comments: SingleThreadedComments,
}

impl Source {
    pub fn parse(text: &str, language: Language) -> Result<Self, Found> {
        let map: Lrc<SourceMap> = Default::default();
        let file = map.new_source_file(FileName::Anon.into(), text.to_owned());
        let comments = SingleThreadedComments::default();
        let mut errors = Vec::new();
        let parsed = parse_file_as_module(&file, language.syntax(), EsVersion::latest(), Some(&comments), &mut errors);
        let flaw = |error: &Error| (line_at(&map, error.span().lo()), Flaw::Syntax(error.kind().msg().into_owned()));
        match (parsed, errors.first()) {
            (Err(error), _) => Err(flaw(&error)),
            (Ok(_), Some(error)) => Err(flaw(error)),
            (Ok(module), None) => Ok(Self { module, file, map, comments }),
        }
    }

    pub fn line(&self, at: impl Spanned) -> usize {
        line_at(&self.map, at.span().lo())
    }

    /// The byte range of a span in the text.
    pub fn range(&self, span: Span) -> std::ops::Range<usize> {
        let offset = |position: BytePos| (position - self.file.start_pos).0 as usize;
        offset(span.lo())..offset(span.hi())
    }

    pub fn text(&self) -> &str {
        &self.file.src
    }

    /// The text of a node, with runs of white space collapsed.
    pub fn snippet(&self, at: impl Spanned) -> String {
        one_line(self.text().get(self.range(at.span())).unwrap_or_default())
    }

    /// The last `/** … */` before a node.
    pub fn doc(&self, at: BytePos) -> Option<String> {
        let comments = self.comments.get_leading(at)?;
        let last = comments.iter().rev().find(|comment| comment.kind == CommentKind::Block && comment.text.starts_with('*'))?;
        Some(last.text[1..].to_owned())
    }
}

fn line_at(map: &SourceMap, position: BytePos) -> usize {
    if position.is_dummy() { 1 } else { map.lookup_char_pos(position).line }
}

pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Truncates to this many characters. A truncated text ends with an ellipsis.
pub fn cut(text: String, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text,
        Some(_) => text.chars().take(chars_max - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_line_and_modules_are_strict() {
        let flaw = |text, language| Source::parse(text, language).err().expect("refused");
        assert_eq!(flaw("let a = 1;\nlet = ;", Language::JavaScript).0, 2);
        assert_eq!(flaw("\n\nwith (a) {}", Language::JavaScript).0, 3);
        assert_eq!(flaw("const a: number = 1;", Language::JavaScript).0, 1);
        assert!(Source::parse("const a: number = 1;", Language::TypeScript).is_ok());
    }

    #[test]
    fn long_texts_are_cut_at_characters() {
        assert_eq!(cut("äöü".to_owned(), 3), "äöü");
        assert_eq!(cut("äöüß".to_owned(), 3), "äö…");
        assert_eq!(one_line(" a\n  b\tc "), "a b c");
    }
}
