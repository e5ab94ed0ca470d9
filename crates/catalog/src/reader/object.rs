//! Reads object literals, enums, and modules exported as an object.

use super::callable::{Callable, literal_type};
use super::class::key_name;
use super::value::unwrapped;
use super::{Declaration, Node, entity as read_entity};
use crate::doc::Doc;
use crate::entity::{Entity, EntityKind, Method};
use crate::graph::{Graph, Origin};
use swc_common::Spanned;
use swc_ecma_ast::{Expr, ObjectLit, Prop, PropOrSpread, TsEnumDecl, TsEnumMemberId};

pub fn literal(name: &str, declaration: &Declaration<'_>, object: &ObjectLit) -> Entity {
    let mut methods: Vec<Method> = Vec::new();
    let mut shown = Vec::new();
    let source = &declaration.unit.source;
    for property in object.props.iter().filter_map(PropOrSpread::as_prop) {
        let doc = source.doc(property.span_lo()).map(|comment| Doc::parse(&comment)).unwrap_or_default();
        if doc.is_private {
            continue;
        }
        match member(declaration, &doc, property) {
            Some(Member::Method(method)) => {
                shown.push(method.signature.clone());
                // A later member of the same name overrides an earlier one.
                methods.retain(|other| other.name != method.name);
                methods.push(method);
            }
            Some(Member::Value(text)) => shown.push(text),
            None => {}
        }
    }
    object_entity(name, shown, methods, &declaration.doc)
}

fn object_entity(name: &str, shown: Vec<String>, methods: Vec<Method>, doc: &Doc) -> Entity {
    Entity {
        name: name.to_owned(),
        kind: EntityKind::Object,
        signature: format!("{name}: {{ {} }}", shown.join("; ")),
        description: doc.summary.clone(),
        parameters: Vec::new(),
        methods,
    }
}

enum Member {
    Method(Method),
    Value(String),
}

fn member(declaration: &Declaration<'_>, doc: &Doc, property: &Prop) -> Option<Member> {
    let source = &declaration.unit.source;
    match property {
        Prop::Method(method) => {
            let name = key_name(&method.key)?;
            Some(Member::Method(Callable::of_function(source, doc, &method.function).into_method(&name, true, doc)))
        }
        Prop::Shorthand(name) => Some(reference(declaration, &name.sym, &name.sym)),
        Prop::KeyValue(pair) => {
            let name = key_name(&pair.key)?;
            let value = unwrapped(&pair.value);
            Some(match (Callable::of_value(source, doc, value), value) {
                (Some(callable), _) => Member::Method(callable.into_method(&name, true, doc)),
                (None, Expr::Ident(other)) => reference(declaration, &name, &other.sym),
                (None, value) => Member::Value(format!("{name}: {}", literal_type(value).unwrap_or_else(|| "unknown".to_owned()))),
            })
        }
        Prop::Getter(getter) => {
            let name = key_name(&getter.key)?;
            let kind = getter.function.return_type.as_ref().map(|annotation| super::callable::type_text(source, annotation));
            let kind = kind.or_else(|| doc.returns.clone()).unwrap_or_else(|| "unknown".to_owned());
            Some(Member::Value(format!("readonly {name}: {kind}")))
        }
        _ => None,
    }
}

/// A member that refers to a declaration elsewhere.
fn reference(declaration: &Declaration<'_>, name: &str, local: &str) -> Member {
    let unknown = || Member::Value(format!("{name}: unknown"));
    let Some((file, local)) = declaration.follow(local) else { return unknown() };
    let Some(other) = Declaration::find(declaration.graph, &file, &local) else { return unknown() };
    // Functions only, because other references could be circular.
    let source = &other.unit.source;
    let callable = match &other.node {
        Node::Function(function, _) => Some(Callable::of_function(source, &other.doc, function)),
        Node::Variable(variable) => variable.init.as_ref().and_then(|value| Callable::of_value(source, &other.doc, unwrapped(value))),
        _ => None,
    };
    match callable {
        Some(callable) => Member::Method(callable.into_method(name, true, &other.doc)),
        None => unknown(),
    }
}

pub fn enumeration(name: &str, declaration: &Declaration<'_>, enumeration: &TsEnumDecl) -> Entity {
    let members = enumeration.members.iter().map(|member| match &member.id {
        TsEnumMemberId::Ident(name) => name.sym.to_string(),
        TsEnumMemberId::Str(text) => format!("{:?}", text.value.to_string_lossy()),
    });
    let members = members.collect::<Vec<_>>().join(", ");
    let entity = object_entity(name, Vec::new(), Vec::new(), &declaration.doc);
    Entity { signature: format!("enum {name} {{ {members} }}"), ..entity }
}

/// `export * as name from "./file"`: the file's functions become methods.
pub fn namespace(graph: &Graph, name: &str, file: &str) -> Entity {
    let mut methods = Vec::new();
    let mut shown = Vec::new();
    for (member, origin) in &graph.exports[file] {
        // One level only, because nested namespaces could refer to each other and multiply.
        let Origin::Local { .. } = origin else {
            shown.push(format!("{member}: object"));
            continue;
        };
        let Ok(entity) = read_entity(graph, member, origin) else { continue };
        shown.push(entity.signature.clone());
        if entity.kind == EntityKind::Function {
            let Entity { name, signature, description, parameters, .. } = entity;
            methods.push(Method { name, is_static: true, signature, description, parameters });
        }
    }
    object_entity(name, shown, methods, &Doc::default())
}
