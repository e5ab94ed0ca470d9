//! Reads functions, methods and constructors: their parameters and signatures.

use crate::doc::Doc;
use crate::entity::{Entity, EntityKind, Method, Parameter};
use crate::limits::{DEFAULT_CHARS_MAX, SIGNATURE_CHARS_MAX, TYPE_CHARS_MAX};
use crate::source::{Source, cut};
use swc_ecma_ast::{ArrowExpr, Expr, Function, Lit, Pat, TsParamPropParam, TsTypeAnn, UnaryOp};

#[derive(Default)]
pub struct Callable {
    pub parameters: Vec<Parameter>,
    returns: Option<String>,
    type_parameters: String,
    is_async: bool,
    is_generator: bool,
}

impl Callable {
    pub fn of_function(source: &Source, doc: &Doc, function: &Function) -> Self {
        Self {
            parameters: parameters(source, doc, function.params.iter().map(|parameter| &parameter.pat)),
            returns: returns(source, doc, function.return_type.as_deref()),
            type_parameters: function.type_params.as_ref().map(|list| source.snippet(&**list)).unwrap_or_default(),
            is_async: function.is_async,
            is_generator: function.is_generator,
        }
    }

    pub fn of_arrow(source: &Source, doc: &Doc, arrow: &ArrowExpr) -> Self {
        Self {
            parameters: parameters(source, doc, arrow.params.iter()),
            returns: returns(source, doc, arrow.return_type.as_deref()),
            type_parameters: arrow.type_params.as_ref().map(|list| source.snippet(&**list)).unwrap_or_default(),
            is_async: arrow.is_async,
            is_generator: false,
        }
    }

    /// Reads function expressions and arrow functions.
    pub fn of_value(source: &Source, doc: &Doc, value: &Expr) -> Option<Self> {
        match value {
            Expr::Arrow(arrow) => Some(Self::of_arrow(source, doc, arrow)),
            Expr::Fn(function) => Some(Self::of_function(source, doc, &function.function)),
            _ => None,
        }
    }

    pub fn signature(&self, name: &str) -> String {
        let Self { type_parameters, .. } = self;
        let before = match (self.is_async, self.is_generator) {
            (true, true) => "async *",
            (true, false) => "async ",
            (false, true) => "*",
            (false, false) => "",
        };
        let returns = self.returns.as_ref().map(|kind| format!(": {kind}")).unwrap_or_default();
        format!("{before}{name}{type_parameters}({}){returns}", list(&self.parameters))
    }

    pub fn into_entity(self, name: &str, overloads: Vec<Self>, doc: &Doc) -> Entity {
        let shown = if overloads.is_empty() { vec![&self] } else { overloads.iter().collect() };
        let signature = shown.iter().map(|callable| callable.signature(name)).collect::<Vec<_>>().join("; ");
        Entity {
            name: name.to_owned(),
            kind: EntityKind::Function,
            signature,
            description: doc.summary.clone(),
            parameters: self.parameters,
            methods: Vec::new(),
        }
    }

    pub fn into_method(self, name: &str, is_static: bool, doc: &Doc) -> Method {
        let signature = cut(self.signature(name), SIGNATURE_CHARS_MAX);
        Method { name: name.to_owned(), is_static, signature, description: doc.summary.clone(), parameters: self.parameters }
    }
}

/// The parameters as they appear between the parentheses of a signature.
pub fn list(parameters: &[Parameter]) -> String {
    parameters.iter().map(Parameter::signature).collect::<Vec<_>>().join(", ")
}

pub fn parameters<'a>(source: &Source, doc: &Doc, patterns: impl Iterator<Item = &'a Pat>) -> Vec<Parameter> {
    let mut parameters: Vec<Parameter> = Vec::new();
    for (index, pattern) in patterns.enumerate() {
        let mut parameter = parameter(source, doc, index, pattern);
        // Two unnamed patterns would get the same name.
        if parameters.iter().any(|other| other.name == parameter.name) {
            parameter.name = format!("{}{}", parameter.name, index + 1);
        }
        parameters.push(parameter);
    }
    parameters
}

