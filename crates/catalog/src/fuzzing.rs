//! Entry point for the fuzz targets (`fuzz/` in the repository).

use crate::folder::Folder;
use crate::{Catalog, CatalogError};
use std::collections::BTreeMap;

/// A catalog with these files, by their path.
pub fn catalog(files: BTreeMap<String, Vec<u8>>) -> Result<Catalog, CatalogError> {
    Catalog::of(Folder { root: "catalog".into(), files })
}
