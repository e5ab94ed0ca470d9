//! Reads classes: constructor, public methods and properties, including inherited ones.

use super::callable::{Callable, list, parameter, property_parameter, type_text};
use super::{Declaration, Node};
use crate::doc::Doc;
use crate::entity::{Entity, EntityKind, Method, Parameter};
use crate::limits::BASES_MAX;
use crate::source::Source;
use swc_common::Spanned;
use swc_ecma_ast::{Accessibility, Class, ClassMember, ClassMethod, ClassProp, Constructor, MethodKind, ParamOrTsParamProp, PropName};

#[derive(Default)]
struct Members {
    /// `None` if the class inherits its constructor.
    constructor: Option<Vec<Parameter>>,
    methods: Vec<Method>,
    /// Name and signature text.
    properties: Vec<(String, String)>,
}

pub fn entity(name: &str, declaration: &Declaration<'_>, class: &Class) -> Entity {
    let members = members(declaration, class, BASES_MAX);
    let parameters = members.constructor.unwrap_or_default();
    let types = class.type_params.as_ref().map(|list| declaration.unit.source.snippet(&**list)).unwrap_or_default();
    let properties = match members.properties.as_slice() {
        [] => String::new(),
        some => format!(" {{ {} }}", some.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("; ")),
    };
    Entity {
        name: name.to_owned(),
        kind: EntityKind::Class,
        signature: format!("class {name}{types}({}){properties}", list(&parameters)),
        description: declaration.doc.summary.clone(),
        parameters,
        methods: members.methods,
    }
}

fn members(declaration: &Declaration<'_>, class: &Class, bases_left: usize) -> Members {
    let mut members = own_members(&declaration.unit.source, class);
    let base = class.super_class.as_ref().and_then(|base| base.as_ident()).filter(|_| bases_left > 0);
    let Some((file, local)) = base.and_then(|base| declaration.follow(&base.sym)) else { return members };
    let Some(base) = Declaration::find(declaration.graph, &file, &local) else { return members };
    let Node::Class(base_class) = base.node else { return members };
    let inherited = self::members(&base, base_class, bases_left - 1);
    members.constructor = members.constructor.or(inherited.constructor);
    for method in inherited.methods {
        if !members.methods.iter().any(|own| own.name == method.name && own.is_static == method.is_static) {
            members.methods.push(method);
        }
    }
    for (name, text) in inherited.properties {
        if !members.properties.iter().any(|(own, _)| *own == name) {
            members.properties.push((name, text));
        }
    }
    members
}

fn own_members(source: &Source, class: &Class) -> Members {
    let mut members = Members::default();
    for member in &class.body {
        let doc = source.doc(member.span_lo()).map(|comment| Doc::parse(&comment)).unwrap_or_default();
        if doc.is_private {
            continue;
        }
        match member {
            ClassMember::Constructor(constructor) if constructor.body.is_some() => {
                members.constructor = Some(constructor_parameters(source, &doc, constructor, &mut members.properties));
            }
            ClassMember::Method(method) if is_public(method.accessibility) => members.add_method(source, &doc, method),
            ClassMember::ClassProp(property) if is_public(property.accessibility) && !property.declare => {
                members.add_property(source, &doc, property);
            }
            _ => {}
        }
    }
    members
}

impl Members {
    fn add_method(&mut self, source: &Source, doc: &Doc, method: &ClassMethod) {
        let Some(name) = key_name(&method.key) else { return };
        let function = &method.function;
        match method.kind {
            MethodKind::Method if function.body.is_some() => {
                let callable = Callable::of_function(source, doc, function);
                self.methods.push(callable.into_method(&name, method.is_static, doc));
            }
            MethodKind::Getter => {
                let kind = function.return_type.as_ref().map(|annotation| type_text(source, annotation));
                let kind = kind.or_else(|| doc.returns.clone()).or_else(|| doc.kind.clone()).unwrap_or_else(|| "unknown".to_owned());
                self.show(name, "readonly ", method.is_static, &kind);
            }
            _ => {}
        }
    }

    fn add_property(&mut self, source: &Source, doc: &Doc, property: &ClassProp) {
        let Some(name) = key_name(&property.key) else { return };
        let callable = property.value.as_ref().and_then(|value| Callable::of_value(source, doc, value));
        match callable {
            // An arrow function in an instance property is not on the prototype. It is listed but gets no symbol.
            Some(callable) if property.is_static => self.methods.push(callable.into_method(&name, true, doc)),
            Some(callable) => {
                let text = callable.signature(&name);
                self.properties.push((name, text));
            }
            None => {
                let annotated = property.type_ann.as_ref().map(|annotation| type_text(source, annotation));
                let kind = annotated.or_else(|| doc.kind.clone());
                let kind = kind.or_else(|| property.value.as_ref().and_then(|value| super::callable::literal_type(value)));
                let readonly = if property.readonly { "readonly " } else { "" };
                self.show(name, readonly, property.is_static, &kind.unwrap_or_else(|| "unknown".to_owned()));
            }
        }
    }

    fn show(&mut self, name: String, readonly: &str, is_static: bool, kind: &str) {
        let of_class = if is_static { "static " } else { "" };
        let text = format!("{of_class}{readonly}{name}: {kind}");
        self.properties.push((name, text));
    }
}

fn constructor_parameters(source: &Source, doc: &Doc, constructor: &Constructor, properties: &mut Vec<(String, String)>) -> Vec<Parameter> {
    let mut all = Vec::new();
    for (index, parameter) in constructor.params.iter().enumerate() {
        match parameter {
            ParamOrTsParamProp::Param(parameter) => all.push(self::parameter(source, doc, index, &parameter.pat)),
            ParamOrTsParamProp::TsParamProp(property) => {
                let parameter = property_parameter(source, doc, index, &property.param);
                if is_public(property.accessibility) {
                    let readonly = if property.readonly { "readonly " } else { "" };
                    properties.push((parameter.name.clone(), format!("{readonly}{}: {}", parameter.name, parameter.kind)));
                }
                all.push(parameter);
            }
        }
    }
    all
}

fn is_public(accessibility: Option<Accessibility>) -> bool {
    matches!(accessibility, None | Some(Accessibility::Public))
}

/// `None` for computed keys.
pub fn key_name(key: &PropName) -> Option<String> {
    match key {
        PropName::Ident(name) => Some(name.sym.to_string()),
        _ => None,
    }
}
