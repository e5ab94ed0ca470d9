//! TypeScript to JavaScript: types are replaced by blanks, so that lines and columns stay the author's. Where TypeScript syntax has runtime
//! effects (enums, parameter properties), code is generated for it.

use crate::SyntaxError;
use std::cell::RefCell;
use std::rc::Rc;
use swc_common::errors::{DiagnosticBuilder, Emitter, HANDLER, Handler};
use swc_common::sync::Lrc;
use swc_common::{FileName, GLOBALS, Globals, SourceMap};
use swc_ecma_ast::EsVersion;
use swc_ecma_parser::{Syntax, TsSyntax, parse_file_as_expr};
use swc_ts_fast_strip::{ErrorCode, Mode, Options, TransformOutput, TsError, operate};

pub struct Stripped {
    pub code: String,
    /// `None` if positions in `code` are the author's. Otherwise a source map: generated line and column, the author's line and column, all
    /// from 1, in the order of the generated text.
    pub segments: Option<Vec<i32>>,
}

/// A source that is only an object literal is evaluated as an object, as in a browser's console, though the grammar says it is a block.
pub fn as_object_literal(code: &str) -> Option<Stripped> {
    let trimmed = code.trim();
    if !(trimmed.starts_with('{') && trimmed.ends_with('}') && is_expression(trimmed)) {
        return None;
    }
    let start = code.len() - code.trim_start().len();
    let (before, rest) = code.split_at(start);
    let line = before.matches('\n').count() as i32 + 1;
    let column = before.chars().rev().take_while(|character| *character != '\n').count() as i32 + 1;
    Some(Stripped { code: format!("{before}({rest})"), segments: Some(vec![line, column + 1, line, column]) })
}

fn is_expression(code: &str) -> bool {
    let sources: Lrc<SourceMap> = Default::default();
    let file = sources.new_source_file(FileName::Anon.into(), code.to_owned());
    let mut errors = Vec::new();
    parse_file_as_expr(&file, Syntax::Typescript(TsSyntax::default()), EsVersion::latest(), None, &mut errors).is_ok() && errors.is_empty()
}

/// Whether a valid JavaScript source could mean something else as TypeScript: only a type argument list can, as in `f<T>(x)`.
pub fn could_be_typescript(code: &str) -> bool {
    let bytes = code.as_bytes();
    let Some(first) = bytes.iter().position(|byte| *byte == b'<') else { return false };
    bytes[first..].iter().enumerate().any(|(offset, byte)| {
        let at = first + offset;
        *byte == b'>'
            && bytes[at - 1] != b'='
            && matches!(bytes[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace()), Some(b'(' | b'`'))
    })
}

/// The grammar that a source is parsed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// A script, or a module if it has imports or exports.
    Either,
    Module,
}

pub fn strip_types(code: &str, goal: Goal) -> Result<Stripped, SyntaxError> {
    match run(code, goal, Mode::StripOnly) {
        Ok(output) => Ok(Stripped { code: output.code, segments: None }),
        Err((ErrorCode::UnsupportedSyntax, error)) => match run(code, goal, Mode::Transform) {
            Ok(output) => Ok(Stripped { code: output.code, segments: output.map.as_deref().map(segments) }),
            Err(_) => Err(error),
        },
        Err((_, error)) => Err(error),
    }
}

fn segments(map: &str) -> Vec<i32> {
    let Ok(map) = swc_sourcemap::SourceMap::from_slice(map.as_bytes()) else { return Vec::new() };
    map.tokens()
        .flat_map(|token| [token.get_dst_line(), token.get_dst_col(), token.get_src_line(), token.get_src_col()])
        .map(|from_zero| from_zero as i32 + 1)
        .collect()
}

fn run(code: &str, goal: Goal, mode: Mode) -> Result<TransformOutput, (ErrorCode, SyntaxError)> {
    let sources: Lrc<SourceMap> = Default::default();
    let first = Rc::new(RefCell::new(None));
    let handler = Handler::with_emitter(false, false, Box::new(FirstError { sources: sources.clone(), first: first.clone() }));
    let source_map = matches!(mode, Mode::Transform);
    let module = (goal == Goal::Module).then_some(true);
    let options = Options { module, mode, source_map, ..Default::default() };
    let output = GLOBALS.set(&Globals::default(), || HANDLER.set(&handler, || operate(&sources, &handler, code.to_owned(), options)));
    output.map_err(|TsError { message, code, .. }| {
        let error = first.borrow_mut().take().unwrap_or(SyntaxError { message, line: 1, column: 1 });
        (code, error)
    })
}

/// Keeps the first error of the parser.
struct FirstError {
    sources: Lrc<SourceMap>,
    first: Rc<RefCell<Option<SyntaxError>>>,
}

impl Emitter for FirstError {
    fn emit(&mut self, diagnostic: &mut DiagnosticBuilder<'_>) {
        let mut first = self.first.borrow_mut();
        if first.is_some() {
            return;
        }
        let (line, column) = match diagnostic.span.primary_span() {
            Some(span) => {
                let at = self.sources.lookup_char_pos(span.lo());
                (at.line as u32, at.col.0 as u32 + 1)
            }
            None => (1, 1),
        };
        *first = Some(SyntaxError { message: diagnostic.message(), line, column });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(code: &str) -> Stripped {
        strip_types(code, Goal::Module).expect("stripped")
    }

    #[test]
    fn types_become_blanks_and_enums_become_code() {
        assert_eq!(stripped("const a: number = 1;").code, "const a         = 1;");
        assert_eq!(stripped("import type { A } from './a'").code.trim_matches([' ', ';']), "");
        let output = stripped("export enum Colour { Red, Green = 5 }");
        assert!(output.code.contains("Colour[\"Green\"] = 5"), "{}", output.code);
        assert!(output.segments.is_some_and(|segments| segments.len() % 4 == 0 && !segments.is_empty()));
    }

    #[test]
    fn an_error_has_its_position() {
        let error = strip_types("let a = 1;\nlet b = ;", Goal::Either).err().expect("an error");
        assert_eq!((error.line, error.column), (2, 9));
    }

    #[test]
    fn only_type_argument_lists_are_ambiguous() {
        for (code, expected) in [("f<T>(x)", true), ("f<T>`x`", true), ("a < b", false), ("a => (b)", false), ("a < b && c >= (d)", false)]
        {
            assert_eq!(could_be_typescript(code), expected, "{code}");
        }
    }

    #[test]
    fn an_object_literal_gets_parentheses() {
        let literal = as_object_literal(" { a: 1 }").expect("an object");
        assert_eq!((literal.code.as_str(), literal.segments), (" ({ a: 1 })", Some(vec![1, 3, 1, 2])));
        assert!(as_object_literal("{ let a = 1 }").is_none());
    }
}
