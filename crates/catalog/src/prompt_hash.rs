//! Identifies what an execute session has been taught: its catalogs, their content and the picked entities, in any order.

use crate::content_hash::absorb;
use crate::symbols::Symbols;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt;

/// 64 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PromptHash(String);

impl PromptHash {
    pub fn of(symbols: &Symbols) -> Self {
        let mut hash = Sha256::new();
        for (catalog, content) in symbols.catalogs() {
            let of_catalog = symbols.entities().iter().filter(|exposed| exposed.catalog == *catalog);
            let entities: BTreeSet<&str> = of_catalog.map(|exposed| exposed.entity.as_str()).collect();
            absorb(&mut hash, catalog.as_bytes());
            absorb(&mut hash, content.as_str().as_bytes());
            hash.update((entities.len() as u64).to_be_bytes());
            entities.iter().for_each(|entity| absorb(&mut hash, entity.as_bytes()));
        }
        Self(hex::encode(hash.finalize()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PromptHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
