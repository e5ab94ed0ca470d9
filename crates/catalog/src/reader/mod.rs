//! Turns the syntax tree into entities: the kind of an export, its signature and its documentation.

mod callable;
mod class;
mod object;
mod value;

use crate::doc::Doc;
use crate::entity::{Entity, EntityKind};
use crate::error::Flaw;
use crate::graph::{Graph, Origin};
use crate::limits::SIGNATURE_CHARS_MAX;
use crate::links::{DEFAULT_LOCAL, declarations, declared};
use crate::source::{Found, cut};
use crate::symbol::Symbol;
use crate::unit::Unit;
use callable::Callable;
use swc_common::BytePos;
use swc_ecma_ast::{Class, Decl, DefaultDecl, Expr, FnDecl, Function, ModuleDecl, ModuleItem, TsEnumDecl, VarDeclarator};

/// All entities of a catalog by name. An error includes its file.
pub fn entities(graph: &Graph) -> Result<Vec<Entity>, (String, Found)> {
    graph.exports[&graph.entry].iter().map(|(name, origin)| entity(graph, name, origin)).collect()
}

fn entity(graph: &Graph, name: &str, origin: &Origin) -> Result<Entity, (String, Found)> {
    let entity = match origin {
        Origin::Namespace { file } => object::namespace(graph, name, file),
        Origin::Local { file, local } => local_entity(graph, name, file, local),
    };
    let names = [&entity.name].into_iter().chain(entity.methods.iter().map(|method| &method.name));
    if let Some(name) = names.into_iter().find(|name| Symbol::is_like(name)) {
        let (file, line) = place(graph, origin);
        return Err((file, (line, Flaw::LikeSymbol(name.clone()))));
    }
    Ok(Entity { signature: cut(entity.signature, SIGNATURE_CHARS_MAX), ..entity })
}

fn place(graph: &Graph, origin: &Origin) -> (String, usize) {
    match origin {
        Origin::Namespace { file } => (file.clone(), 1),
        Origin::Local { file, local } => {
            let source = &graph.units[file].source;
            let mut declarations = declarations(&source.module);
            let found = declarations.find(|(_, declaration)| declared(declaration).iter().any(|name| name == local));
            (file.clone(), found.map_or(1, |(_, declaration)| source.line(declaration)))
        }
    }
}

/// The declaration that a name refers to.
pub enum Node<'a> {
    /// The implementation, and the overloads declared before it.
    Function(&'a Function, Vec<&'a Function>),
    Class(&'a Class),
    Variable(&'a VarDeclarator),
    Enum(&'a TsEnumDecl),
    Value(&'a Expr),
    /// A TypeScript namespace, or a name bound by a destructuring pattern.
    Unknown,
}

/// A declaration with its file and its doc comment.
pub struct Declaration<'a> {
    pub graph: &'a Graph,
    pub file: &'a str,
    pub unit: &'a Unit,
    pub node: Node<'a>,
    pub doc: Doc,
}

impl<'a> Declaration<'a> {
    pub fn find(graph: &'a Graph, file: &'a str, local: &str) -> Option<Self> {
        let unit = graph.units.get(file)?;
        let (at, node) = if local == DEFAULT_LOCAL { default_export(unit)? } else { named(unit, local) };
        let doc = at.and_then(|at| unit.source.doc(at)).map(|comment| Doc::parse(&comment)).unwrap_or_default();
        Some(Self { graph, file, unit, node, doc })
    }

    /// The declaration that an identifier in this file refers to.
    pub fn follow(&self, local: &str) -> Option<(String, String)> {
        match self.graph.origin(self.file, local)? {
            Origin::Local { file, local } => Some((file, local)),
            Origin::Namespace { .. } => None,
        }
    }
}

fn named<'a>(unit: &'a Unit, local: &str) -> (Option<BytePos>, Node<'a>) {
    let mut functions: Vec<(BytePos, &FnDecl)> = Vec::new();
    for (at, declaration) in declarations(&unit.source.module) {
        match declaration {
            Decl::Fn(function) if function.ident.sym == *local => functions.push((at, function)),
            Decl::Class(class) if class.ident.sym == *local => return (Some(at), Node::Class(&class.class)),
            Decl::TsEnum(enumeration) if enumeration.id.sym == *local => return (Some(at), Node::Enum(enumeration)),
            Decl::Var(variable) if declared(declaration).iter().any(|name| name == local) => {
                let by_name = |declarator: &&VarDeclarator| declarator.name.as_ident().is_some_and(|name| name.id.sym == *local);
                return (Some(at), variable.decls.iter().find(by_name).map_or(Node::Unknown, Node::Variable));
            }
            _ => {}
        }
    }
    let documented = functions.iter().map(|(at, _)| *at).find(|at| unit.source.doc(*at).is_some());
    match functions.pop() {
        Some((at, last)) => {
            let overloads = functions.iter().map(|(_, function)| &*function.function).collect();
            (documented.or(Some(at)), Node::Function(&last.function, overloads))
        }
        None => default_export(unit).filter(|(_, node)| is_named(unit, node, local)).unwrap_or((None, Node::Unknown)),
    }
}

/// Whether the default export is the function or class with this name.
fn is_named(unit: &Unit, node: &Node<'_>, local: &str) -> bool {
    let exported = unit.links.exports.iter().any(
        |export| matches!(export, crate::links::Export::Local { exported, local: name, .. } if exported == "default" && name == local),
    );
    exported && matches!(node, Node::Function(..) | Node::Class(_))
}

fn default_export(unit: &Unit) -> Option<(Option<BytePos>, Node<'_>)> {
    unit.source.module.body.iter().find_map(|item| match item {
        ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultDecl(export)) => match &export.decl {
            DefaultDecl::Class(class) => Some((Some(export.span.lo()), Node::Class(&class.class))),
            DefaultDecl::Fn(function) => Some((Some(export.span.lo()), Node::Function(&function.function, Vec::new()))),
            _ => None,
        },
        ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultExpr(export)) => Some((Some(export.span.lo()), Node::Value(&export.expr))),
        _ => None,
    })
}

fn local_entity(graph: &Graph, name: &str, file: &str, local: &str) -> Entity {
    match Declaration::find(graph, file, local) {
        Some(declaration) => describe(name, &declaration),
        None => constant(name, "unknown".to_owned(), &Doc::default()),
    }
}

fn describe(name: &str, declaration: &Declaration<'_>) -> Entity {
    match &declaration.node {
        Node::Function(function, overloads) => {
            let callable = Callable::of_function(&declaration.unit.source, &declaration.doc, function);
            let overloads = overloads.iter().map(|overload| Callable::of_function(&declaration.unit.source, &declaration.doc, overload));
            callable.into_entity(name, overloads.collect(), &declaration.doc)
        }
        Node::Class(class) => class::entity(name, declaration, class),
        Node::Enum(enumeration) => object::enumeration(name, declaration, enumeration),
        Node::Variable(variable) => value::variable(name, declaration, variable),
        Node::Value(value) => value::entity(name, declaration, value, None),
        Node::Unknown => constant(name, declaration.doc.kind.clone().unwrap_or_else(|| "unknown".to_owned()), &declaration.doc),
    }
}

fn constant(name: &str, kind: String, doc: &Doc) -> Entity {
    Entity {
        name: name.to_owned(),
        kind: EntityKind::Constant,
        signature: format!("{name}: {kind}"),
        description: doc.summary.clone(),
        parameters: Vec::new(),
        methods: Vec::new(),
    }
}
