//! A pick: one entity of one catalog, named by a seed.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Pick {
    pub catalog: String,
    pub entity: String,
}

impl Pick {
    pub fn new(catalog: impl Into<String>, entity: impl Into<String>) -> Self {
        Self { catalog: catalog.into(), entity: entity.into() }
    }
}

/// The primary catalog of an open: the first by name, so that the order of the seeds does not matter.
pub fn primary(picks: &[Pick]) -> Option<&str> {
    picks.iter().map(|pick| pick.catalog.as_str()).min()
}

/// The picked entities of the primary catalog, sorted and without duplicates.
pub fn primary_entities(picks: &[Pick]) -> Vec<&str> {
    let primary = primary(picks);
    let mut entities: Vec<&str> =
        picks.iter().filter(|pick| Some(pick.catalog.as_str()) == primary).map(|pick| pick.entity.as_str()).collect();
    entities.sort_unstable();
    entities.dedup();
    entities
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_seeds_does_not_matter() {
        let picks = [Pick::new("b", "y"), Pick::new("a", "z"), Pick::new("a", "x"), Pick::new("a", "z")];
        let mut reversed = picks.to_vec();
        reversed.reverse();
        assert_eq!(primary(&picks), Some("a"));
        assert_eq!(primary(&reversed), Some("a"));
        assert_eq!(primary_entities(&picks), ["x", "z"]);
        assert_eq!(primary_entities(&reversed), ["x", "z"]);
        assert_eq!(primary(&[]), None);
        assert!(primary_entities(&[]).is_empty());
    }
}
