//! Bundles a catalog into one JavaScript expression: a function that evaluates each module once, in its own scope, and returns the
//! namespace of the entry module.
//!
//! ```js
//! (freeze) => { "use strict";
//! const module$0 = (function () {
//! …the file, its imports and exports taken out…
//! return freeze({ __proto__: null, mean: mean }); })();
//! const module$1 = (function () { const average = module$0.mean;
//! …
//! return module$1; }
//! ```

use crate::graph::Graph;
use crate::links::{DEFAULT_LOCAL, Export, Imported};
use crate::unit::Unit;
use std::fmt::Write;
use swc_common::{Span, Spanned};
use swc_ecma_ast::{DefaultDecl, ModuleDecl, ModuleItem};

pub fn bundle(graph: &Graph) -> String {
    let names = Names::new(graph);
    let mut script = String::from("(freeze) => { \"use strict\";\n");
    for (number, file) in graph.order.iter().enumerate() {
        let unit = &graph.units[file];
        // Writing to a string cannot fail.
        let _ = write!(
            script,
            "const {} = (function () {{{}\n{}\nreturn freeze({{ __proto__: null{} }}); }})();\n",
            names.module(number),
            imports(graph, &names, file, unit),
            body(unit, &names),
            exports(graph, &names, file, unit),
        );
    }
    let _ = write!(script, "return {}; }}", names.module(graph.order.len() - 1));
    script
}

/// Names that the bundle generates and that occur nowhere in the sources.
struct Names<'a> {
    prefix: String,
    order: &'a [String],
}

impl<'a> Names<'a> {
    fn new(graph: &'a Graph) -> Self {
        let mut prefix = "module$".to_owned();
        while graph.units.values().any(|unit| unit.runtime.text().contains(&prefix)) {
            prefix.push('$');
        }
        Self { prefix, order: &graph.order }
    }

    fn module(&self, number: usize) -> String {
        format!("{}{number}", self.prefix)
    }

    fn default(&self) -> String {
        format!("{}default", self.prefix)
    }

    fn imported(&self, graph: &Graph, importer: &str, specifier: &str) -> String {
        let file = graph.resolve(importer, specifier).unwrap_or_default();
        self.module(self.order.iter().position(|done| *done == file).unwrap_or_default())
    }
}

fn imports(graph: &Graph, names: &Names<'_>, file: &str, unit: &Unit) -> String {
    let mut text = String::new();
    for import in &unit.runtime_links.imports {
        let module = names.imported(graph, file, &import.specifier);
        let local = &import.local;
        let _ = match &import.imported {
            Imported::Namespace => write!(text, " const {local} = {module};"),
            Imported::Name(name) => write!(text, " const {local} = {module}.{name};"),
        };
    }
    text
}

fn exports(graph: &Graph, names: &Names<'_>, file: &str, unit: &Unit) -> String {
    let mut text = String::new();
    for name in graph.exports[file].keys() {
        let named = unit.runtime_links.exports.iter().find_map(|export| match export {
            Export::Local { exported, local, .. } if exported == name && local == DEFAULT_LOCAL => Some(names.default()),
            Export::Local { exported, local, .. } if exported == name => Some(local.clone()),
            Export::From { exported, specifier, imported, .. } if exported == name => {
                let module = names.imported(graph, file, specifier);
                Some(match imported {
                    Imported::Namespace => module,
                    Imported::Name(original) => format!("{module}.{original}"),
                })
            }
            _ => None,
        });
        let by_star = || {
            unit.runtime_links.exports.iter().find_map(|export| match export {
                Export::All { specifier, .. } => {
                    let other = graph.resolve(file, specifier).ok()?;
                    graph.exports[&other].contains_key(name).then(|| format!("{}.{name}", names.imported(graph, file, specifier)))
                }
                _ => None,
            })
        };
        if let Some(value) = named.or_else(by_star) {
            let _ = write!(text, ", {name}: {value}");
        }
    }
    text
}

/// A range of the text and its replacement.
type Edit = (std::ops::Range<usize>, String);

/// The file as a function body. Line numbers do not change.
fn body(unit: &Unit, names: &Names<'_>) -> String {
    let mut edits: Vec<Edit> = Vec::new();
    for item in &unit.runtime.module.body {
        if let ModuleItem::ModuleDecl(declaration) = item {
            edit(unit, names, declaration, &mut edits);
        }
    }
    let text = unit.runtime.text();
    let mut out = String::with_capacity(text.len());
    // `#!` is allowed only at the start of a file.
    let mut at = if text.starts_with("#!") { text.find('\n').unwrap_or(text.len()) } else { 0 };
    for (range, with) in edits {
        out.push_str(&text[at..range.start]);
        out.push_str(&with);
        out.extend(text[range.clone()].chars().filter(|character| *character == '\n'));
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

fn edit(unit: &Unit, names: &Names<'_>, declaration: &ModuleDecl, edits: &mut Vec<Edit>) {
    let range = |span: Span| unit.runtime.range(span);
    let whole = range(declaration.span());
    // The semicolon separates it from the lines around it.
    let nameless = || (format!(";const {} = {{ default: ", names.default()), " }.default;".to_owned());
    match declaration {
        ModuleDecl::ExportDecl(export) => edits.push((whole.start..range(export.decl.span()).start, ";".to_owned())),
        ModuleDecl::ExportDefaultDecl(export) => {
            let (span, is_named) = match &export.decl {
                DefaultDecl::Class(class) => (class.span(), class.ident.is_some()),
                DefaultDecl::Fn(function) => (function.span(), function.ident.is_some()),
                _ => return,
            };
            let inner = range(span);
            let (before, after) = if is_named { (";".to_owned(), String::new()) } else { nameless() };
            edits.push((whole.start..inner.start, before));
            edits.push((inner.end..whole.end.max(inner.end), after));
        }
        ModuleDecl::ExportDefaultExpr(export) => {
            let inner = range(export.expr.span());
            let (before, after) = nameless();
            edits.push((whole.start..inner.start, before));
            edits.push((inner.end..whole.end.max(inner.end), after));
        }
        _ => edits.push((whole, ";".to_owned())),
    }
}
