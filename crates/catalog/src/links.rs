//! The imports and exports of a module.

use crate::error::Flaw;
use crate::source::{Found, Source};
use swc_common::Spanned;
use swc_ecma_ast::{
    Decl, DefaultDecl, ExportSpecifier, ImportDecl, ImportPhase, ImportSpecifier, Module, ModuleDecl, ModuleExportName, ModuleItem,
    NamedExport, ObjectPatProp, Pat, Str,
};

/// The local name of an anonymous default export. It is not a valid identifier, so it cannot collide.
pub const DEFAULT_LOCAL: &str = "*default*";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Imported {
    Name(String),
    Namespace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    pub specifier: String,
    pub imported: Imported,
    pub local: String,
    pub line: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Export {
    Local { exported: String, local: String, line: usize },
    From { exported: String, specifier: String, imported: Imported, line: usize },
    All { specifier: String, line: usize },
}

/// In source order.
#[derive(Debug, Default)]
pub struct Links {
    /// Every module that is imported or re-exported from.
    pub specifiers: Vec<(String, usize)>,
    pub imports: Vec<Import>,
    pub exports: Vec<Export>,
}

impl Links {
    pub fn of(source: &Source) -> Result<Self, Found> {
        let mut links = Self::default();
        for item in &source.module.body {
            if let ModuleItem::ModuleDecl(declaration) = item {
                links.add(source, declaration)?;
            }
        }
        Ok(links)
    }

    fn add(&mut self, source: &Source, declaration: &ModuleDecl) -> Result<(), Found> {
        let line = source.line(declaration);
        match declaration {
            ModuleDecl::Import(import) => self.add_import(line, import)?,
            ModuleDecl::ExportNamed(export) => self.add_named(line, export)?,
            ModuleDecl::ExportAll(all) => {
                let specifier = specifier(&all.src, all.with.is_some(), line)?;
                self.specifiers.push((specifier.clone(), line));
                self.exports.push(Export::All { specifier, line });
            }
            ModuleDecl::ExportDecl(export) => {
                for local in declared(&export.decl) {
                    self.exports.push(Export::Local { exported: local.clone(), local, line });
                }
            }
            ModuleDecl::ExportDefaultDecl(export) => {
                let name = match &export.decl {
                    DefaultDecl::Class(class) => class.ident.as_ref(),
                    DefaultDecl::Fn(function) => function.ident.as_ref(),
                    _ => return Ok(()),
                };
                let local = name.map_or_else(|| DEFAULT_LOCAL.to_owned(), |name| name.sym.to_string());
                self.exports.push(Export::Local { exported: "default".to_owned(), local, line });
            }
            ModuleDecl::ExportDefaultExpr(_) => {
                self.exports.push(Export::Local { exported: "default".to_owned(), local: DEFAULT_LOCAL.to_owned(), line });
            }
            _ => return Err((line, Flaw::CommonJs)),
        }
        Ok(())
    }

    fn add_import(&mut self, line: usize, import: &ImportDecl) -> Result<(), Found> {
        let specifier = specifier(&import.src, import.with.is_some() || import.phase != ImportPhase::Evaluation, line)?;
        self.specifiers.push((specifier.clone(), line));
        for part in &import.specifiers {
            let imported = match part {
                ImportSpecifier::Named(named) => Imported::Name(match &named.imported {
                    Some(name) => export_name(name, line)?,
                    None => named.local.sym.to_string(),
                }),
                ImportSpecifier::Default(_) => Imported::Name("default".to_owned()),
                _ => Imported::Namespace,
            };
            self.imports.push(Import { specifier: specifier.clone(), imported, local: part.local().sym.to_string(), line });
        }
        Ok(())
    }

    fn add_named(&mut self, line: usize, export: &NamedExport) -> Result<(), Found> {
        let from = match &export.src {
            Some(source) => Some(specifier(source, export.with.is_some(), line)?),
            None => None,
        };
        if let Some(specifier) = &from {
            self.specifiers.push((specifier.clone(), line));
        }
        for part in &export.specifiers {
            let (imported, exported) = match part {
                ExportSpecifier::Named(named) => {
                    let original = export_name(&named.orig, line)?;
                    let exported = named.exported.as_ref().map(|name| export_name(name, line)).transpose()?;
                    (Imported::Name(original.clone()), exported.unwrap_or(original))
                }
                ExportSpecifier::Namespace(namespace) => (Imported::Namespace, export_name(&namespace.name, line)?),
                _ => return Err((line, Flaw::CommonJs)),
            };
            self.exports.push(match (&from, imported) {
                (Some(specifier), imported) => Export::From { exported, specifier: specifier.clone(), imported, line },
                (None, Imported::Name(local)) => Export::Local { exported, local, line },
                (None, Imported::Namespace) => return Err((line, Flaw::CommonJs)),
            });
        }
        Ok(())
    }

    pub fn import(&self, local: &str) -> Option<&Import> {
        self.imports.iter().find(|import| import.local == local)
    }

    /// The source line of an import or re-export, because generated code has different lines.
    pub fn line_of(&self, specifier: &str, name: &str) -> Option<usize> {
        let imported = Imported::Name(name.to_owned());
        let by_import =
            self.imports.iter().find(|import| import.specifier == specifier && import.imported == imported).map(|import| import.line);
        by_import.or_else(|| {
            self.exports.iter().find_map(|export| match export {
                Export::From { specifier: from, imported: what, line, .. } if from == specifier && *what == imported => Some(*line),
                _ => None,
            })
        })
    }
}

fn specifier(source: &Str, is_special: bool, line: usize) -> Result<String, Found> {
    let text = source.value.to_string_lossy().into_owned();
    if is_special { Err((line, Flaw::SpecialImport(text))) } else { Ok(text) }
}

/// Refuses export names that are not identifiers, and `__proto__`, which would set the namespace's prototype.
fn export_name(name: &ModuleExportName, line: usize) -> Result<String, Found> {
    let text = name.atom().to_string();
    match name {
        ModuleExportName::Ident(_) if text != "__proto__" => Ok(text),
        _ => Err((line, Flaw::ExportName(text))),
    }
}

/// The names that a declaration binds.
pub fn declared(declaration: &Decl) -> Vec<String> {
    let mut names = Vec::new();
    match declaration {
        Decl::Class(class) => names.push(class.ident.sym.to_string()),
        Decl::Fn(function) => names.push(function.ident.sym.to_string()),
        Decl::Var(variable) => variable.decls.iter().for_each(|declarator| bound(&declarator.name, &mut names)),
        Decl::TsEnum(enumeration) => names.push(enumeration.id.sym.to_string()),
        _ => {}
    }
    names
}

fn bound(pattern: &Pat, names: &mut Vec<String>) {
    match pattern {
        Pat::Ident(name) => names.push(name.id.sym.to_string()),
        Pat::Array(array) => array.elems.iter().flatten().for_each(|element| bound(element, names)),
        Pat::Rest(rest) => bound(&rest.arg, names),
        Pat::Assign(assign) => bound(&assign.left, names),
        Pat::Object(object) => object.props.iter().for_each(|property| match property {
            ObjectPatProp::KeyValue(pair) => bound(&pair.value, names),
            ObjectPatProp::Assign(assign) => names.push(assign.key.id.sym.to_string()),
            ObjectPatProp::Rest(rest) => bound(&rest.arg, names),
        }),
        _ => {}
    }
}

/// The declarations of a module, each with the position that its doc comment precedes.
pub fn declarations(module: &Module) -> impl Iterator<Item = (swc_common::BytePos, &Decl)> {
    module.body.iter().filter_map(|item| match item {
        ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(export)) => Some((export.span.lo(), &export.decl)),
        ModuleItem::Stmt(swc_ecma_ast::Stmt::Decl(declaration)) => Some((declaration.span_lo(), declaration)),
        _ => None,
    })
}
