//! The script that binds what was exposed, for a run on the session's heap.
//!
//! It is whole in itself: on a heap that has nothing of the catalogs yet (a fresh one, or an older one that the session jumped to) it brings
//! all they need, and on one that has them it adds only what is new. Running it again changes nothing.
//!
//! What it binds, all of it not writable but configurable, so that code may still declare variables of the same name:
//! - `globalThis.<catalog>`, the frozen namespace: `statistics.mean(…)`;
//! - `globalThis.e1`: the same value as `statistics.mean`, callable and constructible as the export is;
//! - `e1.m1(…)` for methods of objects and static ones of classes; `instance.m2(…)` for the rest, as hidden properties of the prototype;
//! - the named form: `e1({ p1: …, p2: … })` for a call with one argument, a plain object all of whose keys are parameters of that function.
//!
//! A variable that the session already has under such a name is never touched: it stays what it is, the script says so in a warning, and
//! `globalThis["heapstead:catalogs"].names.e1` is another way to the same thing.

use crate::catalogs::Catalogs;
use crate::compact::compact;
use crate::entity::{Entity, EntityKind, Parameter};
use crate::error::PickError;
use crate::symbol::Symbol;
use crate::symbols::EntitySymbols;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::LazyLock;

const EXPOSURE: &str = include_str!("js/exposure.js");
/// As it is where it can't be made smaller, though a test sees to it that it can.
static COMPACT_EXPOSURE: LazyLock<String> = LazyLock::new(|| compact(EXPOSURE).unwrap_or_else(|_| EXPOSURE.to_owned()));

/// Something the script could not bind as the table says. The result of its run is a JSON list of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The symbol or catalog.
    pub name: String,
    pub text: String,
}

/// What the run of a script reported, from its result.
pub fn warnings(result: &str) -> Result<Vec<Warning>, serde_json::Error> {
    serde_json::from_str(result)
}

/// The script for a wave ([`crate::Exposed::new`]), or for a whole space ([`crate::Symbols::entities`]).
pub fn script(catalogs: &Catalogs, exposed: &[EntitySymbols]) -> Result<String, PickError> {
    let names: BTreeSet<&str> = exposed.iter().map(|symbols| symbols.catalog.as_str()).collect();
    let mut text = format!("(function () {{ return (\n{})(this, {{ __proto__: null,\n", COMPACT_EXPOSURE.as_str());
    for name in &names {
        let catalog = catalogs.catalog(name)?;
        let callable: Vec<&str> =
            catalog.entities().iter().filter(|entity| is_callable(entity)).map(|entity| entity.name.as_str()).collect();
        // Writing to a string does not fail.
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

/// Whether it takes calls, itself or through its methods. All else is bound as it is.
fn is_callable(entity: &Entity) -> bool {
    matches!(entity.kind, EntityKind::Function | EntityKind::Class) || !entity.methods.is_empty()
}

/// An entity as `js/exposure.js` takes it.
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
    /// Whether the last one takes the rest of the arguments.
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
