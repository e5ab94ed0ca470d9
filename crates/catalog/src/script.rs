//! The script that binds exposed entities, run on the session's heap.
//!
//! The script is self-contained. On a heap without the catalogs (a fresh heap, or an older one that the session was moved to) it binds
//! everything; on a heap that has them it adds only what is new. It is idempotent.
//!
//! It creates these bindings, all non-writable but configurable, so that code may still declare variables of the same name:
//! - `globalThis.<catalog>`, the frozen namespace: `statistics.mean(…)`;
//! - `globalThis.e1`: the same value as `statistics.mean`, callable and constructible as the export is;
//! - `e1.m1(…)` for methods of objects and static methods of classes; `instance.m2(…)` for instance methods, as non-enumerable properties
//!   of the prototype;
//! - the named form: `e1({ p1: …, p2: … })` for a call with one argument, a plain object all of whose keys are parameters of that function.
//!
//! A variable that the session already has under such a name is not changed. The script reports it in a warning, and the entity stays
//! reachable as `globalThis["heapstead:catalogs"].names.e1`.

use crate::catalogs::Catalogs;
use crate::entity::{Entity, EntityKind, Parameter};
use crate::error::PickError;
use crate::symbol::Symbol;
use crate::symbols::EntitySymbols;
use heapstead_javascript::minify_expression;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::LazyLock;

const EXPOSURE: &str = include_str!("js/exposure.js");
/// Falls back to the original if it cannot be minified; a test checks that it can.
static COMPACT_EXPOSURE: LazyLock<String> = LazyLock::new(|| minify_expression(EXPOSURE).unwrap_or_else(|_| EXPOSURE.to_owned()));

/// A binding that the script could not create. The result of its run is a JSON list of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The symbol or catalog.
    pub name: String,
    pub text: String,
}

/// Parses the warnings from the result of a script's run.
pub fn warnings(result: &str) -> Result<Vec<Warning>, serde_json::Error> {
    serde_json::from_str(result)
}

/// The script for a wave ([`crate::Exposed::new`]) or for a whole symbol space ([`crate::Symbols::entities`]).
pub fn script(catalogs: &Catalogs, exposed: &[EntitySymbols]) -> Result<String, PickError> {
    let names: BTreeSet<&str> = exposed.iter().map(|symbols| symbols.catalog.as_str()).collect();
    let mut text = format!("(function () {{ return (\n{})(this, {{ __proto__: null,\n", COMPACT_EXPOSURE.as_str());
    for name in &names {
        let catalog = catalogs.catalog(name)?;
        let callable: Vec<&str> =
            catalog.entities().iter().filter(|entity| is_callable(entity)).map(|entity| entity.name.as_str()).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{name}: {{ hash: {:?}, callable: {}, make: {} }},",
            catalog.content_hash.as_str(),
            json(&callable),
            catalog.bundle()
        );
    }
    let wave = exposed.iter().map(|symbols| Binding::of(catalogs, symbols)).collect::<Result<Vec<_>, _>>()?;
    let _ = write!(text, "}}, {}, {{ __proto__: null", json(&wave));
    let symbols = exposed.iter().map(|symbols| symbols.symbol.to_string());
    for name in names.iter().map(|name| (*name).to_owned()).chain(symbols) {
        let _ = write!(text, ", {name}: () => {name}");
    }
    text.push_str(" }); })()");
    Ok(text)
}

/// Whether it can be called, itself or through its methods. Other values are bound as they are.
fn is_callable(entity: &Entity) -> bool {
    matches!(entity.kind, EntityKind::Function | EntityKind::Class) || !entity.methods.is_empty()
}

/// An entity in the form `js/exposure.js` takes.
#[derive(Serialize)]
struct Binding<'a> {
    symbol: Symbol,
    catalog: &'a str,
    name: &'a str,
    #[serde(flatten)]
    call: Call<'a>,
    methods: Vec<MethodBinding<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MethodBinding<'a> {
    symbol: Symbol,
    name: &'a str,
    is_static: bool,
    #[serde(flatten)]
    call: Call<'a>,
}

#[derive(Serialize)]
struct Call<'a> {
    parameters: &'a [Symbol],
    /// Whether the last parameter is a rest parameter.
    rest: bool,
}

impl<'a> Call<'a> {
    fn of(symbols: &'a [Symbol], parameters: &[Parameter]) -> Self {
        Self { parameters: symbols, rest: parameters.last().is_some_and(|last| last.rest) }
    }
}

impl<'a> Binding<'a> {
    fn of(catalogs: &Catalogs, symbols: &'a EntitySymbols) -> Result<Self, PickError> {
        let (_, entity) = catalogs.entity(&symbols.catalog, &symbols.entity)?;
        let methods = symbols.methods.iter().zip(&entity.methods).map(|(symbols, method)| MethodBinding {
            symbol: symbols.symbol,
            name: &symbols.method,
            is_static: symbols.is_static,
            call: Call::of(&symbols.parameters, &method.parameters),
        });
        Ok(Self {
            symbol: symbols.symbol,
            catalog: &symbols.catalog,
            name: &symbols.entity,
            call: Call::of(&symbols.parameters, &entity.parameters),
            methods: methods.collect(),
        })
    }
}

/// As a JavaScript literal. Strings, numbers and lists of names always serialise.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_helper_is_made_smaller() {
        assert!(COMPACT_EXPOSURE.len() < EXPOSURE.len() * 2 / 3, "{}", COMPACT_EXPOSURE.len());
    }
}
