//! The linked modules of a catalog: which file imports which, the order of evaluation, and the origin of each export.

use crate::error::{CatalogError, Flaw};
use crate::folder::Folder;
use crate::links::{DEFAULT_LOCAL, Export, Imported, declarations, declared};
use crate::source::{Found, Language};
use crate::specifier::resolve;
use crate::unit::Unit;
use std::collections::{BTreeMap, BTreeSet};
use swc_ecma_ast::{Decl, VarDeclKind};

/// Where an exported value is defined.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    Local {
        file: String,
        local: String,
    },
    /// All exports of a file as one object.
    Namespace {
        file: String,
    },
}

/// The exports of a module by name.
pub type Exports = BTreeMap<String, Origin>;

pub struct Graph {
    pub units: BTreeMap<String, Unit>,
    pub entry: String,
    /// Files in order of evaluation, each after its imports. The entry is last.
    pub order: Vec<String>,
    pub exports: BTreeMap<String, Exports>,
}

impl Graph {
    pub fn link(folder: &Folder) -> Result<Self, CatalogError> {
        let at = |file: &str, (line, flaw): Found| CatalogError::Source { path: folder.path(file), line, flaw };
        let mut units = BTreeMap::new();
        for (file, bytes) in &folder.files {
            let Some(language) = Language::of(file) else { continue };
            let text = std::str::from_utf8(bytes).map_err(|_| at(file, (1, Flaw::NotUtf8)))?;
            units.insert(file.clone(), Unit::parse(text, language).map_err(|found| at(file, found))?);
        }
        let entry = entry(folder, &units)?;
        let mut graph = Self { units, entry: entry.clone(), order: Vec::new(), exports: BTreeMap::new() };
        graph.check_specifiers().map_err(|(file, found)| at(&file, found))?;
        graph.visit(&entry, &mut Vec::new()).map_err(|(file, found)| at(&file, found))?;
        for file in graph.order.clone() {
            graph.check_imports(&file).map_err(|found| at(&file, found))?;
            let exports = graph.exports_of(&file).map_err(|found| at(&file, found))?;
            graph.exports.insert(file, exports);
        }
        Ok(graph)
    }

    /// The file that a specifier refers to. Linking has checked all of them.
    pub fn resolve(&self, importer: &str, specifier: &str) -> Result<String, Flaw> {
        resolve(importer, specifier, |file| self.units.contains_key(file))
    }

    /// The origin of a name in a module's scope.
    pub fn origin(&self, file: &str, local: &str) -> Option<Origin> {
        let unit = self.units.get(file)?;
        let Some(import) = unit.runtime_links.import(local) else {
            return Some(Origin::Local { file: file.to_owned(), local: local.to_owned() });
        };
        self.imported(file, &import.specifier, &import.imported)
    }

    fn imported(&self, importer: &str, specifier: &str, imported: &Imported) -> Option<Origin> {
        let file = self.resolve(importer, specifier).ok()?;
        match imported {
            Imported::Namespace => Some(Origin::Namespace { file }),
            Imported::Name(name) => self.exports.get(&file)?.get(name).cloned(),
        }
    }

    /// Types may be imported too, but only from files of the catalog.
    fn check_specifiers(&self) -> Result<(), (String, Found)> {
        for (file, unit) in &self.units {
            for (specifier, line) in &unit.links.specifiers {
                self.resolve(file, specifier).map_err(|flaw| (file.clone(), (*line, flaw)))?;
            }
        }
        Ok(())
    }

    fn visit(&mut self, file: &str, path: &mut Vec<String>) -> Result<(), (String, Found)> {
        if self.order.iter().any(|done| done == file) {
            return Ok(());
        }
        path.push(file.to_owned());
        let specifiers = self.units.get(file).map(|unit| unit.runtime_links.specifiers.clone()).unwrap_or_default();
        for (specifier, line) in specifiers {
            let next = self.resolve(file, &specifier).map_err(|flaw| (file.to_owned(), (line, flaw)))?;
            if let Some(from) = path.iter().position(|open| *open == next) {
                let circle = path[from..].iter().chain([&next]).cloned().collect::<Vec<_>>().join(" → ");
                return Err((file.to_owned(), (line, Flaw::Circle(circle))));
            }
            self.visit(&next, path)?;
        }
        path.pop();
        self.order.push(file.to_owned());
        Ok(())
    }

