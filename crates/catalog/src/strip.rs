//! TypeScript to JavaScript: blanks out types, and generates code where TypeScript syntax has runtime effects (enums, parameter
//! properties).

use crate::error::Flaw;
use crate::source::{Found, Language};
use swc_common::errors::{DiagnosticBuilder, Emitter, HANDLER, Handler};
use swc_common::sync::Lrc;
use swc_common::{GLOBALS, Globals, SourceMap};
use swc_ts_fast_strip::{ErrorCode, Mode, Options, TsError, operate};

pub fn to_javascript(text: &str, language: Language) -> Result<String, Found> {
    match language {
        Language::JavaScript => Ok(text.to_owned()),
        Language::TypeScript => run(text, Mode::StripOnly)
            .or_else(|error| match error.code {
                ErrorCode::UnsupportedSyntax => run(text, Mode::Transform),
                _ => Err(error),
            })
            .map_err(|error| (1, Flaw::Syntax(error.message))),
    }
}

fn run(text: &str, mode: Mode) -> Result<String, TsError> {
    let sources: Lrc<SourceMap> = Default::default();
    let handler = Handler::with_emitter(false, false, Box::new(Silent));
    let options = Options { module: Some(true), mode, ..Default::default() };
    GLOBALS
        .set(&Globals::default(), || HANDLER.set(&handler, || operate(&sources, &handler, text.to_owned(), options)))
        .map(|output| output.code)
}

/// Discards diagnostics: the file has been parsed before, and the stripper's errors are in its result.
struct Silent;

impl Emitter for Silent {
    fn emit(&mut self, _: &mut DiagnosticBuilder<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_become_blanks_and_enums_become_code() {
        let stripped = |text| to_javascript(text, Language::TypeScript).expect("stripped");
        assert_eq!(stripped("const a: number = 1;"), "const a         = 1;");
        assert_eq!(stripped("import type { A } from './a'").trim_matches([' ', ';']), "");
        let code = stripped("export enum Colour { Red, Green = 5 }");
        assert!(code.contains("Colour[\"Green\"] = 5") || code.contains("Colour[Colour[\"Green\"] = 5]"), "{code}");
        assert_eq!(to_javascript("const a = b < c;", Language::JavaScript).expect("as it is"), "const a = b < c;");
    }
}
