//! TypeScript to JavaScript: types become blanks, so that lines and columns stay the author's.

use crate::vm::CompileError;
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
    /// Where the positions of `code` come from, when they are not the author's already: generated line and column, the author's line and
    /// column, all from 1, in the order of the generated text.
    pub segments: Option<Vec<i32>>,
}

/// An object literal alone on the line means an object to whoever types it, as in a browser's console, though the grammar says block.
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

/// Whether a source that is JavaScript could mean something else as TypeScript: only a type argument list can, as in `f<T>(x)`.
pub fn is_ambiguous(code: &str) -> bool {
    let bytes = code.as_bytes();
    let Some(first) = bytes.iter().position(|byte| *byte == b'<') else { return false };
    bytes[first..].iter().enumerate().any(|(offset, byte)| {
        let at = first + offset;
        *byte == b'>'
            && bytes[at - 1] != b'='
            && matches!(bytes[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace()), Some(b'(' | b'`'))
    })
}

/// Strips types; where they are more than annotations (enums, parameter properties), generates code for them.
pub fn strip(code: &str) -> Result<Stripped, CompileError> {
    match run(code, Mode::StripOnly) {
        Ok(output) => Ok(Stripped { code: output.code, segments: None }),
        Err((ErrorCode::UnsupportedSyntax, error)) => match run(code, Mode::Transform) {
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

fn run(code: &str, mode: Mode) -> Result<TransformOutput, (ErrorCode, CompileError)> {
    let sources: Lrc<SourceMap> = Default::default();
    let first = Rc::new(RefCell::new(None));
    let handler = Handler::with_emitter(false, false, Box::new(FirstError { sources: sources.clone(), first: first.clone() }));
    let source_map = matches!(mode, Mode::Transform);
    let options = Options { mode, source_map, ..Default::default() };
    let output = GLOBALS.set(&Globals::default(), || HANDLER.set(&handler, || operate(&sources, &handler, code.to_owned(), options)));
    output.map_err(|TsError { message, code, .. }| {
        let error = first.borrow_mut().take().unwrap_or(CompileError { message: format!("SyntaxError: {message}"), line: 1, column: 1 });
        (code, error)
    })
}

/// Keeps the first complaint of the parser.
struct FirstError {
    sources: Lrc<SourceMap>,
    first: Rc<RefCell<Option<CompileError>>>,
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
        *first = Some(CompileError { message: format!("SyntaxError: {}", diagnostic.message()), line, column });
    }
}