/// `constructor(private readonly name: string = "x")`
pub fn property_parameter(source: &Source, doc: &Doc, index: usize, parameter_property: &TsParamPropParam) -> Parameter {
    match parameter_property {
        TsParamPropParam::Ident(name) => parameter(source, doc, index, &Pat::Ident(name.clone())),
        TsParamPropParam::Assign(assign) => parameter(source, doc, index, &Pat::Assign(assign.clone())),
    }
}

pub fn parameter(source: &Source, doc: &Doc, index: usize, pattern: &Pat) -> Parameter {
    let (pattern, default) = match pattern {
        Pat::Assign(assign) => (&*assign.left, Some(&*assign.right)),
        pattern => (pattern, None),
    };
    let (pattern, rest, rest_kind) = match pattern {
        Pat::Rest(rest) => (&*rest.arg, true, rest.type_ann.as_deref()),
        pattern => (pattern, false, None),
    };
    let (own_name, kind, optional) = match pattern {
        Pat::Ident(name) => (Some(name.id.sym.to_string()), name.type_ann.as_deref(), name.id.optional),
        Pat::Object(object) => (None, object.type_ann.as_deref(), object.optional),
        Pat::Array(array) => (None, array.type_ann.as_deref(), array.optional),
        _ => (None, None, false),
    };
    // A destructuring pattern has no name, so it takes the name of the documented parameter at its position.
    let said = match &own_name {
        Some(name) => doc.parameter(name),
        None => doc.parameters.get(index),
    };
    let nameless = || said.map_or_else(|| (if pattern.is_array() { "items" } else { "options" }).to_owned(), |said| said.name.clone());
    let annotated = rest_kind.or(kind).map(|annotation| type_text(source, annotation));
    let kind = annotated.or_else(|| said.and_then(|said| said.kind.clone())).or_else(|| default.and_then(literal_type));
    Parameter {
        name: own_name.unwrap_or_else(nameless),
        kind: kind.unwrap_or_else(|| (if rest { "unknown[]" } else { "unknown" }).to_owned()),
        description: said.map(|said| said.text.clone()).unwrap_or_default(),
        optional: optional || default.is_some() || rest || said.is_some_and(|said| said.optional),
        default: default.map(|value| cut(source.snippet(value), DEFAULT_CHARS_MAX)),
        rest,
    }
}

fn returns(source: &Source, doc: &Doc, annotation: Option<&TsTypeAnn>) -> Option<String> {
    annotation.map(|annotation| type_text(source, annotation)).or_else(|| doc.returns.clone())
}

pub fn type_text(source: &Source, annotation: &TsTypeAnn) -> String {
    cut(source.snippet(&*annotation.type_ann), TYPE_CHARS_MAX)
}

/// The type of a literal value.
pub fn literal_type(value: &Expr) -> Option<String> {
    let name = match value {
        Expr::Lit(Lit::Num(_)) => "number",
        Expr::Lit(Lit::Str(_)) | Expr::Tpl(_) => "string",
        Expr::Lit(Lit::Bool(_)) => "boolean",
        Expr::Lit(Lit::BigInt(_)) => "bigint",
        Expr::Lit(Lit::Regex(_)) => "RegExp",
        Expr::Lit(Lit::Null(_)) => "null",
        Expr::Unary(unary) if matches!(unary.op, UnaryOp::Minus | UnaryOp::Plus) => return literal_type(&unary.arg),
        Expr::Array(array) => {
            let kinds: Option<Vec<String>> = array.elems.iter().map(|element| literal_type(&element.as_ref()?.expr)).collect();
            return match kinds.as_deref() {
                Some([first, rest @ ..]) if rest.iter().all(|kind| kind == first) => Some(format!("{first}[]")),
                _ => Some("unknown[]".to_owned()),
            };
        }
        Expr::Object(_) => "object",
        Expr::New(new) => return new.callee.as_ident().map(|name| name.sym.to_string()),
        _ => return None,
    };
    Some(name.to_owned())
}
