//! Refuses module features that do not work in a bundled function: top-level await, dynamic import and `import.meta`. Also refuses class
//! members whose names would collide with method symbols.

use crate::error::Flaw;
use crate::source::{Found, Source};
use crate::symbol::Symbol;
use swc_common::{Span, Spanned};
use swc_ecma_ast::{
    ArrowExpr, AwaitExpr, CallExpr, Callee, ClassMember, Constructor, ForOfStmt, Function, GetterProp, MetaPropExpr, MetaPropKind,
    SetterProp, StaticBlock, UsingDecl,
};
use swc_ecma_visit::{Visit, VisitWith};

/// Returns the first violation in a file.
pub fn check(source: &Source) -> Result<(), Found> {
    let mut finder = Finder::default();
    source.module.visit_with(&mut finder);
    match finder.found {
        Some((span, flaw)) => Err((source.line(span), flaw)),
        None => Ok(()),
    }
}

#[derive(Default)]
struct Finder {
    functions: usize,
    found: Option<(Span, Flaw)>,
}

impl Finder {
    fn note(&mut self, at: impl Spanned, flaw: Flaw) {
        self.found.get_or_insert((at.span(), flaw));
    }

    fn within(&mut self, node: &impl VisitWith<Self>) {
        self.functions += 1;
        node.visit_children_with(self);
        self.functions -= 1;
    }
}

impl Visit for Finder {
    fn visit_function(&mut self, node: &Function) {
        self.within(node);
    }

    fn visit_arrow_expr(&mut self, node: &ArrowExpr) {
        self.within(node);
    }

    fn visit_constructor(&mut self, node: &Constructor) {
        self.within(node);
    }

    fn visit_getter_prop(&mut self, node: &GetterProp) {
        self.within(node);
    }

    fn visit_setter_prop(&mut self, node: &SetterProp) {
        self.within(node);
    }

    fn visit_static_block(&mut self, node: &StaticBlock) {
        self.within(node);
    }

    fn visit_class_member(&mut self, node: &ClassMember) {
        let key = match node {
            ClassMember::Method(method) => method.key.as_ident(),
            ClassMember::ClassProp(property) => property.key.as_ident(),
            _ => None,
        };
        if let Some(name) = key.map(|key| key.sym.as_str()).filter(|name| name.starts_with('m') && Symbol::is_like(name)) {
            self.note(node, Flaw::LikeSymbol(name.to_owned()));
        }
        node.visit_children_with(self);
    }

    fn visit_await_expr(&mut self, node: &AwaitExpr) {
        if self.functions == 0 {
            self.note(node, Flaw::TopLevelAwait);
        }
        node.visit_children_with(self);
    }

    fn visit_for_of_stmt(&mut self, node: &ForOfStmt) {
        if self.functions == 0 && node.is_await {
            self.note(node, Flaw::TopLevelAwait);
        }
        node.visit_children_with(self);
    }

    fn visit_using_decl(&mut self, node: &UsingDecl) {
        if self.functions == 0 {
            self.note(node, Flaw::TopLevelUsing);
        }
        node.visit_children_with(self);
    }

    fn visit_call_expr(&mut self, node: &CallExpr) {
        if matches!(node.callee, Callee::Import(_)) {
            self.note(node, Flaw::DynamicImport);
        }
        node.visit_children_with(self);
    }

    fn visit_meta_prop_expr(&mut self, node: &MetaPropExpr) {
        if node.kind == MetaPropKind::ImportMeta {
            self.note(node, Flaw::ImportMeta);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Language;

    #[test]
    fn each_is_found_with_its_line() {
        for (text, expected) in [
            ("1;\nawait 0;", Some((2, Flaw::TopLevelAwait))),
            ("for await (const x of []) {}", Some((1, Flaw::TopLevelAwait))),
            ("const f = () => 1;\n\nconst x = { y: await f() };", Some((3, Flaw::TopLevelAwait))),
            ("const f = () => import('./x.js');", Some((1, Flaw::DynamicImport))),
            ("class A { at() { return import.meta.url; } }", Some((1, Flaw::ImportMeta))),
            ("class A {\n  m1() {}\n}", Some((2, Flaw::LikeSymbol("m1".to_owned())))),
            ("class A { m2 = 1 }", Some((1, Flaw::LikeSymbol("m2".to_owned())))),
            ("class Line { p1; p2; mean() {} }", None),
            ("{ using x = null; }", Some((1, Flaw::TopLevelUsing))),
            ("const f = async () => await 1; async function g() { for await (const x of []) {} }", None),
            ("class A { async b() { await 1; } static { new.target; } }", None),
        ] {
            let Ok(source) = Source::parse(text, Language::JavaScript) else { panic!("{text}") };
            assert_eq!(check(&source).err(), expected, "{text}");
        }
    }
}
