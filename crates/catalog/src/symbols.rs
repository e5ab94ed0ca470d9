//! The symbol table of one symbol space: what `e1…`, `m1…` and `p1…` refer to. An assigned symbol never changes its meaning.

use crate::catalogs::Catalogs;
use crate::content_hash::ContentHash;
use crate::entity::{Entity, Parameter};
use crate::error::PickError;
use crate::pick::Pick;
use crate::symbol::Symbol;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Stored with the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Symbols {
    /// Every catalog with assigned symbols, and its content hash at that time.
    catalogs: BTreeMap<String, ContentHash>,
    /// In order of assignment.
    entities: Vec<EntitySymbols>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntitySymbols {
    pub symbol: Symbol,
    pub catalog: String,
    pub entity: String,
    /// In the order of the parameters.
    pub parameters: Vec<Symbol>,
    pub methods: Vec<MethodSymbols>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodSymbols {
    pub symbol: Symbol,
    pub method: String,
    pub is_static: bool,
    pub parameters: Vec<Symbol>,
}

/// The result of a wave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposed {
    /// The symbol space after the wave.
    pub symbols: Symbols,
    /// Only new entities; empty if all picks were exposed before.
    pub new: Vec<EntitySymbols>,
    /// Catalogs with no entities exposed before this wave.
    pub new_catalogs: Vec<String>,
}

impl Exposed {
    pub fn is_noop(&self) -> bool {
        self.new.is_empty()
    }
}

impl Symbols {
    /// Assigns symbols to picks that have none yet. Picks are sorted and deduplicated, so their order does not matter. If one pick is
    /// invalid, none is assigned.
    pub fn expose(&self, catalogs: &Catalogs, picks: &[Pick]) -> Result<Exposed, PickError> {
        self.check(catalogs)?;
        let mut after = self.clone();
        let mut numbers = Numbers::after(self);
        let mut new_catalogs = Vec::new();
        for pick in picks.iter().collect::<BTreeSet<_>>() {
            let (catalog, entity) = catalogs.entity(&pick.catalog, &pick.entity)?;
            if self.find(pick).is_some() {
                continue;
            }
            if after.catalogs.insert(catalog.name.clone(), catalog.content_hash.clone()).is_none() {
                new_catalogs.push(catalog.name.clone());
            }
            after.entities.push(numbers.give(&catalog.name, entity));
        }
        let new = after.entities[self.entities.len()..].to_vec();
        Ok(Exposed { symbols: after, new, new_catalogs })
    }

    /// Checks that every catalog still has the content it had when its symbols were assigned.
    pub fn check(&self, catalogs: &Catalogs) -> Result<(), PickError> {
        for (name, hash) in &self.catalogs {
            if catalogs.catalog(name)?.content_hash != *hash {
                return Err(PickError::Changed { catalog: name.clone() });
            }
        }
        Ok(())
    }

    pub fn find(&self, pick: &Pick) -> Option<&EntitySymbols> {
        self.entities.iter().find(|known| known.catalog == pick.catalog && known.entity == pick.entity)
    }

    /// All exposed entities, in the order of their symbols.
    pub fn entities(&self) -> &[EntitySymbols] {
        &self.entities
    }

    /// The catalogs with assigned symbols, and their content hashes at that time.
    pub fn catalogs(&self) -> &BTreeMap<String, ContentHash> {
        &self.catalogs
    }
}

/// The last assigned number of each kind.
struct Numbers {
    entity: u32,
    method: u32,
    parameter: u32,
}

impl Numbers {
    fn after(symbols: &Symbols) -> Self {
        let methods = || symbols.entities.iter().flat_map(|entity| &entity.methods);
        let parameters = symbols.entities.iter().map(|entity| &entity.parameters).chain(methods().map(|method| &method.parameters));
        let last = |numbers: &mut dyn Iterator<Item = &Symbol>| numbers.map(|symbol| symbol.number).max().unwrap_or(0);
        Self {
            entity: last(&mut symbols.entities.iter().map(|entity| &entity.symbol)),
            method: last(&mut methods().map(|method| &method.symbol)),
            parameter: last(&mut parameters.flatten()),
        }
    }

    fn give(&mut self, catalog: &str, entity: &Entity) -> EntitySymbols {
        self.entity += 1;
        EntitySymbols {
            symbol: Symbol::entity(self.entity),
            catalog: catalog.to_owned(),
            entity: entity.name.clone(),
            parameters: self.parameters(&entity.parameters),
            methods: entity
                .methods
                .iter()
                .map(|method| {
                    self.method += 1;
                    MethodSymbols {
                        symbol: Symbol::method(self.method),
                        method: method.name.clone(),
                        is_static: method.is_static,
                        parameters: self.parameters(&method.parameters),
                    }
                })
                .collect(),
        }
    }

    fn parameters(&mut self, parameters: &[Parameter]) -> Vec<Symbol> {
        parameters
            .iter()
            .map(|_| {
                self.parameter += 1;
                Symbol::parameter(self.parameter)
            })
            .collect()
    }
}
