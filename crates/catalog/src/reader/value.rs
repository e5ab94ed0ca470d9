//! Reads constants, whose value may be a function, class, object or plain value.

use super::callable::{Callable, literal_type, type_text};
use super::{Declaration, Node, class, constant, describe, object};
use crate::entity::{Entity, EntityKind};
use swc_ecma_ast::{Callee, Expr, VarDeclarator};

pub fn variable(name: &str, declaration: &Declaration<'_>, variable: &VarDeclarator) -> Entity {
    let annotation = variable.name.as_ident().and_then(|name| name.type_ann.as_ref());
    let kind = annotation.map(|annotation| type_text(&declaration.unit.source, annotation)).or_else(|| declaration.doc.kind.clone());
    match &variable.init {
        Some(value) => entity(name, declaration, value, kind),
        None => constant(name, kind.unwrap_or_else(|| "unknown".to_owned()), &declaration.doc),
    }
}

/// `kind` is the type annotation, if there is one.
pub fn entity(name: &str, declaration: &Declaration<'_>, value: &Expr, kind: Option<String>) -> Entity {
    let value = unwrapped(value);
    let source = &declaration.unit.source;
    if let Some(callable) = Callable::of_value(source, &declaration.doc, value) {
        let entity = callable.into_entity(name, Vec::new(), &declaration.doc);
        // `const f: Reader = (text) => …`: the parameter types come from the named type.
        return match kind {
            Some(kind) => Entity { signature: format!("{name}: {kind}"), ..entity },
            None => entity,
        };
    }
    match value {
        Expr::Class(expression) => class::entity(name, declaration, &expression.class),
        Expr::Object(literal) => {
            let entity = object::literal(name, declaration, literal);
            match kind {
                Some(kind) => Entity { signature: format!("{name}: {kind}"), ..entity },
                None => entity,
            }
        }
        Expr::Ident(other) => alias(name, declaration, &other.sym, kind),
        value => {
            let kind = kind.or_else(|| literal_type(value)).unwrap_or_else(|| "unknown".to_owned());
            constant(name, kind, &declaration.doc)
        }
    }
}

/// `export const average = mean`: describes the target under this name. Follows one step only, so that circular aliases end.
fn alias(name: &str, declaration: &Declaration<'_>, local: &str, kind: Option<String>) -> Entity {
    let plain = || constant(name, kind.clone().unwrap_or_else(|| "unknown".to_owned()), &declaration.doc);
    let Some((file, local)) = declaration.follow(local) else { return plain() };
    let Some(mut other) = Declaration::find(declaration.graph, &file, &local) else { return plain() };
    if matches!(&other.node, Node::Variable(variable) if variable.init.as_deref().is_some_and(|value| unwrapped(value).is_ident())) {
        return plain();
    }
    if !declaration.doc.summary.is_empty() {
        other.doc.summary.clone_from(&declaration.doc.summary);
    }
    let entity = describe(name, &other);
    if entity.kind == EntityKind::Constant { plain() } else { entity }
}

/// Removes wrappers that do not change the value's shape: parentheses, assertions, `Object.freeze`.
pub fn unwrapped(value: &Expr) -> &Expr {
    match value {
        Expr::Paren(inner) => unwrapped(&inner.expr),
        Expr::TsAs(inner) => unwrapped(&inner.expr),
        Expr::TsConstAssertion(inner) => unwrapped(&inner.expr),
        Expr::TsSatisfies(inner) => unwrapped(&inner.expr),
        Expr::TsNonNull(inner) => unwrapped(&inner.expr),
        Expr::TsTypeAssertion(inner) => unwrapped(&inner.expr),
        Expr::Call(call) => match (&call.callee, call.args.as_slice()) {
            (Callee::Expr(callee), [argument]) if argument.spread.is_none() && is_freeze(callee) => unwrapped(&argument.expr),
            _ => value,
        },
        value => value,
    }
}

fn is_freeze(callee: &Expr) -> bool {
    let Expr::Member(member) = callee else { return false };
    let object = member.obj.as_ident().is_some_and(|object| object.sym == *"Object");
    object && member.prop.as_ident().is_some_and(|property| property.sym == *"freeze")
}
