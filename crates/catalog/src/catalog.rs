//! A catalog: a folder of JavaScript or TypeScript, read, checked, described and bundled.

use crate::bundle::bundle;
use crate::content_hash::ContentHash;
use crate::entity::Entity;
use crate::error::CatalogError;
use crate::folder::Folder;
use crate::graph::Graph;
use crate::manifest::{self, Manifest};
use crate::reader;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct Catalog {
    pub name: String,
    pub version: String,
    pub description: String,
    pub folder: PathBuf,
    pub content_hash: ContentHash,
    /// Sorted by name.
    entities: Vec<Entity>,
    bundle: String,
}

impl Catalog {
    /// Reads the whole catalog. Nothing is evaluated.
    pub fn load(folder: &Path) -> Result<Self, CatalogError> {
        Self::of(Folder::read(folder)?)
    }

    pub(crate) fn of(folder: Folder) -> Result<Self, CatalogError> {
        let path = folder.path(manifest::FILE);
        let missing = || CatalogError::Manifest { path: path.clone(), what: "is missing: expected {\"name\", \"version\"}".to_owned() };
        let manifest = Manifest::parse(&path, folder.files.get(manifest::FILE).ok_or_else(missing)?)?;
        let graph = Graph::link(&folder)?;
        let flawed = |(file, (line, flaw)): (String, _)| CatalogError::Source { path: folder.path(&file), line, flaw };
        let entities = reader::entities(&graph).map_err(flawed)?;
        if entities.is_empty() {
            return Err(CatalogError::NoExports { path: folder.root, entry: graph.entry });
        }
        let unfit = |what| CatalogError::Bundle { path: folder.root.clone(), what };
        let bundle = heapstead_javascript::minify_expression(&bundle(&graph)).map_err(unfit)?;
        Ok(Self {
            name: manifest.name,
            version: manifest.version,
            description: manifest.description,
            content_hash: ContentHash::of(folder.files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()))),
            folder: folder.root,
            entities,
            bundle,
        })
    }

    /// Sorted by name.
    pub fn entities(&self) -> &[Entity] {
        &self.entities
    }

    pub fn entity(&self, name: &str) -> Option<&Entity> {
        self.entities.binary_search_by(|entity| entity.name.as_str().cmp(name)).ok().map(|index| &self.entities[index])
    }

    /// One JavaScript expression: a function that takes `Object.freeze`, evaluates every module once and returns the frozen namespace.
    pub fn bundle(&self) -> &str {
        &self.bundle
    }
}
