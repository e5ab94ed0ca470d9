//! Minifies JavaScript: exposed code is part of every heap of the session, so its size matters.

use swc_common::sync::Lrc;
use swc_common::{FileName, SourceMap};
use swc_ecma_ast::{EsVersion, Expr, Regex};
use swc_ecma_codegen::text_writer::JsWriter;
use swc_ecma_codegen::{Config, Emitter, Node};
use swc_ecma_parser::{EsSyntax, Syntax, parse_file_as_expr};
use swc_ecma_visit::{Visit, VisitWith};

/// Minifies one expression of a script. The error says what a script cannot contain.
pub fn compact(expression: &str) -> Result<String, String> {
    let sources: Lrc<SourceMap> = Default::default();
    let file = sources.new_source_file(FileName::Anon.into(), expression.to_owned());
    let mut errors = Vec::new();
    let syntax = Syntax::Es(EsSyntax { explicit_resource_management: true, ..Default::default() });
    let parsed = parse_file_as_expr(&file, syntax, EsVersion::latest(), None, &mut errors);
    let parsed = errors.into_iter().next().map_or(parsed, Err).map_err(|error| error.kind().msg().into_owned())?;
    emit(&parsed, sources)
}

fn emit(expression: &Expr, sources: Lrc<SourceMap>) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut patterns = Patterns::default();
    expression.visit_with(&mut patterns);
    let mut emitter = Emitter {
        // With characters beyond Latin-1, V8 stores the whole source with two bytes per character.
        cfg: Config::default().with_minify(true).with_ascii_only(!patterns.beyond_ascii),
        cm: sources.clone(),
        comments: None,
        wr: JsWriter::new(sources, "\n", &mut bytes, None),
    };
    expression.emit_with(&mut emitter).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// Finds regular expressions with non-ASCII text. They cannot be escaped without parsing them, because a group name takes other escapes
/// than a character.
#[derive(Default)]
struct Patterns {
    beyond_ascii: bool,
}

impl Visit for Patterns {
    fn visit_regex(&mut self, node: &Regex) {
        self.beyond_ascii |= !node.exp.is_ascii();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_white_space_go_and_directives_stay() {
        let text = "(a) => { \"use strict\"; /* why */\n  const b = { __proto__: null, a };\n return b // b\n}";
        assert_eq!(compact(text).expect("compact"), "a=>{\"use strict\";const b={__proto__:null,a};return b;}");
        assert_eq!(compact("[ '−' ]").expect("compact"), "[\"\\u2212\"]");
        assert_eq!(compact("[ /(?<ä>−)/, '−' ]").expect("compact"), "[/(?<ä>−)/,\"−\"]");
        assert!(compact("() => { return await 1 }").is_err());
    }
}
