//! All catalogs that the operator has installed.

use crate::catalog::Catalog;
use crate::entity::Entity;
use crate::error::{CatalogError, PickError};
use crate::near::near;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug, Clone, Default)]
pub struct Catalogs {
    by_name: BTreeMap<String, Catalog>,
}

impl Catalogs {
    pub fn load(folders: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, CatalogError> {
        let mut by_name: BTreeMap<String, Catalog> = BTreeMap::new();
        for folder in folders {
            let catalog = Catalog::load(folder.as_ref())?;
            if let Some(first) = by_name.get(&catalog.name) {
                return Err(CatalogError::Duplicate { name: catalog.name, first: first.folder.clone(), second: catalog.folder });
            }
            by_name.insert(catalog.name.clone(), catalog);
        }
        Ok(Self { by_name })
    }

    /// Sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Catalog> {
        self.by_name.values()
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub fn catalog(&self, name: &str) -> Result<&Catalog, PickError> {
        let unknown = || PickError::UnknownCatalog { catalog: name.to_owned(), near: near(name, self.by_name.keys().map(String::as_str)) };
        self.by_name.get(name).ok_or_else(unknown)
    }

    pub fn entity(&self, catalog: &str, name: &str) -> Result<(&Catalog, &Entity), PickError> {
        let catalog = self.catalog(catalog)?;
        let unknown = || PickError::UnknownEntity {
            catalog: catalog.name.clone(),
            entity: name.to_owned(),
            near: near(name, catalog.entities().iter().map(|entity| entity.name.as_str())),
        };
        catalog.entity(name).map(|entity| (catalog, entity)).ok_or_else(unknown)
    }
}
