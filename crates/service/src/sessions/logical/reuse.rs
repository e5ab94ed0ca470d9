//! The reuse key: what has to be the same for an execute session to be bound again.

use heapstead_catalog::{Pick, primary_entities};
use sha2::{Digest, Sha256};
use uuid::Uuid;

#[derive(Debug, Clone)]
pub struct Reuse<'a> {
    /// The tenant of its owner, or the owner if it has none.
    pub tenant: &'a str,
    /// The primary catalog, and the hash of its content.
    pub catalog: &'a str,
    pub content: &'a str,
    pub picks: &'a [Pick],
    /// Set if execute sessions are reused by their owner alone, and not by its tenant.
    pub principal: Option<&'a str>,
    /// Identifies the engine and the base heap.
    pub generation: &'a str,
    /// None for an execute session without a logical session.
    pub logical: Option<Uuid>,
}

impl Reuse<'_> {
    pub fn key(&self) -> String {
        let logical = self.logical.map(|id| id.to_string()).unwrap_or_default();
        let parts = [self.tenant, self.catalog, self.content, self.principal.unwrap_or_default(), &logical, self.generation];
        let mut hash = Sha256::new();
        for part in parts.into_iter().chain(primary_entities(self.picks)) {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hex::encode(hash.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_to_be_the_same_but_the_order_and_the_number_of_picks() {
        let [mean, median, other] =
            [Pick::new("statistics", "mean"), Pick::new("statistics", "median"), Pick::new("unrelated", "of-no-account")];
        let picks = [mean.clone(), median.clone()];
        let reuse = Reuse {
            tenant: "acme",
            catalog: "statistics",
            content: "hash",
            picks: &picks,
            principal: None,
            generation: "engine and base heap",
            logical: Some(Uuid::from_u128(1)),
        };
        let (alone, fewer) = ([mean.clone()], [median.clone(), mean.clone(), median, other, mean]);
        assert_eq!(Reuse { picks: &fewer, ..reuse.clone() }.key(), reuse.key(), "sorted, each once, of the primary catalog only");
        for another in [
            Reuse { tenant: "globex", ..reuse.clone() },
            Reuse { catalog: "dates", ..reuse.clone() },
            Reuse { content: "changed", ..reuse.clone() },
            Reuse { picks: &alone, ..reuse.clone() },
            Reuse { principal: Some("acme/alice"), ..reuse.clone() },
            Reuse { generation: "another engine", ..reuse.clone() },
            Reuse { logical: Some(Uuid::from_u128(2)), ..reuse.clone() },
            Reuse { logical: None, ..reuse.clone() },
            Reuse { tenant: "acmestat", catalog: "istics", ..reuse.clone() },
        ] {
            assert_ne!(another.key(), reuse.key(), "{another:?}");
        }
        let delegated = |principal| Reuse { principal: Some(principal), logical: None, ..reuse.clone() }.key();
        assert_ne!(delegated("acme/alice"), delegated("acme/bob"), "each has its own");
    }
}
