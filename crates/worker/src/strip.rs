//! TypeScript to JavaScript: types become blanks, so that lines and columns stay the author's.

use crate::vm::CompileError;
use std::cell::RefCell;
use std::rc::Rc;
use swc_common::errors::{DiagnosticBuilder, Emitter, HANDLER, Handler};
use swc_common::sync::Lrc;
use swc_common::{GLOBALS, Globals, SourceMap};
use swc_ts_fast_strip::{ErrorCode, Mode, Options, TransformOutput, TsError, operate};

pub struct Stripped {
    pub code: String,
    /// Where the positions of `code` come from, when they are not the author's already.
    pub map: Option<String>,
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
        Ok(output) => Ok(Stripped { code: output.code, map: None }),
        Err((ErrorCode::UnsupportedSyntax, error)) => match run(code, Mode::Transform) {
            Ok(output) => Ok(Stripped { code: output.code, map: output.map }),
            Err(_) => Err(error),
        },
        Err((_, error)) => Err(error),
    }
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
