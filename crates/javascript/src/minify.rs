//! Minifies JavaScript: sources in a heap are part of every snapshot of it, so their size matters.

use swc_common::sync::Lrc;
use swc_common::{FileName, SourceFile, SourceMap};
use swc_ecma_ast::{EsVersion, Regex};
use swc_ecma_codegen::text_writer::JsWriter;
use swc_ecma_codegen::{Config, Emitter, Node};
use swc_ecma_parser::error::Error;
use swc_ecma_parser::{EsSyntax, Syntax, parse_file_as_expr, parse_file_as_script};
use swc_ecma_visit::{Visit, VisitWith};

type Parse<T> = fn(&SourceFile, Syntax, EsVersion, &mut Vec<Error>) -> Result<T, Error>;

/// Minifies a script. The error is the parser's.
pub fn minify_script(text: &str) -> Result<String, String> {
    minify(text, |file, syntax, version, errors| parse_file_as_script(file, syntax, version, None, errors))
}

/// Minifies one expression of a script. The error says what a script cannot contain.
pub fn minify_expression(text: &str) -> Result<String, String> {
    minify(text, |file, syntax, version, errors| parse_file_as_expr(file, syntax, version, None, errors))
}

fn minify<T: Node + VisitWith<NonAsciiRegex>>(text: &str, parse: Parse<T>) -> Result<String, String> {
    let sources: Lrc<SourceMap> = Default::default();
    let file = sources.new_source_file(FileName::Anon.into(), text.to_owned());
    let mut errors = Vec::new();
    let syntax = Syntax::Es(EsSyntax { explicit_resource_management: true, ..Default::default() });
    let parsed = parse(&file, syntax, EsVersion::latest(), &mut errors);
    let parsed = errors.into_iter().next().map_or(parsed, Err).map_err(|error| error.kind().msg().into_owned())?;
    let mut regexes = NonAsciiRegex::default();
    parsed.visit_with(&mut regexes);
    let mut bytes = Vec::new();
    let mut emitter = Emitter {
        // With characters beyond Latin-1, V8 stores the whole source with two bytes per character.
        cfg: Config::default().with_minify(true).with_ascii_only(!regexes.found),
        cm: sources.clone(),
        comments: None,
        wr: JsWriter::new(sources, "\n", &mut bytes, None),
    };
    parsed.emit_with(&mut emitter).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// Finds regular expressions with non-ASCII text. They cannot be escaped without parsing them, because a group name takes other escapes
/// than a character.
#[derive(Default)]
struct NonAsciiRegex {
    found: bool,
}

impl Visit for NonAsciiRegex {
    fn visit_regex(&mut self, node: &Regex) {
        self.found |= !node.exp.is_ascii();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_white_space_are_removed_and_directives_stay() {
        let text = "(a) => { \"use strict\"; /* why */\n  const b = { __proto__: null, a };\n return b // b\n}";
        for (text, expected) in [
            (text, "a=>{\"use strict\";const b={__proto__:null,a};return b;}"),
            ("[ '−' ]", "[\"\\u2212\"]"),
            ("[ /(?<ä>−)/, '−' ]", "[/(?<ä>−)/,\"−\"]"),
        ] {
            assert_eq!(minify_expression(text).as_deref(), Ok(expected));
        }
        assert_eq!(minify_script("// why\nlet a = 1;\nlet b = 2;").as_deref(), Ok("let a=1;let b=2;"));
    }

    #[test]
    fn syntax_errors_are_reported() {
        assert!(minify_expression("() => { return await 1 }").is_err());
        assert!(minify_script("let a = ;").is_err());
    }
}
