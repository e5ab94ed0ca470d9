//! JavaScript without comments and white space: the base heap's sources travel inside every heap, so they travel light.

use swc_common::sync::Lrc;
use swc_common::{FileName, SourceMap};
use swc_ecma_ast::EsVersion;
use swc_ecma_codegen::text_writer::JsWriter;
use swc_ecma_codegen::{Config, Emitter, Node};
use swc_ecma_parser::{EsSyntax, Syntax, parse_file_as_script};

pub fn compact(text: String) -> Result<String, String> {
    let sources: Lrc<SourceMap> = Default::default();
    let file = sources.new_source_file(FileName::Anon.into(), text);
    let syntax = Syntax::Es(EsSyntax::default());
    let script =
        parse_file_as_script(&file, syntax, EsVersion::latest(), None, &mut Vec::new()).map_err(|error| error.kind().msg().into_owned())?;
    let mut bytes = Vec::new();
    let mut emitter = Emitter {
        // Characters beyond Latin-1 would make V8 keep the whole source in two bytes a character.
        cfg: Config::default().with_minify(true).with_ascii_only(true),
        cm: sources.clone(),
        comments: None,
        wr: JsWriter::new(sources, "\n", &mut bytes, None),
    };
    script.emit_with(&mut emitter).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}