    fn check_imports(&self, file: &str) -> Result<(), Found> {
        for import in &self.units[file].runtime_links.imports {
            if self.imported(file, &import.specifier, &import.imported).is_none() {
                return Err(self.not_exported(file, &import.specifier, &import.imported, import.line));
            }
        }
        Ok(())
    }

    fn not_exported(&self, file: &str, specifier: &str, imported: &Imported, line: usize) -> Found {
        let name = match imported {
            Imported::Name(name) => name.clone(),
            Imported::Namespace => "*".to_owned(),
        };
        let line = self.units[file].links.line_of(specifier, &name).unwrap_or(line);
        (line, Flaw::NotExported { specifier: specifier.to_owned(), name })
    }

    /// Needs the exports of every module that this one imports.
    fn exports_of(&self, file: &str) -> Result<Exports, Found> {
        let own = own_names(&self.units[file])?;
        let mut exports = Exports::new();
        let mut from_all: Vec<(String, Origin, usize)> = Vec::new();
        for export in &self.units[file].runtime_links.exports {
            let (name, origin, line) = match export {
                Export::Local { exported, local, line } => {
                    let is_known = local == DEFAULT_LOCAL || own.contains(local) || self.units[file].runtime_links.import(local).is_some();
                    let origin = self.origin(file, local).filter(|_| is_known).ok_or_else(|| (*line, Flaw::NotDeclared(local.clone())))?;
                    (exported, origin, *line)
                }
                Export::From { exported, specifier, imported, line } => {
                    let missing = || self.not_exported(file, specifier, imported, *line);
                    (exported, self.imported(file, specifier, imported).ok_or_else(missing)?, *line)
                }
                Export::All { specifier, line } => {
                    let other = self.resolve(file, specifier).map_err(|flaw| (*line, flaw))?;
                    let all = self.exports.get(&other).into_iter().flatten().filter(|(name, _)| *name != "default");
                    from_all.extend(all.map(|(name, origin)| (name.clone(), origin.clone(), *line)));
                    continue;
                }
            };
            if name == "__proto__" {
                return Err((line, Flaw::ExportName(name.clone())));
            }
            if exports.insert(name.clone(), origin).is_some() {
                return Err((line, Flaw::ExportedTwice(name.clone())));
            }
        }
        let explicit: BTreeSet<String> = exports.keys().cloned().collect();
        for (name, origin, line) in from_all {
            // A named export takes precedence over a star export. Two star exports of one name must have the same origin.
            if !explicit.contains(&name) && exports.insert(name.clone(), origin.clone()).is_some_and(|other| other != origin) {
                return Err((line, Flaw::ExportedTwice(name)));
            }
        }
        Ok(exports)
    }
}

fn entry(folder: &Folder, units: &BTreeMap<String, Unit>) -> Result<String, CatalogError> {
    let mut found = ["index.ts", "index.js", "index.mjs"].into_iter().filter(|file| units.contains_key(*file));
    match (found.next(), found.next()) {
        (None, _) => Err(CatalogError::NoEntry { path: folder.root.clone() }),
        (Some(entry), None) => Ok(entry.to_owned()),
        (Some(first), Some(second)) => {
            Err(CatalogError::TwoEntries { path: folder.root.clone(), first: first.to_owned(), second: second.to_owned() })
        }
    }
}

/// The top-level names of a module. An exported variable must not be reassigned, because importers get its value, not a live binding.
fn own_names(unit: &Unit) -> Result<BTreeSet<String>, Found> {
    let exported = |name: &String| unit.links.exports.iter().any(|export| matches!(export, Export::Local { local, .. } if local == name));
    for (_, declaration) in declarations(&unit.source.module) {
        if let Decl::Var(variable) = declaration
            && variable.kind != VarDeclKind::Const
            && let Some(name) = declared(declaration).into_iter().find(exported)
        {
            return Err((unit.source.line(declaration), Flaw::Changing(name)));
        }
    }
    let by_default = unit.runtime_links.exports.iter().filter_map(|export| match export {
        Export::Local { exported, local, .. } if exported == "default" => Some(local.clone()),
        _ => None,
    });
    let own = declarations(&unit.runtime.module).flat_map(|(_, declaration)| declared(declaration));
    // `export default name;` is an expression. Only `export default function name` declares a name, which is included here.
    Ok(own.chain(by_default).collect())
}
