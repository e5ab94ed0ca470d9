//! Search in catalogs: any query finds entities that exist, each once, in memory that hardly depends on the query's length. An unknown name is
//! refused with names that exist.

use crate::within;
use heapstead_catalog::{Catalogs, Pick, Symbols};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

const LIMIT: usize = 5;

static CATALOGS: LazyLock<Catalogs> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../catalogs");
    Catalogs::load(["statistics", "dates"].map(|name| folder.join(name))).expect("the catalogs of the repository")
});

/// The catalog and the entity of a pick, and a query.
type Input<'a> = (&'a str, &'a str, &'a str);

pub fn run(input: Input<'_>) {
    let ((catalog, entity, query), catalogs) = (input, &*CATALOGS);
    let hits = within((64 << 10) + 4 * query.len(), || catalogs.search(query, LIMIT));
    let named: BTreeSet<_> = hits.iter().map(|hit| (hit.catalog, hit.entity)).collect();
    assert!(hits.len() <= LIMIT && named.len() == hits.len());
    assert!(named.iter().all(|(catalog, entity)| catalogs.entity(catalog, entity).is_ok()));
    match Symbols::default().expose(catalogs, &[Pick::new(catalog, entity)]) {
        Ok(exposed) => assert_eq!(exposed.new.len(), 1),
        Err(error) => assert!(catalogs.entity(catalog, entity).is_err(), "{error}"),
    }
}
